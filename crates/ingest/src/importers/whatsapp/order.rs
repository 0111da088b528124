//! Which number of a date is the day. Phones write `1/2/24` and `2/1/24` for one day, and no export says which it is;
//! its dates do, taken together.

use std::cmp::Ordering;

use super::stamp::Stamp;

/// Which of the first two numbers of a date is the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateOrder {
    DayMonthYear,
    MonthDayYear,
    YearMonthDay,
}

impl DateOrder {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::DayMonthYear => "day/month/year",
            Self::MonthDayYear => "month/day/year",
            Self::YearMonthDay => "year/month/day",
        }
    }
}

/// What the dates of an export tell about their order.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    first: Option<Stamp>,
    last: Option<Stamp>,
    /// Dates whose first number can only be a day, and whose second can.
    days_first: u64,
    days_second: u64,
    /// Steps back in time if the day is first, and if the month is.
    back_day_first: u64,
    back_month_first: u64,
}

impl Evidence {
    /// Takes in the next date of the file.
    pub(super) fn add(&mut self, stamp: Stamp) {
        let (first, second) = stamp.undecided();
        self.days_first += u64::from(first > 12);
        self.days_second += u64::from(second > 12);
        if let Some(last) = self.last {
            let back = |order| {
                let date = |stamp: Stamp| stamp.read_as(order).date();
                u64::from(date(stamp) < date(last))
            };
            self.back_day_first += back(DateOrder::DayMonthYear);
            self.back_month_first += back(DateOrder::MonthDayYear);
        }
        self.first.get_or_insert(stamp);
        self.last = Some(stamp);
    }

    /// Whether looking further cannot tell more.
    pub(super) fn is_enough(&self) -> bool {
        let speaks = |first: Stamp| first.is_year_first() || !first.has_slashes();
        self.days_first != self.days_second || self.first.is_some_and(speaks)
    }

    /// The order, and whether the dates prove it. Messages stand in the order they were sent, so an order in which time
    /// never runs backwards is preferred to one in which it does. Where nothing tells, dates written the American way
    /// have the month first, and all others the day.
    pub(super) fn order(&self) -> (DateOrder, bool) {
        let (day, month) = (DateOrder::DayMonthYear, DateOrder::MonthDayYear);
        let Some(first) = self.first else {
            return (day, true);
        };
        if first.is_year_first() {
            return (DateOrder::YearMonthDay, true);
        }
        match self.days_first.cmp(&self.days_second) {
            Ordering::Greater => return (day, true),
            Ordering::Less => return (month, true),
            Ordering::Equal => {}
        }
        // Only Americans put the month first, and they write neither dots nor dashes.
        if !first.has_slashes() {
            return (day, true);
        }
        match (self.back_day_first, self.back_month_first) {
            (0, 1..) => (day, true),
            (1.., 0) => (month, true),
            _ if first.is_american() => (month, false),
            _ => (day, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importers::whatsapp::stamp;

    fn order_of(lines: &[&str]) -> (DateOrder, bool) {
        let mut evidence = Evidence::default();
        for line in lines {
            evidence.add(stamp::read(line).unwrap().0);
        }
        evidence.order()
    }

    #[test]
    fn the_order_of_a_date_is_proven_by_a_day_beyond_the_twelfth() {
        let (day, month) = (DateOrder::DayMonthYear, DateOrder::MonthDayYear);
        for (lines, order, certain) in [
            (&["1/2/24, 9:15 - x", "13/2/24, 9:15 - x"][..], day, true),
            (&["1/2/24, 9:15 - x", "1/13/24, 9:15 - x"], month, true),
            (&["2024-01-02, 9:15 - x"], DateOrder::YearMonthDay, true),
            (&["1.2.24, 9:15 - x"], day, true),
            // Time does not run backwards.
            (&["9/1/24, 9:15 - x", "3/2/24, 9:15 - x"], day, true),
            (&["1/9/24, 9:15 - x", "2/3/24, 9:15 - x"], month, true),
            // Nothing tells.
            (&["1/2/24, 9:15 PM - x"], month, false),
            (&["01/02/2024, 9:15 pm - x"], day, false),
            (&["1/2/24, 21:15 - x"], day, false),
            (&[], day, true),
        ] {
            assert_eq!(order_of(lines), (order, certain), "{lines:?}");
        }
    }
}
