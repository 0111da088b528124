//! A sentence model of some kilobytes, made the same each time, for tests that search by meaning. It knows groups of words
//! that mean alike; all other words it spells, and letters mean nothing to it.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

/// How long its vectors are.
pub const DIMENSIONS: usize = 64;
/// How many tokens a window has, without its frame.
pub const WINDOW_TOKENS: usize = 30;
const WIDE: usize = 32;

/// Words that mean alike to a model that nobody taught others.
pub const GROUPS: &[&[&str]] = &[
    &["car", "automobile", "vehicle"],
    &["doctor", "physician", "surgeon"],
    &["train", "railway", "locomotive"],
    &["bridge", "viaduct", "overpass"],
    &["meal", "dinner", "supper"],
    &["allergy", "intolerance", "reaction"],
];

/// Writes a model that knows [`GROUPS`] into a folder.
///
/// # Errors
///
/// When the folder cannot be written.
pub fn write(folder: &Path) -> io::Result<()> {
    write_with(folder, GROUPS)
}

/// Writes a model for which the words of each group mean the same.
///
/// # Errors
///
/// When the folder cannot be written.
pub fn write_with(folder: &Path, groups: &[&[&str]]) -> io::Result<()> {
    write_model(folder, groups, false)
}

/// Writes a model in which every number of the network matters, letters included.
///
/// # Errors
///
/// When the folder cannot be written.
pub fn write_biased(folder: &Path) -> io::Result<()> {
    write_model(folder, GROUPS, true)
}

fn write_model(folder: &Path, groups: &[&[&str]], biased: bool) -> io::Result<()> {
    let vocabulary = Vocabulary::new(groups, biased);
    fs::create_dir_all(folder.join("1_Pooling"))?;
    let text = |name: &str, value: Value| fs::write(folder.join(name), value.to_string());
    text(
        "config.json",
        json!({"model_type": "bert", "hidden_size": DIMENSIONS, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": WIDE, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
            "max_position_embeddings": WINDOW_TOKENS + 2, "vocab_size": vocabulary.tokens.len()}),
    )?;
    let module = |path: &str, name: &str| json!({"path": path, "type": format!("sentence_transformers.models.{name}")});
    text(
        "modules.json",
        json!([
            module("", "Transformer"),
            module("1_Pooling", "Pooling"),
            module("2_Normalize", "Normalize")
        ]),
    )?;
    text(
        "1_Pooling/config.json",
        json!({"pooling_mode_mean_tokens": true}),
    )?;
    text(
        "sentence_bert_config.json",
        json!({"max_seq_length": WINDOW_TOKENS + 2}),
    )?;
    text("tokenizer.json", vocabulary.tokenizer())?;
    fs::write(
        folder.join("model.safetensors"),
        weights(&vocabulary, biased),
    )
}

/// The tokens, each with the number of what it means; those without one mean nothing.
struct Vocabulary {
    tokens: Vec<(String, Option<u64>)>,
}

impl Vocabulary {
    fn new(groups: &[&[&str]], biased: bool) -> Self {
        let special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"];
        let mut tokens: Vec<_> = special
            .iter()
            .map(|token| ((*token).to_owned(), None))
            .collect();
        for (number, char) in (1000..).zip(('a'..='z').chain('0'..='9')) {
            let meaning = biased.then_some(number);
            tokens.push((char.to_string(), meaning));
            tokens.push((format!("##{char}"), meaning));
        }
        for (number, group) in (0..).zip(groups) {
            tokens.extend(group.iter().map(|word| ((*word).to_owned(), Some(number))));
        }
        Self { tokens }
    }

    fn tokenizer(&self) -> Value {
        let tokens = self.tokens.iter().zip(0_u32..);
        let vocabulary: serde_json::Map<String, Value> = tokens
            .map(|((token, _), id)| (token.clone(), id.into()))
            .collect();
        let special = |id: u32, content: &str| {
            json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true})
        };
        let frame = |token: &str| json!({"SpecialToken": {"id": token, "type_id": 0}});
        let framed =
            json!([frame("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, frame("[SEP]")]);
        json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": [special(0, "[PAD]"), special(1, "[CLS]"), special(2, "[SEP]"), special(3, "[UNK]")],
            "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing", "single": framed, "pair": framed,
                "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]},
                    "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}},
            "decoder": null,
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": vocabulary},
        })
    }
}

