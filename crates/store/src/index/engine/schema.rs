//! The fields of the index, and how one record becomes one index document.

use std::borrow::Cow;
use std::hash::Hasher;

use contract::id::{FieldName, hex};
use contract::json::{self, RecordBody};
use contract::scalar::{FieldKind, Scalar};
use contract::time::Instant;
use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher13;
use tantivy::TantivyDocument;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::RAW_TOKENIZER_NAME;

use super::tokenizer;
use crate::index::layout::{FieldSlot, SlotKind, StreamLayout};

/// How many slots of each kind an index has. It only grows by rebuilding the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity([usize; 6]);

/// How many arrays of one stream a new index has places for.
const USUAL_ITEMS: usize = 8;

impl Default for Capacity {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Capacity {
    /// Enough for nearly every collection of sources. Places for items are needed only where arrays are declared, and an
    /// index without them stays as it is until then.
    pub(crate) const USUAL: Self = Self([16, 24, 8, 16, 32, 0]);

    /// What a new index gets where this is needed: room for the next arrays besides.
    pub(crate) fn roomy(self) -> Self {
        self.including(SlotKind::Items, USUAL_ITEMS - 1)
    }

    /// This capacity, enlarged until the slot fits.
    #[expect(clippy::indexing_slicing, reason = "there is one for every kind")]
    pub(crate) fn including(mut self, kind: SlotKind, slot: usize) -> Self {
        let slots = &mut self.0[kind as usize];
        while *slots <= slot {
            *slots = (*slots * 2).max(1);
        }
        self
    }

    /// Whether everything that fits `other` fits here.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.0
            .iter()
            .zip(other.0)
            .all(|(mine, other)| *mine >= other)
    }

    #[expect(clippy::indexing_slicing, reason = "there is one for every kind")]
    fn slots(self, kind: SlotKind) -> usize {
        self.0[kind as usize]
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Fields {
    pub(crate) row: Field,
    pub(crate) stream: Field,
    pub(crate) emitted: Field,
    slots: [Vec<Field>; 6],
    hash_key: [u8; 16],
}

pub(crate) const ROW: &str = "row";
pub(crate) const STREAM: &str = "stream";
pub(crate) const EMITTED: &str = "emitted";

pub(crate) fn slot_name(kind: SlotKind, slot: usize) -> String {
    format!("{kind}{slot}")
}

pub(crate) fn build(capacity: Capacity) -> Schema {
    let mut schema = Schema::builder();
    let numeric: NumericOptions = NumericOptions::default() | FAST | INDEXED;
    schema.add_u64_field(ROW, numeric.clone());
    schema.add_u64_field(STREAM, numeric);
    schema.add_i64_field(EMITTED, FAST);
    let words = TextOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer(tokenizer::NAME)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions),
    );
    let strings = TextOptions::default().set_fast(RAW_TOKENIZER_NAME);
    for kind in SlotKind::ALL {
        for slot in 0..capacity.slots(kind) {
            let name = slot_name(kind, slot);
            match kind {
                SlotKind::Text => schema.add_text_field(&name, words.clone()),
                SlotKind::Integer | SlotKind::Hash => schema.add_i64_field(&name, FAST),
                SlotKind::Number => schema.add_f64_field(&name, FAST),
                SlotKind::Strings | SlotKind::Items => {
                    schema.add_text_field(&name, strings.clone())
                }
            };
        }
    }
    schema.build()
}

impl Fields {
    /// Reads fields and capacity back from an index's schema; `None` if it is not one of ours.
    pub(crate) fn from_schema(schema: &Schema, hash_key: [u8; 16]) -> Option<(Self, Capacity)> {
        let slots = SlotKind::ALL.map(|kind| {
            (0..)
                .map_while(|slot| schema.get_field(&slot_name(kind, slot)).ok())
                .collect::<Vec<_>>()
        });
        let capacity = Capacity(slots.each_ref().map(Vec::len));
        let fields = Self {
            row: schema.get_field(ROW).ok()?,
            stream: schema.get_field(STREAM).ok()?,
            emitted: schema.get_field(EMITTED).ok()?,
            slots,
            hash_key,
        };
        (*schema == build(capacity)).then_some((fields, capacity))
    }

    pub(crate) fn slot(&self, kind: SlotKind, slot: usize) -> Option<Field> {
        self.slots.get(kind as usize)?.get(slot).copied()
    }

    /// The hash that stands for a string in an equality column. Keyed per store, so that nobody can prepare collisions.
    pub(crate) fn hash(&self, text: &str) -> i64 {
        let mut hasher = SipHasher13::new_with_key(&self.hash_key);
        hasher.write(text.as_bytes());
        hasher.finish().cast_signed()
    }

