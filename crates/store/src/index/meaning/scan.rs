//! The bits of all vectors in memory, and one pass over them that finds those nearest to a question.

use std::collections::HashMap;

use contract::id::FieldName;

use crate::index::finding::RowSet;
use crate::stop;

/// The number of a kind that no vector has.
const GONE: u16 = u16::MAX;
/// How many distances are computed between two looks whether the search is still wanted.
const BLOCK: usize = 16_384;
/// When as many vectors are gone as this share of all, the rest is moved together.
const MOST_GONE: usize = 4;

/// Vectors of one field of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) stream: i64,
    pub(super) field: FieldName,
    pub(super) signing: Signing,
}

/// Whether a vector also says who speaks. Where records are parts of conversations, how a text begins has two vectors: one
/// with the name of its author, and one without it for those who may not see the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signing {
    /// There is no other.
    Plain,
    /// The text alone, of which there is one that is signed with this field.
    Unsigned(FieldName),
    /// With the name of the author, from this field.
    Signed(FieldName),
}

impl Signing {
    /// As it is written in the file of vectors.
    pub(super) fn file_text(&self) -> String {
        match self {
            Self::Plain => "plain".to_owned(),
            Self::Unsigned(field) => format!("unsigned {field}"),
            Self::Signed(field) => format!("signed {field}"),
        }
    }

    pub(super) fn read(written: &str) -> Option<Self> {
        let Some((signing, field)) = written.split_once(' ') else {
            return (written == "plain").then_some(Self::Plain);
        };
        let field = FieldName::parse(field).ok()?;
        match signing {
            "unsigned" => Some(Self::Unsigned(field)),
            "signed" => Some(Self::Signed(field)),
            _ => None,
        }
    }

    /// Whether it is for those who see this author.
    pub(super) fn is_for(&self, author: Option<&FieldName>) -> bool {
        match self {
            Self::Plain => true,
            Self::Unsigned(field) => author != Some(field),
            Self::Signed(field) => author == Some(field),
        }
    }
}

/// One vector, as it is held.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) id: i64,
    pub(super) kind: u16,
    pub(super) bits: Vec<u64>,
}

/// Where the vectors of a record stand.
#[derive(Debug, Clone, Copy)]
struct Placed {
    /// The change of the record that they were made of.
    version: u64,
    first: usize,
    count: usize,
}

/// All vectors, one after another; those of one record side by side.
#[derive(Debug, Default)]
pub(super) struct Table {
    words: usize,
    bits: Vec<u64>,
    kinds: Vec<u16>,
    rows: Vec<u64>,
    ids: Vec<i64>,
    by_row: HashMap<u64, Placed>,
    gone: usize,
}

/// Which vectors of a kind may be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    None,
    All,
    /// Those of rows that the set holds.
    Listed,
}

/// What a pass looks for.
pub(super) struct Wanted<'a> {
    pub(super) bits: &'a [u64],
    /// By number of the kind.
    pub(super) kinds: &'a [Admission],
    pub(super) rows: &'a RowSet,
    /// How many vectors are wanted.
    pub(super) count: usize,
    /// How many there are at most, where many are as near as the last one.
    pub(super) most: usize,
}

/// A vector that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Near {
    pub(super) row: u64,
    pub(super) id: i64,
}

