//! The word forms of the corpus: tens of thousands of pronounceable ones built from syllables for
//! the scripts that write syllables, and joined real morphemes for Chinese, Japanese and Thai, so
//! that dictionary segmenters meet text they can segment.

use std::collections::HashSet;

use super::prng::Prng;

/// A list of word forms in one allocation, most frequent first.
#[derive(Debug)]
pub(super) struct Words {
    text: String,
    ends: Vec<usize>,
    octaves: u32,
}

impl Words {
    /// A word by the Zipf-like law.
    pub(super) fn draw(&self, prng: &mut Prng) -> &str {
        self.get(prng.zipf(self.octaves))
    }

    /// The word of this rank; empty beyond the last.
    pub(super) fn get(&self, rank: usize) -> &str {
        let start = if rank == 0 {
            0
        } else {
            self.ends.get(rank - 1).copied().unwrap_or_default()
        };
        let end = self.ends.get(rank).copied().unwrap_or(start);
        self.text.get(start..end).unwrap_or_default()
    }
}

/// One language: its words and how it joins them.
#[derive(Debug)]
pub(super) struct Language {
    /// The value of `lang`.
    pub(super) code: &'static str,
    /// How often it is chosen, in a thousand.
    pub(super) weight: usize,
    pub(super) words: Words,
    /// Between words: empty for scripts that write none.
    pub(super) space: &'static str,
    pub(super) comma: &'static str,
    pub(super) stop: &'static str,
}

