//! Which fields a search looks at, and how much the words of each count.

use std::collections::BTreeMap;

use super::engine::OpenIndex;
use super::finding::{AUTHOR_FACTOR, Factors, SearchedField};
use super::layout::SlotKind;
use super::sources::Sources;
use crate::Result;
use crate::search::Scope;

/// The fields that are searched, with how much each counts in which stream. While a stream is being indexed again, its
/// documents may still hold words of fields it no longer searches; then each stream is looked at by itself.
pub(super) fn searched_fields(
    sources: &Sources,
    open: &OpenIndex,
    scopes: &[Scope],
    rebuilding: bool,
) -> Result<Vec<SearchedField>> {
    let mut by_slot: BTreeMap<usize, Vec<(u64, f32)>> = BTreeMap::new();
    for scope in scopes {
        let entry = sources.stream(&scope.stream)?;
        let slots = entry.layout.slots.iter();
        for slot in slots.filter(|slot| slot.kind == SlotKind::Text) {
            let factor = match (scope.fields.contains(&slot.field), &scope.author) {
                (false, _) => 0.0,
                (true, Some(author)) if *author == slot.field => AUTHOR_FACTOR,
                (true, _) => 1.0,
            };
            let streams = by_slot.entry(slot.number).or_default();
            streams.push((entry.id.cast_unsigned(), factor));
        }
    }
    let mut fields = Vec::with_capacity(by_slot.len());
    for (slot, streams) in by_slot {
        let Some(field) = open.fields.slot(SlotKind::Text, slot) else {
            continue;
        };
        if streams.iter().all(|(_, factor)| *factor == 0.0) {
            continue;
        }
        fields.push(SearchedField {
            field,
            factors: factors(&streams, rebuilding),
        });
    }
    Ok(fields)
}

fn factors(streams: &[(u64, f32)], rebuilding: bool) -> Factors {
    if let (Some((_, first)), false) = (streams.first(), rebuilding)
        && streams
            .iter()
            .all(|(_, factor)| factor.to_bits() == first.to_bits())
    {
        return Factors::Uniform(*first);
    }
    let mut factors = Vec::new();
    for (stream, factor) in streams {
        let at = usize::try_from(*stream).unwrap_or(usize::MAX - 1);
        if factors.len() <= at {
            factors.resize(at + 1, 0.0);
        }
        if let Some(entry) = factors.get_mut(at) {
            *entry = *factor;
        }
    }
    Factors::ByStream(factors)
}
