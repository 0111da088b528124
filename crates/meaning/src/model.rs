//! A model that is ready to use: its tokenizer and its network.

use std::path::Path;

use tokenizers::Tokenizer;

use crate::bert::Bert;
use crate::folder::{Folder, ModelError};
use crate::{Embedder, Window};

/// The most windows of one text; what is beyond them has no vector.
pub const MAX_WINDOWS: usize = 32;
/// No more of a text is looked at.
pub const MAX_TEXT_CHARS: usize = 65_536;
/// No more of a question is looked at.
pub const MAX_QUESTION_CHARS: usize = 4_096;
/// How many tokens are run at once; this bounds the memory that it takes.
const BATCH_TOKENS: usize = 1_024;

/// A sentence model in memory.
pub struct Model {
    tokenizer: Tokenizer,
    network: Bert,
    /// The tokens before and after a text.
    frame: [u32; 2],
    /// The most tokens of a window within its frame.
    max_tokens: usize,
    dimensions: usize,
    fingerprint: String,
    files: Vec<String>,
}

impl Model {
    /// Reads a model from its folder.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let folder = Folder::read(path)?;
        let mut tokenizer = Tokenizer::from_bytes(&folder.tokenizer)
            .map_err(|error| folder.malformed_tokenizer(error))?;
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|error| folder.malformed_tokenizer(error))?;
        let framed = tokenizer
            .encode("", true)
            .map_err(|error| folder.malformed_tokenizer(error))?;
        let frame = <[u32; 2]>::try_from(framed.get_ids()).map_err(|_| {
            folder.unsupported_tokenizer("it does not frame a text with one token on each side")
        })?;
        let network = Bert::load(&folder)?;
        if tokenizer.get_vocab_size(true) > network.vocabulary() {
            return Err(folder.malformed_tokenizer("it has tokens that the weights do not know"));
        }
        Ok(Self {
            tokenizer,
            network,
            frame,
            max_tokens: folder.max_tokens.saturating_sub(2).max(1),
            dimensions: folder.config.hidden_size,
            fingerprint: folder.fingerprint,
            files: folder.files,
        })
    }

    /// The files that make the model, relative to its folder.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    fn cut(&self, text: &str, most_chars: usize, most: usize) -> Result<Vec<Window>, ModelError> {
        let end = text
            .char_indices()
            .nth(most_chars)
            .map_or(text.len(), |(at, _)| at);
        let text = text.get(..end).unwrap_or(text);
        let encoding = self
            .tokenizer
            .encode_char_offsets(text, false)
            .map_err(|error| ModelError::Text(error.to_string()))?;
        let (ids, offsets) = (encoding.get_ids(), encoding.get_offsets());
        let words = encoding.get_word_ids();
        let (mut windows, mut start) = (Vec::new(), 0);
        while start < ids.len() && windows.len() < most {
            let end = boundary(words, start, self.max_tokens);
            let (Some(tokens), Some(places)) = (ids.get(start..end), offsets.get(start..end))
            else {
                break;
            };
            windows.push(Window {
                tokens: self.framed(tokens),
                start_chars: places.first().map_or(0, |place| place.0),
                end_chars: places.last().map_or(0, |place| place.1),
            });
            start = end;
        }
        Ok(windows)
    }

    fn framed(&self, tokens: &[u32]) -> Vec<u32> {
        let [before, after] = self.frame;
        let tokens = tokens.iter().copied();
        std::iter::once(before)
            .chain(tokens)
            .chain([after])
            .collect()
    }
}

/// Where a window ends that begins at `start`: before a word that would be cut, unless it is longer than a window.
fn boundary(words: &[Option<u32>], start: usize, most: usize) -> usize {
    let last = words.len().min(start + most);
    let cuts = |end: usize| {
        let (before, after) = (words.get(end - 1), words.get(end));
        before.is_some() && before == after && before != Some(&None)
    };
    let mut end = last;
    while end > start && end < words.len() && cuts(end) {
        end -= 1;
    }
    if end > start { end } else { last }
}

impl Embedder for Model {
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn windows(&self, text: &str) -> Result<Vec<Window>, ModelError> {
        self.cut(text, MAX_TEXT_CHARS, MAX_WINDOWS)
    }

    fn embed(&self, windows: &[Window]) -> Result<Vec<Vec<f32>>, ModelError> {
        let known = self.network.vocabulary();
        let is_known = |window: &Window| {
            let in_vocabulary = |token: &u32| (*token as usize) < known;
            window.tokens.len() <= self.max_tokens + 2 && window.tokens.iter().all(in_vocabulary)
        };
        if !windows.iter().all(is_known) {
            return Err(ModelError::Text(
                "its tokens are of another model".to_owned(),
            ));
        }
        let mut vectors = Vec::with_capacity(windows.len());
        let (mut batch, mut tokens): (Vec<&[u32]>, usize) = (Vec::new(), 0);
        for window in windows {
            if !batch.is_empty() && tokens + window.tokens.len() > BATCH_TOKENS {
                vectors.extend(self.network.run(&batch));
                batch.clear();
                tokens = 0;
            }
            tokens += window.tokens.len();
            batch.push(&window.tokens);
        }
        vectors.extend(self.network.run(&batch));
        Ok(vectors)
    }

    fn embed_question(&self, question: &str) -> Result<Option<Vec<f32>>, ModelError> {
        if !question
            .chars()
            .take(MAX_QUESTION_CHARS)
            .any(char::is_alphanumeric)
        {
            return Ok(None);
        }
        let windows = self.cut(question, MAX_QUESTION_CHARS, 1)?;
        Ok(self.embed(&windows)?.pop())
    }
}
