//! What Google Takeout hands out beside mail, calendars, contacts and notes: what was done with Google's services, where one was, and
//! what was paid and measured. Each is a connector of its own.

mod activity;
mod fit;
mod pay;
mod timeline;

pub(crate) use activity::EXPORT as ACTIVITY;
pub(crate) use fit::EXPORT as FIT;
pub(crate) use pay::EXPORT as PAY;
pub(crate) use timeline::EXPORT as TIMELINE;
