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

/// The token of a search is written as bytes, so that it is short: the rank, then in five bytes each row, generation, version,
/// digest of what is searched, and when it was made. A score takes four bytes, a time eight.
const SEARCH_NUMBERS: usize = 5;
const SHORT: usize = 5;
const SHORT_MAX: u64 = (1 << (8 * SHORT)) - 1;
/// Stands for the time of what has none.
const NO_TIME: i64 = i64::MIN;

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
        let mut message = match at.rank {
            Rank::Score(score) => score.to_le_bytes().to_vec(),
            Rank::Time(time) => time.map_or(NO_TIME, |time| time.0).to_le_bytes().to_vec(),
        };
        // Only tells tokens apart; it may begin again after twelve days.
        let made = self.now.0.cast_unsigned() & SHORT_MAX;
        let numbers: [u64; SEARCH_NUMBERS] = [at.row, at.generation, at.version, searched, made];
        if numbers.iter().any(|number| *number > SHORT_MAX) {
            return Err(CursorError::Payload);
        }
        message.extend(
            numbers
                .iter()
                .flat_map(|number| number.to_le_bytes().into_iter().take(SHORT)),
        );
        seal::seal_bytes(self.key, TokenKind::Search, &self.binding, &message)
    }

    pub(crate) fn open_search(&self, token: &str) -> Result<(SearchPosition, u64), CursorError> {
        let message = seal::open_bytes(self.key, TokenKind::Search, &self.binding, token)?;
        let opened = || {
            let (rank, numbers) = message.split_last_chunk::<{ SEARCH_NUMBERS * SHORT }>()?;
            let rank = if let [a, b, c, d] = *rank {
                Rank::Score(f32::from_le_bytes([a, b, c, d]))
            } else {
                let time = i64::from_le_bytes(rank.try_into().ok()?);
                Rank::Time(Some(Instant(time)).filter(|_| time != NO_TIME))
            };
            Some((rank, numbers))
        };
        let (rank, numbers) = opened().ok_or(CursorError::Foreign)?;
        let mut numbers = numbers.chunks(SHORT).map(|short| {
            let bytes = short.iter().rev();
            bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
        });
        let mut next = || numbers.next().ok_or(CursorError::Foreign);
        let (row, generation, version, searched) = (next()?, next()?, next()?, next()?);
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
                generation: SHORT_MAX,
                version: 6,
            };
            let token = tokens.search(at, 7).unwrap();
            assert_eq!(tokens.open_search(&token).unwrap(), (at, 7));
            assert!(token.len() <= 66, "{}", token.len());
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
