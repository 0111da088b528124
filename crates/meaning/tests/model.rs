//! What a model makes of texts, and what is said of folders that are none.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use meaning::{Embedder, MAX_WINDOWS, Model, ModelError};
use tempfile::TempDir;
use testkit::tiny_model::{self, DIMENSIONS, WINDOW_TOKENS};

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    tiny_model::write(folder.path()).unwrap();
    folder
}

fn model() -> Model {
    Model::open(folder().path()).unwrap()
}

fn vector(model: &Model, text: &str) -> Vec<f32> {
    model.embed_question(text).unwrap().unwrap()
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[test]
fn words_that_mean_alike_are_nearer_than_others() {
    let model = model();
    let near = cosine(&vector(&model, "my car"), &vector(&model, "an automobile"));
    let far = cosine(&vector(&model, "my car"), &vector(&model, "an allergy"));
    assert!(near > 0.8 && far < 0.5, "{near} {far}");
}

#[test]
fn vectors_have_unit_length_and_do_not_depend_on_what_is_run_with_them() {
    let model = model();
    let texts = [
        "the doctor took a train",
        "supper",
        "a viaduct over the railway",
    ];
    let windows: Vec<_> = texts
        .iter()
        .flat_map(|text| model.windows(text).unwrap())
        .collect();
    let together = model.embed(&windows).unwrap();
    for (window, vector) in windows.iter().zip(&together) {
        assert_eq!(vector.len(), DIMENSIONS);
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-5);
        let alone = model.embed(std::slice::from_ref(window)).unwrap();
        assert_eq!(alone.first(), Some(vector));
    }
}

/// The expected numbers come from another implementation of the same network.
#[test]
fn the_network_computes_what_another_implementation_does() {
    let folder = tempfile::tempdir().unwrap();
    tiny_model::write_biased(folder.path()).unwrap();
    let model = Model::open(folder.path()).unwrap();
    let found = vector(&model, "the doctor took a train");
    let expected = [
        0.024_660_9,
        0.158_960_1,
        0.004_596_3,
        -0.093_616_6,
        0.143_708_7,
        0.146_932_1,
    ];
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

#[test]
fn long_texts_are_cut_between_words_into_windows_that_say_where_they_stand() {
    let model = model();
    let text = "Çar über train bridge ".repeat(40);
    let windows = model.windows(&text).unwrap();
    assert!(windows.len() > 4);
    let chars: Vec<char> = text.chars().collect();
    let mut end = 0;
    for window in &windows {
        assert!(window.tokens.len() <= WINDOW_TOKENS + 2);
        assert!(window.start_chars >= end);
        assert!(window.start_chars == 0 || chars[window.start_chars - 1] == ' ');
        assert!(chars[window.start_chars] != ' ');
        end = window.end_chars;
    }
    assert_eq!(end, chars.len() - 1);
}

#[test]
fn what_is_beyond_the_last_window_is_left_out() {
    let model = model();
    let text = "bridge ".repeat(1_000_000);
    assert_eq!(model.windows(&text).unwrap().len(), MAX_WINDOWS);
    assert!(model.embed_question(&text).unwrap().is_some());
    assert_eq!(model.windows("").unwrap(), []);
    assert_eq!(model.windows(" \n ").unwrap(), []);
    for nothing in ["", "  ", "?!… \"'"] {
        assert_eq!(model.embed_question(nothing).unwrap(), None);
    }
    // One word that is longer than a window.
    let long = "x".repeat(99);
    assert!(model.windows(&long).unwrap().len() > 1);
}

#[test]
fn the_same_files_have_the_same_fingerprint() {
    let (one, other) = (model(), model());
    assert_eq!(one.fingerprint(), other.fingerprint());
    let folder = tempfile::tempdir().unwrap();
    tiny_model::write_with(folder.path(), &[&["car"]]).unwrap();
    let third = Model::open(folder.path()).unwrap();
    assert_ne!(one.fingerprint(), third.fingerprint());
    assert!(one.files().iter().any(|file| file == "model.safetensors"));
}

/// The error of a folder in which something was changed.
fn broken(change: impl FnOnce(&Path)) -> ModelError {
    let folder = folder();
    change(folder.path());
    Model::open(folder.path()).err().unwrap()
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_folder_that_is_no_model_is_refused_by_the_file_that_is_missing() {
    for file in [
        "config.json",
        "tokenizer.json",
        "model.safetensors",
        "modules.json",
        "1_Pooling/config.json",
    ] {
        let error = broken(|folder| fs::remove_file(folder.join(file)).unwrap());
        assert!(matches!(error, ModelError::Missing { .. }), "{error:?}");
        assert!(error.to_string().contains(file), "{error}");
    }
    let error = Model::open(Path::new("/nowhere/at/all")).err().unwrap();
    assert!(
        error.to_string().contains("sentence-transformers"),
        "{error}"
    );
}

#[test]
fn damaged_files_are_refused_and_named() {
    let cut = |file: &'static str, keep: usize| {
        broken(move |folder| {
            let path = folder.join(file);
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len().min(keep)]).unwrap();
        })
    };
    for (file, keep) in [
        ("config.json", 20),
        ("modules.json", 0),
        ("tokenizer.json", 500),
        ("model.safetensors", 0),
        ("model.safetensors", 7),
        ("model.safetensors", 900),
        ("model.safetensors", 40_000),
    ] {
        let error = cut(file, keep);
        assert!(
            matches!(error, ModelError::Malformed { .. }),
            "{file} {keep} {error:?}"
        );
        assert!(error.to_string().contains(file), "{error}");
    }
    let error = broken(|folder| {
        replace(
            &folder.join("config.json"),
            "\"num_hidden_layers\":1",
            "\"num_hidden_layers\":2",
        );
    });
    assert!(error.to_string().contains("encoder.layer.1"), "{error}");
    let error = broken(|folder| replace(&folder.join("config.json"), ":64", ":32"));
    assert!(matches!(error, ModelError::Malformed { .. }), "{error:?}");
}

#[test]
fn models_of_another_shape_are_refused_with_what_they_need() {
    for (file, from, to, said) in [
        ("config.json", "\"bert\"", "\"t5\"", "model_type"),
        ("config.json", "\"gelu\"", "\"silu\"", "hidden_act"),
        (
            "config.json",
            "\"num_attention_heads\":2",
            "\"num_attention_heads\":3",
            "num_attention_heads",
        ),
        (
            "modules.json",
            "2_Normalize\",\"type\":\"sentence_transformers.models.Normalize",
            "2_Dense\",\"type\":\"sentence_transformers.models.Dense",
            "Dense",
        ),
        (
            "1_Pooling/config.json",
            "mean_tokens",
            "max_tokens",
            "pooling",
        ),
        ("model.safetensors", "", "", "float32"),
    ] {
        let error = broken(|folder| {
            let path = folder.join(file);
            if from.is_empty() {
                let bytes = fs::read(&path).unwrap();
                let at = bytes.windows(3).position(|part| part == b"F32").unwrap();
                let mut bytes = bytes;
                bytes[at..at + 3].copy_from_slice(b"I32");
                fs::write(&path, bytes).unwrap();
            } else {
                replace(&path, from, to);
            }
        });
        assert!(matches!(error, ModelError::Unsupported { .. }), "{error:?}");
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.to_string().contains("MiniLM"), "{error}");
    }
}
