//! What the owner says of a table, instead of what would be guessed.

use super::cells::DateOrder;
use super::column::Kind;

/// Each is guessed where it is not said.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// The column that identifies rows.
    pub key: Option<String>,
    pub delimiter: Option<char>,
    /// Whether a row names the columns.
    pub header: Option<bool>,
    /// The sign before the fraction of numbers.
    pub decimal: Option<char>,
    pub dates: Option<WrittenDate>,
    pub types: Vec<(String, ToldType)>,
}

/// In which order dates are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenDate(pub(super) DateOrder);

impl WrittenDate {
    /// `dmy`, `mdy` or `ymd`.
    pub fn parse(name: &str) -> Option<Self> {
        let order = match name {
            "dmy" => DateOrder::DayMonthYear,
            "mdy" => DateOrder::MonthDayYear,
            "ymd" => DateOrder::YearMonthDay,
            _ => return None,
        };
        Some(Self(order))
    }
}

contract::names! {
    pub enum ToldType {
        Text = "text",
        Integer = "integer",
        Number = "number",
        Boolean = "boolean",
        /// A day, with or without a time.
        Date = "date",
    }
}

impl ToldType {
    /// Whether a column was found to hold this.
    pub(super) fn is(self, kind: Kind) -> bool {
        match self {
            Self::Text => kind == Kind::Text,
            Self::Integer => kind == Kind::Integer,
            Self::Number => matches!(kind, Kind::Number(_)),
            Self::Boolean => kind == Kind::Boolean,
            Self::Date => matches!(kind, Kind::Date(_) | Kind::Time(_)),
        }
    }
}

impl Told {
    pub(super) fn type_of(&self, column: &str) -> Option<ToldType> {
        let mut types = self.types.iter();
        types
            .find(|(name, _)| name == column)
            .map(|(_, told)| *told)
    }
}