impl Table {
    pub(super) fn new(words: usize) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }

    /// How many vectors there are.
    pub(super) fn len(&self) -> usize {
        self.kinds.len() - self.gone
    }

    /// The vectors of a record, in place of those it had.
    pub(super) fn put(&mut self, row: u64, version: u64, entries: &[Entry]) {
        self.remove(row);
        if entries.is_empty() {
            return;
        }
        let first = self.kinds.len();
        for entry in entries {
            self.bits.extend_from_slice(&entry.bits);
            self.kinds.push(entry.kind);
            self.rows.push(row);
            self.ids.push(entry.id);
        }
        let count = entries.len();
        let placed = Placed {
            version,
            first,
            count,
        };
        self.by_row.insert(row, placed);
    }

    pub(super) fn remove(&mut self, row: u64) {
        let Some(placed) = self.by_row.remove(&row) else {
            return;
        };
        self.leave_out(&placed, &[]);
        self.compact_if_worth_it();
    }

    /// Marks the vectors of a record as gone, but for those of some kinds. Returns how many stay.
    fn leave_out(&mut self, placed: &Placed, stay: &[u16]) -> usize {
        let mut left = 0;
        let own = placed.first..placed.first + placed.count;
        for kind in self.kinds.get_mut(own).into_iter().flatten() {
            if stay.contains(kind) {
                left += 1;
            } else if *kind != GONE {
                *kind = GONE;
                self.gone += 1;
            }
        }
        left
    }

    fn compact_if_worth_it(&mut self) {
        if self.gone > 1_000 && self.gone > self.kinds.len() / MOST_GONE {
            self.compact();
        }
    }

    /// The version of a record that its vectors were made of.
    pub(super) fn version_of(&self, row: u64) -> Option<u64> {
        self.by_row.get(&row).map(|placed| placed.version)
    }

    /// Removes the vectors of a record that were made of an earlier form of it, but for those of kinds that said the same then.
    pub(super) fn remove_before(&mut self, row: u64, version: u64, same: &[u16]) {
        let Some(mut placed) = self.by_row.get(&row).copied() else {
            return;
        };
        if placed.version >= version {
            return;
        }
        placed.version = version;
        if self.leave_out(&placed, same) > 0 {
            self.by_row.insert(row, placed);
        } else {
            self.by_row.remove(&row);
        }
        self.compact_if_worth_it();
    }

    /// Removes all vectors of some kinds.
    pub(super) fn remove_kinds(&mut self, kinds: &[u16]) {
        let of_kind = self.kinds.iter().zip(&self.rows);
        let rows: Vec<u64> = of_kind
            .filter(|(kind, _)| kinds.contains(kind))
            .map(|(_, row)| *row)
            .collect();
        for row in rows {
            self.remove(row);
        }
    }

    fn compact(&mut self) {
        let mut kept = Self::new(self.words);
        let mut places: Vec<(u64, Placed)> = self.by_row.drain().collect();
        places.sort_unstable_by_key(|(_, placed)| placed.first);
        for (row, placed) in places {
            let entries: Vec<Entry> = (placed.first..placed.first + placed.count)
                .filter(|at| self.kinds.get(*at).is_some_and(|kind| *kind != GONE))
                .filter_map(|at| {
                    Some(Entry {
                        id: *self.ids.get(at)?,
                        kind: *self.kinds.get(at)?,
                        bits: self.bits_at(at)?.to_vec(),
                    })
                })
                .collect();
            kept.put(row, placed.version, &entries);
        }
        *self = kept;
    }

    fn bits_at(&self, at: usize) -> Option<&[u64]> {
        self.bits.get(at * self.words..(at + 1) * self.words)
    }

    /// Of a record's admitted vectors, the one whose bits are nearest; the first of equals.
    pub(super) fn nearest_of(&self, row: u64, wanted: &Wanted<'_>) -> Option<Near> {
        let placed = self.by_row.get(&row)?;
        let own = placed.first..placed.first + placed.count;
        let admitted = own.filter(|at| {
            let kind = self.kinds.get(*at).copied().unwrap_or(GONE);
            wanted.admits(kind, row)
        });
        let at =
            admitted.min_by_key(|at| self.bits_at(*at).map(|bits| distance(bits, wanted.bits)))?;
        Some(Near {
            row,
            id: *self.ids.get(at)?,
        })
    }

    /// The nearest vectors that are admitted, in no particular order. Those as near as the last one that is wanted are all
    /// there, so that nothing but their content decides; only beyond `most` the records that came first are taken.
    pub(super) fn nearest(&self, wanted: &Wanted<'_>) -> Vec<Near> {
        let farthest = self.words * 64;
        let mut distances: Vec<u16> = Vec::with_capacity(self.kinds.len());
        let mut counts = vec![0_usize; farthest + 1];
        let words = self.words.max(1);
        for (kinds, (rows, bits)) in self
            .kinds
            .chunks(BLOCK)
            .zip(self.rows.chunks(BLOCK).zip(self.bits.chunks(BLOCK * words)))
        {
            if stop::asked() {
                return Vec::new();
            }
            measure(bits, wanted.bits, &mut distances);
            let from = distances.len() - kinds.len();
            let measured = distances.get_mut(from..).unwrap_or_default();
            for ((distance, kind), row) in measured.iter_mut().zip(kinds).zip(rows) {
                if wanted.admits(*kind, *row) {
                    if let Some(count) = counts.get_mut(usize::from(*distance)) {
                        *count += 1;
                    }
                } else {
                    *distance = u16::MAX;
                }
            }
        }
        let mut sum = 0;
        let last = counts.iter().position(|count| {
            sum += count;
            sum >= wanted.count
        });
        let last = u16::try_from(last.unwrap_or(farthest)).unwrap_or(u16::MAX - 1);
        let found = distances.iter().zip(self.rows.iter().zip(&self.ids));
        let mut found: Vec<(u16, Near)> = found
            .filter(|(distance, _)| **distance <= last)
            .map(|(distance, (row, id))| (*distance, Near { row: *row, id: *id }))
            .collect();
        if found.len() > wanted.most {
            found.sort_unstable_by_key(|(distance, near)| (*distance, near.row, near.id));
            found.truncate(wanted.most);
        }
        found.into_iter().map(|(_, near)| near).collect()
    }
}

