//! A model as files: which there must be, what they must say, and what is wrong with a folder that is no model.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "model.safetensors";
const MODULES: &str = "modules.json";
const SENTENCES: &str = "sentence_bert_config.json";

/// The largest file of weights that is read.
const MAX_WEIGHT_BYTES: u64 = 2 << 30;
/// The largest of the other files.
const MAX_TEXT_BYTES: u64 = 64 << 20;
/// No window has more tokens, whatever the model allows.
const MAX_TOKENS: usize = 256;

/// Why a folder is not a model that can be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file is not there.
    #[error(
        "{path} is missing. A model is a folder in the layout of sentence-transformers: config.json, tokenizer.json, model.safetensors and modules.json"
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("{path} cannot be read: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A file is not what its name says.
    #[error("{path} is damaged or no such file: {detail}. Copy the model's folder again")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// A model that works in another way.
    #[error(
        "{path} describes a model that cannot be used: {detail}. Use a sentence model of the BERT family with mean or CLS pooling, such as all-MiniLM-L6-v2"
    )]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What cannot be used.
        detail: String,
    },
    /// A text cannot be read by the model.
    #[error("the model cannot read a text: {0}")]
    Text(String),
}

/// What `config.json` says of the network.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Config {
    #[serde(default)]
    pub(crate) model_type: String,
    pub(crate) hidden_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    #[serde(default = "gelu")]
    pub(crate) hidden_act: String,
    #[serde(default = "epsilon")]
    pub(crate) layer_norm_eps: f32,
    pub(crate) max_position_embeddings: usize,
    #[serde(default = "absolute")]
    pub(crate) position_embedding_type: String,
}

fn gelu() -> String {
    "gelu".to_owned()
}

fn absolute() -> String {
    "absolute".to_owned()
}

fn epsilon() -> f32 {
    1e-12
}

/// How the vectors of tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pooling {
    /// Their mean.
    Mean,
    /// The one of the first token.
    First,
}

#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Default, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the file has them")]
#[serde(default)]
struct PoolingConfig {
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
    pooling_mode_max_tokens: bool,
    pooling_mode_mean_sqrt_len_tokens: bool,
    pooling_mode_weightedmean_tokens: bool,
    pooling_mode_lasttoken: bool,
}

#[derive(Deserialize)]
struct Sentences {
    max_seq_length: Option<usize>,
}

/// The contents of a model's folder.
pub(crate) struct Folder {
    path: PathBuf,
    pub(crate) config: Config,
    pub(crate) pooling: Pooling,
    /// The most tokens of one window, with those that frame it.
    pub(crate) max_tokens: usize,
    pub(crate) tokenizer: Vec<u8>,
    pub(crate) weights: Vec<u8>,
    pub(crate) fingerprint: String,
    /// The files that make the model, relative to its folder.
    pub(crate) files: Vec<String>,
}

impl Folder {
    pub(crate) fn read(path: &Path) -> Result<Self, ModelError> {
        let (mut hasher, mut files) = (Sha256::new(), Vec::new());
        let mut read = |name: &str, most| {
            files.push(name.to_owned());
            let bytes = read_file(&path.join(name), most)?;
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(&bytes);
            Ok(bytes)
        };
        let config: Config = parse(&path.join(CONFIG), &read(CONFIG, MAX_TEXT_BYTES)?)?;
        check(&path.join(CONFIG), &config)?;
        let modules: Vec<Module> = parse(&path.join(MODULES), &read(MODULES, MAX_TEXT_BYTES)?)?;
        let pooling_path = pooling_module(&path.join(MODULES), &modules)?;
        let pooling_path = pooling_path.map(|folder| format!("{folder}/config.json"));
        let pooling = match &pooling_path {
            Some(name) => pooling(&path.join(name), &read(name, MAX_TEXT_BYTES)?)?,
            None => Pooling::Mean,
        };
        let sentences = if path.join(SENTENCES).exists() {
            let sentences: Sentences =
                parse(&path.join(SENTENCES), &read(SENTENCES, MAX_TEXT_BYTES)?)?;
            sentences.max_seq_length
        } else {
            None
        };
        let tokenizer = read(TOKENIZER, MAX_TEXT_BYTES)?;
        let weights = read(WEIGHTS, MAX_WEIGHT_BYTES)?;
        let most = sentences.unwrap_or(MAX_TOKENS).min(MAX_TOKENS);
        Ok(Self {
            path: path.to_owned(),
            max_tokens: most.min(config.max_position_embeddings).max(3),
            config,
            pooling,
            tokenizer,
            weights,
            fingerprint: hex(&hasher.finalize()),
            files,
        })
    }

