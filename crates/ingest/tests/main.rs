//! Importing: each format, and the rules that hold for all of them, in one program that is linked once.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod ages;
mod archives;
mod browser;
mod calendar;
mod chats;
mod contacts;
mod containers;
mod csv;
mod formats;
mod fuzzing;
mod git;
mod imports;
mod inference;
mod keys;
mod lines;
mod mail;
mod memory;
mod recurrence;
mod several;
mod sheets;
mod telegram;
mod whatsapp;
