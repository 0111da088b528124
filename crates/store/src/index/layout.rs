//! Where each declared field lives in the index.
//!
//! All streams share one index with a fixed set of generic slots: the first lexical field of every stream goes
//! to text slot 0, and so on. That keeps the number of index fields small however many sources there are, lets one query
//! rank over all of them, and still tells fields apart, because a scope names the slots it may look at per stream.
//! Slots are only ever added to a stream, so an index stays readable while a later declaration is being indexed.

use std::collections::BTreeMap;
use std::hash::Hasher as _;

use contract::declaration::{Semantics, StreamDeclaration};
use contract::id::FieldName;
use contract::scalar::FieldKind;
use siphasher::sip::SipHasher13;

contract::names! {
    #[derive(PartialOrd, Ord, Hash)]
    pub(crate) enum SlotKind {
        /// Words with positions.
        Text = "text",
        /// Booleans, integers and instants.
        Integer = "integer",
        /// Numbers with a fraction.
        Number = "number",
        /// Whole strings, for grouping and counting distinct values.
        Strings = "strings",
        /// A keyed 64-bit hash of a string, for equality only: a body of 50 KB needs no dictionary entry.
        Hash = "hash",
        /// The items of an array, each as a text: many values in one document.
        Items = "items",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldSlot {
    pub(crate) field: FieldName,
    /// The kind of the field; of an array, that of its items.
    pub(crate) field_kind: FieldKind,
    pub(crate) kind: SlotKind,
    pub(crate) number: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct StreamLayout {
    pub(crate) slots: Vec<FieldSlot>,
    pub(crate) cursor: Option<(FieldName, FieldKind)>,
    pub(crate) append_only: bool,
    /// The fields whose meaning is compared.
    pub(crate) semantic: Vec<FieldName>,
    /// The field that names who speaks, where records are parts of conversations.
    pub(crate) speaker: Option<FieldName>,
}

pub(crate) type TakenSlots = BTreeMap<(FieldName, SlotKind), usize>;

impl StreamLayout {
    /// The layout for a declaration; fields that have no slot yet get the next free one, recorded in `taken`.
    pub(crate) fn derive(stream: &StreamDeclaration, taken: &mut TakenSlots) -> Self {
        let slots = wanted(stream)
            .into_iter()
            .map(|(field, field_kind, kind)| {
                let next = taken.keys().filter(|(_, other)| *other == kind).count();
                let number = *taken.entry((field.clone(), kind)).or_insert(next);
                FieldSlot {
                    field,
                    field_kind,
                    kind,
                    number,
                }
            })
            .collect();
        let cursor = stream.cursor_field.as_ref().and_then(|name| {
            let field = stream.field(name.as_str())?;
            Some((name.clone(), field.kind))
        });
        Self {
            slots,
            cursor,
            semantic: stream.semantic_fields(),
            speaker: stream.speaker().cloned(),
            append_only: stream.semantics == Semantics::AppendOnly,
        }
    }

    /// Says whether two layouts make the same documents; kept with an index.
    pub(crate) fn digest(&self) -> u64 {
        let mut slots: Vec<String> = self
            .slots
            .iter()
            .map(|slot| {
                let (field, kind) = (slot.field.as_str(), slot.kind.as_str());
                format!("{kind} {} {:?} {field}", slot.number, slot.field_kind)
            })
            .collect();
        slots.sort_unstable();
        let mut hasher = SipHasher13::new();
        hasher.write(slots.join("\n").as_bytes());
        hasher.finish()
    }

    pub(crate) fn slot(&self, field: &FieldName, kind: SlotKind) -> Option<&FieldSlot> {
        self.slots
            .iter()
            .find(|slot| slot.kind == kind && slot.field == *field)
    }
}

/// Every scalar field is filterable, so every scalar field has a column, and an array where it is declared so; lexical
/// fields have words besides.
fn wanted(stream: &StreamDeclaration) -> Vec<(FieldName, FieldKind, SlotKind)> {
    let mut wanted = Vec::new();
    for name in &stream.query.lexical_fields {
        if let Some(field) = stream.field(name.as_str()) {
            wanted.push((name.clone(), field.kind, SlotKind::Text));
        }
    }
    for field in &stream.fields {
        let counted_by_value = stream.counts_values_of(&field.name);
        let textual = matches!(
            field.kind,
            FieldKind::Text | FieldKind::Date | FieldKind::DateTime
        );
        let column = match field.kind {
            FieldKind::Boolean | FieldKind::Integer | FieldKind::Date | FieldKind::DateTime => {
                Some(SlotKind::Integer)
            }
            FieldKind::Number => Some(SlotKind::Number),
            FieldKind::Text if counted_by_value => None,
            FieldKind::Text => Some(SlotKind::Hash),
            FieldKind::Object | FieldKind::Array | FieldKind::Mixed => None,
        };
        let by_items = stream.query.range_filters.contains_key(&field.name) || counted_by_value;
        if let Some(items) = field.items.filter(|_| by_items) {
            wanted.push((field.name.clone(), items, SlotKind::Items));
        }
        if let Some(kind) = column {
            wanted.push((field.name.clone(), field.kind, kind));
        }
        // A consent time may be declared as a plain string; grants still restrict by the instant it names.
        if field.kind == FieldKind::Text && stream.consent_time_field.as_ref() == Some(&field.name)
        {
            wanted.push((field.name.clone(), FieldKind::DateTime, SlotKind::Integer));
        }
        if textual && counted_by_value {
            wanted.push((field.name.clone(), field.kind, SlotKind::Strings));
        }
    }
    wanted
}