impl Wanted<'_> {
    fn admits(&self, kind: u16, row: u64) -> bool {
        match self.kinds.get(usize::from(kind)) {
            None | Some(Admission::None) => false,
            Some(Admission::All) => true,
            Some(Admission::Listed) => self.rows.contains(row),
        }
    }
}

/// A pass over vectors that are all of one kind, as a search makes it; for measuring.
pub struct VectorScan(Table);

impl VectorScan {
    /// No vectors yet, of so many bits each.
    pub fn new(dimensions: usize) -> Self {
        Self(Table::new(super::quantize::words_for(dimensions)))
    }

    /// Adds a vector.
    pub fn add(&mut self, row: u64, bits: &[u64]) {
        let entry = Entry {
            id: row.cast_signed(),
            kind: 0,
            bits: bits.to_vec(),
        };
        self.0.put(row, 0, &[entry]);
    }

    /// Looks for so many nearest ones, and returns how many there are.
    pub fn nearest(&self, bits: &[u64], count: usize) -> usize {
        let wanted = Wanted {
            bits,
            kinds: &[Admission::All],
            rows: &RowSet::default(),
            count,
            most: count * 4,
        };
        self.0.nearest(&wanted).len()
    }
}

/// In how many bits two vectors differ.
fn distance(one: &[u64], other: &[u64]) -> u32 {
    let words = one.iter().zip(other);
    words.map(|(one, other)| (one ^ other).count_ones()).sum()
}

/// Adds the distance of each vector to those that are known. A length that the compiler knows is much faster.
fn measure(vectors: &[u64], asked: &[u64], distances: &mut Vec<u16>) {
    match asked.len() {
        4 => measure_words::<4>(vectors, asked, distances),
        6 => measure_words::<6>(vectors, asked, distances),
        8 => measure_words::<8>(vectors, asked, distances),
        12 => measure_words::<12>(vectors, asked, distances),
        16 => measure_words::<16>(vectors, asked, distances),
        words => {
            let vectors = vectors.chunks_exact(words.max(1));
            distances.extend(vectors.map(|vector| short(distance(vector, asked))));
        }
    }
}

fn measure_words<const WORDS: usize>(vectors: &[u64], asked: &[u64], distances: &mut Vec<u16>) {
    let (vectors, _) = vectors.as_chunks::<WORDS>();
    let Some(asked) = asked.first_chunk::<WORDS>() else {
        return;
    };
    distances.extend(vectors.iter().map(|vector| {
        let mut sum = 0;
        for (one, other) in vector.iter().zip(asked) {
            sum += (one ^ other).count_ones();
        }
        short(sum)
    }));
}

