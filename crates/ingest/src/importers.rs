//! The formats that can be imported, one file each.

pub(crate) mod agent_logs;
pub(crate) mod bank;
pub(crate) mod calendar;
pub(crate) mod chatgpt;
pub(crate) mod claude;
pub(crate) mod contacts;
mod content_lines;
mod csv;
pub(crate) mod git;
pub(crate) mod github;
mod html;
mod json_array;
mod json_members;
mod jsonl;
pub(crate) mod mail;
pub(crate) mod markdown;
mod markup;
mod outline;
mod pieces;
pub(crate) mod slack;
pub(crate) mod telegram;
pub(crate) mod whatsapp;

pub use calendar::CalendarImporter;
pub use contacts::ContactsImporter;
pub use csv::CsvImporter;
pub(crate) use csv::Rows;
pub use json_array::JsonArrayImporter;
pub use jsonl::JsonlImporter;
pub use mail::MailImporter;
pub(crate) use outline::Outline;
pub use telegram::TelegramImporter;
pub use whatsapp::WhatsappImporter;
