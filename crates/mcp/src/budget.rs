//! How much is said: every ceiling of this crate, in bytes of UTF-8 unless the name says otherwise.

/// All text of a search or a page of records.
pub(crate) const LIST_TEXT: usize = 1_800;
pub(crate) const FIGURE_TEXT: usize = 400;
pub(crate) const GROUPS_TEXT: usize = 4_096;
/// The text of a schema, unless the names in it are longer.
pub(crate) const SCHEMA_TEXT: usize = 4_096;
pub(crate) const FULL_SCHEMA_TEXT: usize = 18_000;
/// The structured content of an index, unless the names in it are longer.
pub(crate) const INDEX_STRUCTURED: usize = 8_192;
/// The same of one stream.
pub(crate) const STREAM_STRUCTURED: usize = 12_288;
pub(crate) const FULL_SCHEMA_STRUCTURED: usize = 80_000;
/// What a window's text may add to the window itself.
pub(crate) const WINDOW_FRAME: usize = 1_024;
pub(crate) const ERROR_TEXT: usize = 4_096;
pub(crate) const ERROR_OBJECT: usize = 4_096;
/// A whole result, both channels together; larger values inside it are replaced by previews.
pub(crate) const RESULT: usize = 1_048_576;

pub(crate) const EXCERPT: usize = 320;
/// The excerpt of a hit in `results` and in the ladder, with words around what matched; the whole of it stands in `data`.
pub(crate) const HIT_PREVIEW: usize = 60;
pub(crate) const TITLE: usize = 100;
/// A label, stream or connector in text.
pub(crate) const LABEL: usize = 80;
/// A preview inside structured content.
pub(crate) const PREVIEW: usize = 512;

/// Characters of `fetch.text` that are given whole.
pub(crate) const FETCH_TEXT_CHARS: usize = 100_000;
/// Characters of a record shown as JSON where it has no text of its own.
pub(crate) const FETCH_JSON_CHARS: usize = 1_024;
/// The scalar fields beside a fetched text.
pub(crate) const FETCH_FIELDS: usize = 4_096;
/// Characters a window has when nothing is asked, here and in every continuation we write.
pub(crate) const WINDOW_CHARS: usize = 4_096;

/// The text of a window in structured content, where the caller names no size; what stands around it takes the rest.
pub(crate) const WINDOW_STRUCTURED: usize = 6_656;

/// Entries asked for when the caller names no limit: as many as a text can usually show.
pub(crate) const DEFAULT_LIMIT: u64 = 10;
pub(crate) const MAX_LIMIT: u64 = 100;
pub(crate) const LISTED_CONNECTIONS: usize = 12;

/// The structured content of a search or a page of records, where the caller names no limit.
pub(crate) const DEFAULT_STRUCTURED: usize = 8_192;
/// The same where it names one.
pub(crate) const PAGE_STRUCTURED: usize = 24_576;
