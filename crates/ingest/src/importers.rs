//! The formats that can be imported, one file each.

mod csv;
mod jsonl;
pub(crate) mod mail;
pub(crate) mod telegram;
pub(crate) mod whatsapp;

pub use csv::CsvImporter;
pub use jsonl::JsonlImporter;
pub use mail::MailImporter;
pub use telegram::TelegramImporter;
pub use whatsapp::WhatsappImporter;
