//! The formats that can be imported, one file each.

mod csv;
mod jsonl;

pub use csv::CsvImporter;
pub use jsonl::JsonlImporter;
