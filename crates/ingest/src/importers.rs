//! The formats that can be imported, one file each.

pub(crate) mod calendar;
pub(crate) mod contacts;
mod content_lines;
mod csv;
mod html;
mod jsonl;
pub(crate) mod mail;
pub(crate) mod telegram;
pub(crate) mod whatsapp;

pub use calendar::CalendarImporter;
pub use contacts::ContactsImporter;
pub use csv::CsvImporter;
pub use jsonl::JsonlImporter;
pub use mail::MailImporter;
pub use telegram::TelegramImporter;
pub use whatsapp::WhatsappImporter;
