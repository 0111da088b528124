//! Function words of the languages people write most: what a question loses nothing by leaving out. The list has no opinion on which
//! language a question is in, so a word of any section counts.

use std::collections::HashSet;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;

const WORDS: &str = include_str!("function_words.txt");

static LIST: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| sections().flat_map(|(_, words)| words).collect());

/// Whether `word`, as it stands in a question, is an article, a pronoun, a preposition or another word that says nothing of what the
/// question is about. Accents count: `für` is one, `fur` is not.
pub fn is_function_word(word: &str) -> bool {
    if word.is_ascii() {
        return LIST.contains(word.to_ascii_lowercase().as_str());
    }
    let composed = word.to_lowercase().nfc().collect::<String>();
    // `İ` becomes `i` and a dot of its own in lower case.
    LIST.contains(composed.replace('\u{307}', "").as_str())
}

/// Each language of the list with its words.
fn sections() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    WORDS.split("\n# ").skip(1).map(|section| {
        let (language, words) = section.split_once('\n').unwrap_or((section, ""));
        (language, words.split_whitespace())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// For each language a question with its function words before the bar and the others after it.
    const QUESTIONS: &[(&str, &str)] = &[
        ("English", "What did you do with the | key"),
        ("German", "Wo ist unser | Schlüssel"),
        ("French", "Où est-ce que nous avons l | clé"),
        ("Spanish", "¿Dónde está la | llave"),
        ("Italian", "Dov è la | chiave"),
        ("Portuguese", "Onde está a minha | chave"),
        ("Dutch", "Waar is mijn | sleutel"),
        ("Swedish", "Var är min | nyckel"),
        ("Danish", "Hvor er min | nøgle"),
        ("Norwegian", "Hvor er den | nøkkelen"),
        ("Finnish", "Missä minun on | avain"),
        ("Polish", "Gdzie jest mój | klucz"),
        ("Czech", "Kde je můj | klíč"),
        ("Russian", "Где мой | ключ"),
        ("Ukrainian", "Де мій | ключ"),
        ("Turkish", "Bizim İçin nerede | anahtar"),
        ("Greek", "ΠΟΎ ΕΊΝΑΙ το | κλειδί"),
        ("Hungarian", "Hol vannak a | kulcsok"),
        ("Romanian", "Unde este | cheia"),
        ("Indonesian", "Di mana | kunci"),
        ("Hindi", "मेरी कहाँ है | चाबी"),
        ("Arabic", "أين هو | المفتاح"),
        ("Hebrew", "איפה שלי | המפתח"),
        ("Persian", "من کجا است | کلید"),
    ];

    /// Words people ask about that are function words in some language or look like one.
    const CONTENT: &str = "time people say go make work car door war die hat man men son sea van want dog bag end ten ham size care bin \
        come may fast pot pro word falls most hier sit met kit mint ai fur don won comment ville mer sera stato \
        Ben Dan Kim Tom Jim Sam Ken Don Mia Mina Hans Ella Ellen Ali Ada Meg Eli Erin Sue Ole \
        home house family mother friend doctor school money flight meeting password letter photo birthday \
        Haus Arbeit Leute Zeit Geld maison travail temps argent casa trabajo tiempo dinero lavoro tempo soldi \
        huis werk tijd hus arbete arbejde arbeid talo työ dom praca práce дом работа будинок робота ev iş σπίτι δουλειά ház munka \
        muncă rumah kerja घर काम بيت عمل בית עבודה خانه کار";

    #[test]
    fn each_language_has_its_words() {
        let languages: Vec<_> = sections().map(|(language, _)| language).collect();
        let sampled: Vec<_> = QUESTIONS.iter().map(|(language, _)| *language).collect();
        assert_eq!(languages, sampled);
        for (language, question) in QUESTIONS {
            let (function, content) = question.split_once('|').expect("a bar");
            for word in function.split(|c: char| c.is_whitespace() || "-¿".contains(c)) {
                assert!(
                    word.is_empty() || is_function_word(word),
                    "{language}: {word}"
                );
            }
            for word in content.split_whitespace() {
                assert!(!is_function_word(word), "{language}: {word}");
            }
        }
    }

    #[test]
    fn no_word_that_people_ask_about_is_listed() {
        for word in CONTENT.split_whitespace() {
            assert!(!is_function_word(word), "{word}");
        }
    }

    #[test]
    fn sections_hold_no_word_twice_and_only_whole_words() {
        for (language, words) in sections() {
            let mut seen = HashMap::new();
            for word in words {
                *seen.entry(word).or_insert(0) += 1;
                assert_eq!(word.to_lowercase(), word, "{language}");
                assert_eq!(word.nfc().collect::<String>(), word, "{language}");
                let mut tokens = 0;
                crate::analyze(word, &mut |_| tokens += 1);
                assert_eq!(tokens, 1, "{language}: {word} is cut");
            }
            let twice: Vec<_> = seen.iter().filter(|(_, count)| **count > 1).collect();
            assert!(twice.is_empty(), "{language}: {twice:?}");
            assert!(
                (80..=240).contains(&seen.len()),
                "{language}: {}",
                seen.len()
            );
        }
    }

    #[test]
    fn pieces_of_contractions_and_decomposed_accents_count() {
        for piece in "s t ll ve re d m l qu dell aux wasn jusqu".split(' ') {
            assert!(is_function_word(piece), "{piece}");
        }
        assert!(is_function_word("fu\u{308}r"));
        assert!(!is_function_word(""));
    }
}