    pub(crate) fn malformed_weights(&self, detail: impl Display) -> ModelError {
        malformed(&self.path.join(WEIGHTS), detail)
    }

    pub(crate) fn unsupported_weights(&self, detail: impl Display) -> ModelError {
        unsupported(&self.path.join(WEIGHTS), detail)
    }

    pub(crate) fn malformed_tokenizer(&self, detail: impl Display) -> ModelError {
        malformed(&self.path.join(TOKENIZER), detail)
    }

    pub(crate) fn unsupported_tokenizer(&self, detail: impl Display) -> ModelError {
        unsupported(&self.path.join(TOKENIZER), detail)
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn malformed(path: &Path, detail: impl Display) -> ModelError {
    ModelError::Malformed {
        path: path.to_owned(),
        detail: detail.to_string(),
    }
}

fn unsupported(path: &Path, detail: impl Display) -> ModelError {
    ModelError::Unsupported {
        path: path.to_owned(),
        detail: detail.to_string(),
    }
}

fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, ModelError> {
    let failed = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ModelError::Missing {
            path: path.to_owned(),
        },
        _ => ModelError::Io {
            path: path.to_owned(),
            cause,
        },
    };
    let size = fs::metadata(path).map_err(failed)?.len();
    if size > most {
        let detail = format!("it has {size} bytes, and at most {most} are read");
        return Err(unsupported(path, detail));
    }
    fs::read(path).map_err(failed)
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, ModelError> {
    serde_json::from_slice(bytes).map_err(|error| malformed(path, error))
}

fn check(path: &Path, config: &Config) -> Result<(), ModelError> {
    let is_bert = config.model_type == "bert";
    let checks = [
        (is_bert, "model_type is not bert"),
        (config.hidden_act == "gelu", "hidden_act is not gelu"),
        (
            config.position_embedding_type == "absolute",
            "position_embedding_type is not absolute",
        ),
        (
            config.hidden_size > 0 && config.hidden_size <= 4096,
            "hidden_size is not between 1 and 4096",
        ),
        (
            config.num_attention_heads > 0
                && config
                    .hidden_size
                    .is_multiple_of(config.num_attention_heads),
            "num_attention_heads does not divide hidden_size",
        ),
        (
            (1..=64).contains(&config.num_hidden_layers),
            "num_hidden_layers is not between 1 and 64",
        ),
        (
            config.max_position_embeddings >= 3,
            "max_position_embeddings is less than 3",
        ),
    ];
    match checks.iter().find(|(holds, _)| !holds) {
        Some((_, detail)) => Err(unsupported(path, detail)),
        None => Ok(()),
    }
}

/// The folder of the pooling module. Vectors are brought to unit length in any case; other modules cannot be run.
fn pooling_module(path: &Path, modules: &[Module]) -> Result<Option<String>, ModelError> {
    let mut pooling = None;
    for module in modules {
        let name = module.kind.rsplit('.').next().unwrap_or_default();
        match name {
            "Transformer" | "Normalize" => {}
            "Pooling" => {
                let is_inside = module
                    .path
                    .chars()
                    .all(|char| char.is_alphanumeric() || char == '_' || char == '-');
                if !is_inside || module.path.is_empty() {
                    return Err(malformed(
                        path,
                        "the pooling module lies in no folder of the model",
                    ));
                }
                pooling = Some(module.path.clone());
            }
            _ => return Err(unsupported(path, format!("it needs a module {name}"))),
        }
    }
    Ok(pooling)
}

fn pooling(path: &Path, bytes: &[u8]) -> Result<Pooling, ModelError> {
    let config: PoolingConfig = parse(path, bytes)?;
    let others = config.pooling_mode_max_tokens
        || config.pooling_mode_mean_sqrt_len_tokens
        || config.pooling_mode_weightedmean_tokens
        || config.pooling_mode_lasttoken;
    match (
        config.pooling_mode_mean_tokens,
        config.pooling_mode_cls_token,
    ) {
        (true, false) if !others => Ok(Pooling::Mean),
        (false, true) if !others => Ok(Pooling::First),
        _ => Err(unsupported(path, "its pooling is neither mean nor CLS")),
    }
}