/// How words of a language are built.
struct Recipe {
    code: &'static str,
    weight: usize,
    octaves: u32,
    onsets: &'static str,
    nuclei: &'static str,
    codas: &'static str,
    marks: [&'static str; 3],
}

const SPACED: [&str; 3] = [" ", ", ", ". "];

/// Parts are separated by spaces; `_` is the empty part. No recipe uses the letters of the probes.
const RECIPES: [Recipe; 10] = [
    Recipe {
        code: "en",
        weight: 720,
        octaves: 15,
        onsets: "b c d f g h k l m n p r s t v w bl br cl cr dr fl fr gl gr pl pr sl st str tr th sh ch _",
        nuclei: "a e i o u a e i o ai ea ee oa ou",
        codas: "_ _ _ n r l s t m nd nt st rk ng ck",
        marks: SPACED,
    },
    Recipe {
        code: "fr",
        weight: 100,
        octaves: 13,
        onsets: "b c d f g l m n p r s t v bl br cl cr dr pr tr ch ç _",
        nuclei: "a é è ê e i î o ô u û ü ö ä ou eau ai ñ",
        codas: "_ _ _ n r l s t nt rs",
        marks: SPACED,
    },
    Recipe {
        code: "ru",
        weight: 40,
        octaves: 13,
        onsets: "б в г д ж з к л м н п р с т х ч ш пр ст тр кр _",
        nuclei: "а е ё и о у ы я ю",
        codas: "_ _ _ й н т р м сь ть",
        marks: SPACED,
    },
    Recipe {
        code: "el",
        weight: 20,
        octaves: 12,
        onsets: "β γ δ θ κ λ μ ν π ρ σ τ φ χ πρ στ τρ _",
        nuclei: "α ά ε έ η ή ι ί ο ό υ ύ ω ώ ου",
        codas: "_ _ _ ς ν ρ",
        marks: SPACED,
    },
    Recipe {
        code: "ar",
        weight: 20,
        octaves: 12,
        onsets: "ب ت ث ج ح خ د ر ز س ش ص ط ع غ ف ق ك ل م ن ه",
        nuclei: "ا و ي _ _",
        codas: "_ _ ة ن ت ر م",
        marks: [" ", "، ", ". "],
    },
    Recipe {
        code: "he",
        weight: 15,
        octaves: 12,
        onsets: "א ב ג ד ה ו ז ח ט י כ ל מ נ ס ע פ צ ק ר ש ת",
        nuclei: "_ ו י _",
        codas: "_ _ ה ת ר ל",
        marks: SPACED,
    },
    Recipe {
        code: "ko",
        weight: 20,
        octaves: 12,
        onsets: "가 나 다 라 마 바 사 아 자 하 고 노 도 로 모 보 소 오 조 호 기 니 디 리 미 비 시 이 지 히",
        nuclei: "_ 각 난 달 람 방 상 안 장 한 국 문 물 은 을 인",
        codas: "_ _ 은 는 이 가 에 서",
        marks: SPACED,
    },
    Recipe {
        code: "zh",
        weight: 30,
        octaves: 12,
        onsets: "我们 你们 他们 时间 工作 问题 城市 学校 朋友 音乐 电影 天气 早上 晚上 今天 明天 昨天 公司 会议 文件 \
                 照片 旅行 火车 飞机 医院 老师 学生 孩子 家庭 钱包 银行 商店 餐厅 咖啡 水果 蔬菜 春天 夏天 秋天 冬天 \
                 北京 上海 中国 世界 历史 语言 电脑 手机 网络 邮件",
        nuclei: "_ _ 的 了 在 和 是 有 不 很 都 也",
        codas: "_ 开始 结束 喜欢 需要 可以 看见 知道 发现 准备 完成 参加 离开 到达 收到 发送 打开 关闭 选择 改变",
        marks: ["", "，", "。"],
    },
    Recipe {
        code: "ja",
        weight: 20,
        octaves: 12,
        onsets: "私 今日 明日 昨日 会社 学校 電車 時間 仕事 友達 音楽 映画 天気 写真 旅行 料理 東京 京都 大阪 日本 \
                 世界 歴史 言葉 電話 メール カメラ ホテル コーヒー テレビ ニュース 先生 学生 子供 家族 病院 銀行 \
                 本屋 公園 春 夏 秋 冬 朝 夜 海 山",
        nuclei: "の は が を に で と も から まで",
        codas: "行く 見る 食べる 飲む 読む 書く 話す 聞く 作る 使う 始まる 終わる 帰る 来る ある いる でした です ました ません _",
        marks: ["", "、", "。"],
    },
    Recipe {
        code: "th",
        weight: 15,
        octaves: 12,
        onsets: "วันนี้ พรุ่งนี้ เมื่อวาน บ้าน โรงเรียน ทำงาน เพื่อน อาหาร น้ำ รถไฟ เครื่องบิน โรงพยาบาล ครู นักเรียน เด็ก \
                 ครอบครัว เงิน ธนาคาร ร้าน กาแฟ ผลไม้ ตลาด กรุงเทพ ประเทศ โลก ภาษา คอมพิวเตอร์ โทรศัพท์ จดหมาย รูปภาพ \
                 หนังสือ เพลง ภูเขา ทะเล",
        nuclei: "_ ที่ และ ของ ใน กับ จาก ไม่ ได้ จะ",
        codas: "_ ไป มา ดู กิน ดื่ม อ่าน เขียน พูด ฟัง ใช้ เริ่ม จบ ชอบ ต้องการ รู้ ซื้อ ขาย ส่ง รับ",
        marks: ["", " ", " "],
    },
];

/// Signs that stand between words now and then, in any language.
pub(super) const EMOJI: [&str; 8] = ["😀", "🎉", "👍🏽", "🚀", "❤️", "👩‍👩‍👧", "🇨🇭", "☕"];

/// Builds every language of the corpus. The words do not depend on the corpus seed.
pub(super) fn languages() -> Vec<Language> {
    RECIPES
        .iter()
        .zip(0_u64..)
        .map(|(recipe, number)| Language {
            code: recipe.code,
            weight: recipe.weight,
            words: build(recipe, number),
            space: recipe.marks[0],
            comma: recipe.marks[1],
            stop: recipe.marks[2],
        })
        .collect()
}

fn build(recipe: &Recipe, number: u64) -> Words {
    let onsets: Vec<&str> = recipe.onsets.split_whitespace().collect();
    let nuclei: Vec<&str> = recipe.nuclei.split_whitespace().collect();
    let codas: Vec<&str> = recipe.codas.split_whitespace().collect();
    let count = (1_usize << recipe.octaves) - 1;
    let joins_morphemes = recipe.marks[0].is_empty();
    let mut prng = Prng::new(0x0057_4F52_4453, number);
    let mut words = Words {
        text: String::new(),
        ends: Vec::with_capacity(count),
        octaves: recipe.octaves,
    };
    let mut known = HashSet::with_capacity(count);
    let mut word = String::new();
    let mut refused = 0;
    while words.ends.len() < count {
        word.clear();
        let syllables = if joins_morphemes {
            1
        } else {
            syllables_of_rank(words.ends.len())
        } + refused / 8;
        for _ in 0..syllables {
            for parts in [&onsets, &nuclei, &codas] {
                let part = parts[prng.below(parts.len())];
                word.push_str(if part == "_" { "" } else { part });
            }
        }
        if word.is_empty() || !known.insert(word.clone()) {
            // Short forms run out: after some refusals the word grows by a syllable.
            refused += 1;
            continue;
        }
        refused = 0;
        words.text.push_str(&word);
        words.ends.push(words.text.len());
    }
    words
}

/// Frequent words are short.
fn syllables_of_rank(rank: usize) -> usize {
    match rank {
        0..128 => 1,
        128..4_096 => 2,
        _ => 2 + rank % 2,
    }
}
