//! The formats that can be imported, one file each.

mod csv;
mod jsonl;
pub(crate) mod mail;

pub use csv::CsvImporter;
pub use jsonl::JsonlImporter;
pub use mail::MailImporter;
