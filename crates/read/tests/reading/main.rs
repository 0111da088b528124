//! What the reader answers, to whom, and what it never says.
#![recursion_limit = "256"]
#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a broken fixture is a failed test, and JSON is written where it is passed"
)]

mod aggregates;
mod changes;
mod cited;
mod conversations;
mod damaged;
mod dates;
mod evidence;
mod fixture;
mod keeping;
mod leaks;
mod meanings;
mod nodes;
mod ordering;
mod paging;
mod pointing;
mod races;
mod refusals;
mod ruled;
mod schemas;
mod shapes;
mod shut;
mod sizes;
mod sources;
mod windows;
