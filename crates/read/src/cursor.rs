//! Positions, sealed into tokens. A token's length does not depend on anything else in the store. Where a position depends
//! on records the reader cannot see, the token also holds the moment it was made: otherwise two equal tokens, or two
//! different ones, would reveal whether something hidden was written in between.

use contract::key::RecordKey;
use contract::seal::{self, Binding, CursorError, SealingKey, TokenKind};
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use store::records::{PagePosition, SortValue};
use store::search::{Rank, SearchPosition};

/// Seals and opens the tokens of one request.
pub(crate) struct Tokens<'a> {
    pub(crate) key: &'a SealingKey,
    pub(crate) binding: Binding<'a>,
    pub(crate) now: Instant,
}

/// A number as sixteen digits, so that the length of the token does not reveal its size.
#[derive(Debug, Serialize, Deserialize)]
struct Fixed(String);

impl Fixed {
    fn new(number: u64) -> Self {
        Self(format!("{number:016x}"))
    }

    fn read(&self) -> Result<u64, CursorError> {
        u64::from_str_radix(&self.0, 16).map_err(|_| CursorError::Foreign)
    }
}

#[derive(Serialize, Deserialize)]
struct PageToken {
    kind: SortKind,
    sort: Fixed,
    key: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum SortKind {
    #[serde(rename = "i")]
    Integer,
    #[serde(rename = "r")]
    Real,
    #[serde(rename = "m")]
    Missing,
}

#[derive(Serialize, Deserialize)]
struct BookmarkToken {
    version: Fixed,
    made: Fixed,
}

#[derive(Serialize, Deserialize)]
struct ChangesToken {
    since: Fixed,
    until: Fixed,
    after: Fixed,
    made: Fixed,
}

/// The token of a search as bytes, so that it is short: the kind of rank, then rank, row, generation, version, digest of
/// what is searched, and when it was made.
const SEARCH_NUMBERS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangesPosition {
    pub(crate) since: u64,
    /// The horizon its first page fixed.
    pub(crate) until: u64,
    pub(crate) after: u64,
}

impl Tokens<'_> {
    fn made(&self) -> Fixed {
        Fixed::new(self.now.0.cast_unsigned())
    }

    fn seal<T: Serialize>(&self, kind: TokenKind, payload: &T) -> Result<String, CursorError> {
        seal::seal(self.key, kind, &self.binding, payload)
    }

    fn open<T: serde::de::DeserializeOwned>(
        &self,
        kind: TokenKind,
        token: &str,
    ) -> Result<T, CursorError> {
        seal::open(self.key, kind, &self.binding, token)
    }

    /// The next page of a list. Where the order is by key alone, the cursor value stays out of the token.
    pub(crate) fn page(
        &self,
        position: &PagePosition,
        by_cursor: bool,
    ) -> Result<String, CursorError> {
        let (kind, sort) = match position.sort {
            SortValue::Integer(value) if by_cursor => (SortKind::Integer, value.cast_unsigned()),
            SortValue::Real(value) if by_cursor => (SortKind::Real, value.to_bits()),
            _ => (SortKind::Missing, 0),
        };
        let payload = PageToken {
            kind,
            sort: Fixed::new(sort),
            key: position.key.ordering_form(),
        };
        self.seal(TokenKind::Page, &payload)
    }

    pub(crate) fn open_page(&self, token: &str) -> Result<PagePosition, CursorError> {
        let payload: PageToken = self.open(TokenKind::Page, token)?;
        let sort = payload.sort.read()?;
        Ok(PagePosition {
            sort: match payload.kind {
                SortKind::Integer => SortValue::Integer(sort.cast_signed()),
                SortKind::Real => SortValue::Real(f64::from_bits(sort)),
                SortKind::Missing => SortValue::Missing,
            },
            key: RecordKey::from_ordering_form(&payload.key),
        })
    }

    /// The bookmark from which later changes are read.
    pub(crate) fn bookmark(&self, version: u64) -> Result<String, CursorError> {
        let payload = BookmarkToken {
            version: Fixed::new(version),
            made: self.made(),
        };
        self.seal(TokenKind::Changes, &payload)
    }

    pub(crate) fn open_bookmark(&self, token: &str) -> Result<u64, CursorError> {
        let payload: BookmarkToken = self.open(TokenKind::Changes, token)?;
        payload.version.read()
    }

