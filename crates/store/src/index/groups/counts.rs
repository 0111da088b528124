//! How many documents each group has, segment by segment, and how groups that are named by texts come together.

use tantivy::columnar::StrColumn;

use super::super::tally::Tally;
use crate::stop;

/// After how many texts cancellation is checked.
const LOOK_EVERY: u32 = 1024;

/// Counts and tallies by group. No tallies are kept where only counts matter.
#[derive(Default)]
pub(super) struct Counts {
    /// Each group counts in four lanes, taken in turns: adding to the same counter twice in a row would stall.
    pub(super) lanes: Vec<[u32; 4]>,
    pub(super) tallies: Vec<Tally>,
    /// Documents seen; those not counted at any other group belong to group 0.
    pub(super) documents: u64,
    /// How often a document was counted beyond the first of its groups.
    pub(super) repeated: u64,
}

impl Counts {
    pub(super) fn sized(groups: usize) -> Self {
        Self {
            lanes: vec![[0; 4]; groups],
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, turn: usize, group: usize) {
        let lanes = self.lanes.get_mut(group);
        if let Some(count) = lanes.and_then(|lanes| lanes.get_mut(turn % 4)) {
            *count += 1;
        }
    }

    pub(super) fn grow(&mut self, groups: usize) {
        if self.lanes.len() < groups {
            self.lanes.resize(groups, [0; 4]);
        }
    }

    /// Gives group 0 the documents that no other group counted.
    pub(super) fn settle(&mut self) {
        let elsewhere: u64 = (1..self.lanes.len()).map(|group| self.count(group)).sum();
        let elsewhere = elsewhere.saturating_sub(self.repeated);
        let rest = self.documents.saturating_sub(elsewhere);
        if let Some(lanes) = self.lanes.first_mut() {
            *lanes = [u32::try_from(rest).unwrap_or(u32::MAX), 0, 0, 0];
        }
    }

    pub(super) fn count(&self, group: usize) -> u64 {
        self.lanes
            .get(group)
            .map_or(0, |lanes| lanes.iter().map(|lane| u64::from(*lane)).sum())
    }
}

pub(super) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX - 1)
}

/// Takes a text, how many records hold it, and their tallies, one per segment.
pub(super) type TextGroup<'a> = dyn FnMut(&[u8], u64, &[Tally]) + 'a;

/// Walks the texts of all segments in one order and hands over each with its total and its tallies.
pub(super) fn merge_texts(
    segments: &[(StrColumn, Counts)],
    each: &mut TextGroup<'_>,
) -> tantivy::Result<()> {
    let mut streams = Vec::with_capacity(segments.len());
    for (column, counts) in segments {
        let mut stream = column.dictionary().stream()?;
        if stream.advance() {
            streams.push((stream, counts));
        }
    }
    let mut text = Vec::new();
    let mut tallies = Vec::new();
    let mut texts = 0_u32;
    while let Some(first) = streams.iter().map(|(stream, _)| stream.key()).min() {
        texts = texts.wrapping_add(1);
        if texts.is_multiple_of(LOOK_EVERY) && stop::asked() {
            break;
        }
        text.clear();
        text.extend_from_slice(first);
        tallies.clear();
        let mut count = 0;
        streams.retain_mut(|(stream, counts)| {
            if stream.key() != text.as_slice() {
                return true;
            }
            let group = index(stream.term_ord()) + 1;
            count += counts.count(group);
            tallies.extend(counts.tallies.get(group));
            stream.advance()
        });
        if count > 0 {
            each(&text, count, &tallies);
        }
    }
    Ok(())
}