/// A vector has at most some thousand bits.
fn short(distance: u32) -> u16 {
    u16::try_from(distance).unwrap_or(u16::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: i64, kind: u16, bits: u64) -> Entry {
        Entry {
            id,
            kind,
            bits: vec![bits],
        }
    }

    fn wanted<'a>(bits: &'a [u64], kinds: &'a [Admission], rows: &'a RowSet) -> Wanted<'a> {
        Wanted {
            bits,
            kinds,
            rows,
            count: 2,
            most: 4,
        }
    }

    fn ids(mut found: Vec<Near>) -> Vec<i64> {
        found.sort_unstable_by_key(|near| near.id);
        found.into_iter().map(|near| near.id).collect()
    }

    #[test]
    fn only_admitted_vectors_are_found_and_all_that_are_as_near_as_the_last() {
        let mut table = Table::new(1);
        for (row, bits) in [
            (1, 0b1111),
            (2, 0b0111),
            (3, 0b0011),
            (4, 0b0001),
            (5, 0b1000),
        ] {
            let id = i64::try_from(row).unwrap();
            table.put(row, 1, &[entry(id * 10, u16::from(row == 1), bits)]);
        }
        let mut rows = RowSet::default();
        let all = [Admission::All, Admission::All];
        assert_eq!(
            ids(table.nearest(&wanted(&[0b1111], &all, &rows))),
            [10, 20]
        );
        let first = [Admission::All, Admission::None];
        // Rows 4 and 5 are equally far.
        let mut three = wanted(&[0b1111], &first, &rows);
        three.count = 3;
        assert_eq!(ids(table.nearest(&three)), [20, 30, 40, 50]);
        three.most = 3;
        assert_eq!(ids(table.nearest(&three)), [20, 30, 40]);
        rows.insert(3);
        rows.insert(1);
        let listed = [Admission::Listed, Admission::None];
        assert_eq!(ids(table.nearest(&wanted(&[0b1111], &listed, &rows))), [30]);
        assert!(!rows.contains(1_000_000) && !rows.contains(2));
    }

    #[test]
    fn vectors_are_replaced_and_removed_by_record() {
        let mut table = Table::new(1);
        table.put(1, 1, &[entry(1, 0, 0), entry(2, 0, 1)]);
        table.put(2, 1, &[entry(3, 1, 1)]);
        table.put(1, 2, &[entry(4, 0, 1)]);
        assert_eq!(table.len(), 2);
        let rows = RowSet::default();
        let all = [Admission::All, Admission::All];
        assert_eq!(ids(table.nearest(&wanted(&[1], &all, &rows))), [3, 4]);
        table.remove_before(1, 2, &[]);
        assert_eq!(table.len(), 2);
        table.remove_before(1, 3, &[0]);
        assert_eq!((table.len(), table.version_of(1)), (2, Some(3)));
        table.remove_before(1, 4, &[1]);
        assert_eq!((table.len(), table.version_of(1)), (1, None));
        assert_eq!(ids(table.nearest(&wanted(&[1], &all, &rows))), [3]);
        table.remove_kinds(&[1]);
        assert_eq!(table.len(), 0);
        assert_eq!(table.nearest_of(2, &wanted(&[1], &all, &rows)), None);
    }

    #[test]
    fn what_is_gone_is_moved_together_from_time_to_time() {
        let mut table = Table::new(1);
        for row in 0..5_000 {
            table.put(row, 1, &[entry(row.cast_signed(), 0, row)]);
        }
        for row in 0..4_000 {
            table.remove(row);
        }
        assert_eq!(table.len(), 1_000);
        assert!(table.kinds.len() < 2_500, "{}", table.kinds.len());
        let rows = RowSet::default();
        let found = table.nearest_of(4_321, &wanted(&[1], &[Admission::All], &rows));
        assert_eq!(found.map(|near| near.id), Some(4_321));
    }

    #[test]
    fn every_length_of_vector_is_measured_alike() {
        for words in 1..=17_usize {
            let asked: Vec<u64> = (0..words as u64)
                .map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect();
            let vectors: Vec<u64> = (0..words as u64 * 3)
                .map(|at| at.wrapping_mul(0xbf58_476d_1ce4_e5b9))
                .collect();
            let mut found = Vec::new();
            measure(&vectors, &asked, &mut found);
            let expected = vectors
                .chunks(words)
                .map(|vector| short(distance(vector, &asked)));
            assert_eq!(found, expected.collect::<Vec<_>>(), "{words}");
        }
    }
}