/// The file of weights: a length, a description in JSON, then the numbers.
fn weights(vocabulary: &Vocabulary, biased: bool) -> Vec<u8> {
    let mut file = Tensors {
        bias: if biased { 0.01 } else { 0.0 },
        ..Tensors::default()
    };
    let words = vocabulary.tokens.iter().flat_map(|(_, meaning)| {
        // A letter says less than a word.
        let size = if meaning.is_some_and(|number| number < 1000) {
            1.0
        } else {
            0.2
        };
        let number = |at| meaning.map_or(0.0, |meaning| size * spread(meaning, at));
        (0..DIMENSIONS as u64).map(number).collect::<Vec<_>>()
    });
    let words: Vec<f32> = words.collect();
    file.add(
        "embeddings.word_embeddings.weight",
        &[vocabulary.tokens.len(), DIMENSIONS],
        words,
    );
    file.add_spread(
        "embeddings.position_embeddings.weight",
        &[WINDOW_TOKENS + 2, DIMENSIONS],
        0.0,
    );
    file.add_spread(
        "embeddings.token_type_embeddings.weight",
        &[2, DIMENSIONS],
        0.0,
    );
    file.add_norm("embeddings.LayerNorm");
    let layer = "encoder.layer.0";
    for part in ["self.query", "self.key", "self.value", "output.dense"] {
        file.add_linear(&format!("{layer}.attention.{part}"), DIMENSIONS, DIMENSIONS);
    }
    file.add_norm(&format!("{layer}.attention.output.LayerNorm"));
    file.add_linear(&format!("{layer}.intermediate.dense"), DIMENSIONS, WIDE);
    file.add_linear(&format!("{layer}.output.dense"), WIDE, DIMENSIONS);
    file.add_norm(&format!("{layer}.output.LayerNorm"));
    file.into_bytes()
}

#[derive(Default)]
struct Tensors {
    description: serde_json::Map<String, Value>,
    data: Vec<u8>,
    /// How large the numbers are that a layer adds to all.
    bias: f32,
}

impl Tensors {
    fn add(&mut self, name: &str, shape: &[usize], numbers: Vec<f32>) {
        let start = self.data.len();
        self.data
            .extend(numbers.into_iter().flat_map(f32::to_le_bytes));
        let entry =
            json!({"dtype": "F32", "shape": shape, "data_offsets": [start, self.data.len()]});
        self.description.insert(name.to_owned(), entry);
    }

    fn add_spread(&mut self, name: &str, shape: &[usize], size: f32) {
        let seed = self.description.len() as u64 + 5_000;
        let count: usize = shape.iter().product();
        let numbers = (0..count as u64)
            .map(|at| size * spread(seed, at))
            .collect();
        self.add(name, shape, numbers);
    }

    fn add_linear(&mut self, name: &str, from: usize, to: usize) {
        self.add_spread(&format!("{name}.weight"), &[to, from], 0.05);
        self.add_spread(&format!("{name}.bias"), &[to], self.bias);
    }

    fn add_norm(&mut self, name: &str) {
        self.add(
            &format!("{name}.weight"),
            &[DIMENSIONS],
            vec![1.0; DIMENSIONS],
        );
        self.add(
            &format!("{name}.bias"),
            &[DIMENSIONS],
            vec![0.0; DIMENSIONS],
        );
    }

    fn into_bytes(self) -> Vec<u8> {
        let description = Value::Object(self.description).to_string();
        let mut bytes = (description.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(description.as_bytes());
        bytes.extend_from_slice(&self.data);
        bytes
    }
}

/// A number between -1 and 1 that is always the same and looks random.
#[expect(clippy::cast_precision_loss, reason = "sixteen bits fit")]
fn spread(seed: u64, at: u64) -> f32 {
    let mut x = (seed << 32 | at)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x >> 48) as f32 - 32_768.0) / 32_768.0
}