    pub(crate) fn document(&self, record: &Indexable<'_>) -> TantivyDocument {
        let mut document = TantivyDocument::default();
        document.add_u64(self.row, record.row);
        document.add_u64(self.stream, record.stream);
        if let Some(emitted) = Instant::parse(record.emitted_at) {
            document.add_i64(self.emitted, emitted.0);
        }
        for slot in &record.layout.slots {
            let Some(field) = self.slot(slot.kind, slot.number) else {
                continue;
            };
            // A body may be long, and its words need no copy of it.
            if slot.kind == SlotKind::Text {
                if let Some(text) = record.body.searched_text(slot.field.as_str()) {
                    document.add_text(field, text);
                }
                continue;
            }
            match self.column_value(slot, record.body) {
                Some(ColumnValue::Integer(value)) => document.add_i64(field, value),
                Some(ColumnValue::Number(value)) => document.add_f64(field, value),
                Some(ColumnValue::Text(text)) => document.add_text(field, text),
                Some(ColumnValue::Items(texts)) => {
                    for text in texts {
                        document.add_text(field, text);
                    }
                }
                None => {}
            }
        }
        document
    }

    /// What a record has in a slot: the value of a column, or the text whose words are indexed.
    pub(crate) fn column_value(&self, slot: &FieldSlot, body: &RecordBody) -> Option<ColumnValue> {
        let name = slot.field.as_str();
        match slot.kind {
            SlotKind::Text => Some(ColumnValue::Text(body.text(name)?.into_owned())),
            SlotKind::Strings => {
                let text = body.text(name)?;
                Some(ColumnValue::Text(dictionary_form(&text).into_owned()))
            }
            SlotKind::Items => Some(ColumnValue::Items(column_items(
                body.get(name)?,
                slot.field_kind,
            ))),
            SlotKind::Hash => Some(ColumnValue::Integer(self.hash(&body.text(name)?))),
            SlotKind::Integer => {
                column_integer(body, &slot.field, slot.field_kind).map(ColumnValue::Integer)
            }
            SlotKind::Number => match Scalar::from_json(slot.field_kind, body.get(name)?)? {
                // Negative zero equals zero, and the column orders by bits.
                Scalar::Number(value) => Some(ColumnValue::Number(value + 0.0)),
                _ => None,
            },
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnValue {
    Integer(i64),
    Number(f64),
    Text(String),
    /// Each once.
    Items(Vec<String>),
}

/// What the index needs to know of a record.
#[derive(Debug)]
pub(crate) struct Indexable<'a> {
    pub(crate) row: u64,
    pub(crate) stream: u64,
    pub(crate) emitted_at: &'a str,
    pub(crate) layout: &'a StreamLayout,
    pub(crate) body: &'a RecordBody,
}

fn column_integer(body: &RecordBody, field: &FieldName, kind: FieldKind) -> Option<i64> {
    integer_of(&Scalar::from_json(kind, body.get(field.as_str())?)?)
}

/// How the items of an array stand in their column: each once, whatever cannot be compared left out.
fn column_items(raw: &str, kind: FieldKind) -> Vec<String> {
    let mut items: Vec<String> = json::elements(raw)
        .filter_map(|raw| Scalar::from_json(kind, raw))
        .map(|item| item_form(&item))
        .collect();
    items.sort_unstable();
    items.dedup();
    items
}

/// How an item of an array stands in its column: equal items alike.
pub(crate) fn item_form(item: &Scalar) -> String {
    match item {
        Scalar::Boolean(value) => value.to_string(),
        Scalar::Integer(value) => value.to_string(),
        Scalar::Number(value) => format!("{value:?}"),
        Scalar::Text(text) => dictionary_form(text).into_owned(),
        Scalar::Instant(Instant(moment)) => moment.to_string(),
    }
}

/// How a scalar stands in an integer column.
pub(crate) fn integer_of(scalar: &Scalar) -> Option<i64> {
    match scalar {
        Scalar::Boolean(value) => Some(i64::from(*value)),
        Scalar::Integer(value) => Some(*value),
        Scalar::Instant(value) => Some(value.0),
        Scalar::Number(_) | Scalar::Text(_) => None,
    }
}

/// The longest text a dictionary column holds as it is; the engine drops what exceeds 64 KiB.
const LONGEST_ENTRY: usize = 32 * 1024;

/// How a text stands in a dictionary column: a very long one by its beginning and a hash of the whole.
pub(crate) fn dictionary_form(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST_ENTRY {
        return Cow::Borrowed(text);
    }
    let beginning = &text[..text.floor_char_boundary(LONGEST_ENTRY)];
    let hash = Sha256::digest(text.as_bytes());
    Cow::Owned(format!("{beginning}… (sha-256 {})", hex(hash)))
}