    /// The next page of one reading of changes.
    pub(crate) fn changes(&self, at: ChangesPosition) -> Result<String, CursorError> {
        let payload = ChangesToken {
            since: Fixed::new(at.since),
            until: Fixed::new(at.until),
            after: Fixed::new(at.after),
            made: self.made(),
        };
        self.seal(TokenKind::ChangesPage, &payload)
    }

    pub(crate) fn open_changes(&self, token: &str) -> Result<ChangesPosition, CursorError> {
        let payload: ChangesToken = self.open(TokenKind::ChangesPage, token)?;
        Ok(ChangesPosition {
            since: payload.since.read()?,
            until: payload.until.read()?,
            after: payload.after.read()?,
        })
    }

    /// The next page of a search over these rows and fields.
    pub(crate) fn search(&self, at: SearchPosition, searched: u64) -> Result<String, CursorError> {
        let (kind, rank) = match at.rank {
            Rank::Score(score) => (0_u8, u64::from(score.to_bits())),
            Rank::Time(Some(time)) => (1, time.0.cast_unsigned()),
            Rank::Time(None) => (2, 0),
        };
        let made = self.now.0.cast_unsigned();
        let numbers: [u64; SEARCH_NUMBERS] =
            [rank, at.row, at.generation, at.version, searched, made];
        let numbers = numbers.map(u64::to_le_bytes).concat();
        let message = [[kind].as_slice(), &numbers].concat();
        seal::seal_bytes(self.key, TokenKind::Search, &self.binding, &message)
    }

    pub(crate) fn open_search(&self, token: &str) -> Result<(SearchPosition, u64), CursorError> {
        let message = seal::open_bytes(self.key, TokenKind::Search, &self.binding, token)?;
        let (kind, numbers) = message.split_first().ok_or(CursorError::Foreign)?;
        let (numbers, rest) = numbers.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().copied().map(u64::from_le_bytes).collect();
        let [rank, row, generation, version, searched, _made] =
            <[u64; SEARCH_NUMBERS]>::try_from(numbers).map_err(|_| CursorError::Foreign)?;
        let rank = match (*kind, u32::try_from(rank)) {
            (0, Ok(score)) => Rank::Score(f32::from_bits(score)),
            (1, _) => Rank::Time(Some(Instant(rank.cast_signed()))),
            (2, _) => Rank::Time(None),
            _ => return Err(CursorError::Foreign),
        };
        if !rest.is_empty() {
            return Err(CursorError::Foreign);
        }
        let position = SearchPosition {
            rank,
            row,
            generation,
            version,
        };
        Ok((position, searched))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(key: &SealingKey, now: i64) -> Tokens<'_> {
        Tokens {
            key,
            binding: Binding::default(),
            now: Instant(now),
        }
    }

    #[test]
    fn positions_come_back_and_their_size_does_not_show() {
        let key = SealingKey::from_bytes([7; 32]);
        let tokens = tokens(&key, 5);
        let lengths: Vec<usize> = [0, 9, u64::MAX]
            .map(|version| {
                let token = tokens.bookmark(version).unwrap();
                assert_eq!(tokens.open_bookmark(&token).unwrap(), version);
                token.len()
            })
            .to_vec();
        assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]));
        for rank in [
            Rank::Score(1.25),
            Rank::Time(Some(Instant(-5))),
            Rank::Time(None),
        ] {
            let at = SearchPosition {
                rank,
                row: 3,
                generation: u64::MAX,
                version: 6,
            };
            let token = tokens.search(at, 7).unwrap();
            assert_eq!(tokens.open_search(&token).unwrap(), (at, 7));
            assert!(token.len() <= 120, "{}", token.len());
        }
        let at = PagePosition {
            sort: SortValue::Real(-0.5),
            key: RecordKey::single("k").unwrap(),
        };
        assert_eq!(
            tokens.open_page(&tokens.page(&at, true).unwrap()).unwrap(),
            at
        );
        let hidden = tokens.open_page(&tokens.page(&at, false).unwrap()).unwrap();
        assert_eq!(hidden.sort, SortValue::Missing);
    }

    #[test]
    fn equal_bookmarks_do_not_look_equal() {
        let key = SealingKey::from_bytes([7; 32]);
        assert_ne!(
            tokens(&key, 1).bookmark(3).unwrap(),
            tokens(&key, 2).bookmark(3).unwrap()
        );
    }
}
