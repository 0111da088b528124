//! PDF: the text of each page, put together from where its letters stand. It is read on a thread of its own, so that whatever a
//! hostile file does to the reader ends there: pages that were read before are kept.

mod bombs;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::metadata::Metadata;
use hayro_interpret::hayro_syntax::object::DateTime;
use hayro_interpret::hayro_syntax::{LoadPdfError, Pdf};
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, SoftMask, interpret_page,
};

use self::bombs::{LARGEST_PART, has_bomb};
use super::{Document, LONGEST_TEXT, MOST_PAGES, Page};
use crate::importers::pieces::{malformed, read_text};
use crate::rejection::Rejection;

/// How long a document may take.
const LONGEST: Duration = Duration::from_secs(30);
/// The thread's room for calls inside calls.
const STACK_BYTES: usize = 64 << 20;
/// Threads that never came back, before no further document is tried.
const MOST_STUCK: usize = 4;

static STUCK: AtomicUsize = AtomicUsize::new(0);

enum Step {
    About(Box<Document>, usize),
    Page(String),
    Failed(&'static str),
}

pub(super) fn read(bytes: &[u8]) -> Result<Document, Rejection> {
    if STUCK.load(Ordering::Relaxed) >= MOST_STUCK {
        return Err(malformed(
            "too many PDFs before it could not be read to their end",
        ));
    }
    if has_bomb(bytes) {
        let largest = LARGEST_PART >> 20;
        return Err(malformed(format!(
            "a part of it unpacks to more than {largest} MiB, or all of it to far more"
        )));
    }
    let stopped = Arc::new(AtomicBool::new(false));
    let (sender, steps) = sync_channel(16);
    let (bytes, flag) = (bytes.to_vec(), Arc::clone(&stopped));
    let reader = thread::Builder::new()
        .name("pdf".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || extract(bytes, &sender, &flag));
    reader.map_err(|error| malformed(format!("there is no thread to read it: {error}")))?;
    let until = Instant::now() + LONGEST;
    let (mut document, mut count) = (None, 0);
    let why = loop {
        match steps.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Step::About(about, pages)) => (document, count) = (Some(*about), pages),
            Ok(Step::Page(text)) => {
                let pages = &mut document.get_or_insert_default().pages;
                let number = Some(pages.len() + 1);
                pages.push(Page {
                    number,
                    heading: None,
                    text,
                });
            }
            Ok(Step::Failed(why)) => return Err(malformed(why)),
            Err(RecvTimeoutError::Disconnected) => break "it is damaged",
            Err(RecvTimeoutError::Timeout) => {
                stopped.store(true, Ordering::Relaxed);
                STUCK.fetch_add(1, Ordering::Relaxed);
                break "it takes too long to read";
            }
        }
    };
    let mut document = document.ok_or_else(|| malformed(why))?;
    let read = document.pages.len();
    if read < count.min(MOST_PAGES) {
        document.note = Some(format!("only {read} of {count} pages are kept: {why}"));
    }
    Ok(document)
}

/// Reads a document and tells what it finds, until nobody listens any more.
fn extract(bytes: Vec<u8>, found: &SyncSender<Step>, stopped: &AtomicBool) {
    let pdf = match Pdf::new(bytes) {
        Ok(pdf) => pdf,
        Err(error) => {
            let why = match error {
                LoadPdfError::Decryption(_) => "it is encrypted",
                LoadPdfError::Invalid => "it is damaged",
            };
            drop(found.send(Step::Failed(why)));
            return;
        }
    };
    let count = pdf.pages().len();
    let about = Box::new(about(pdf.metadata()));
    if found.send(Step::About(about, count)).is_err() {
        return;
    }
    let cache = InterpreterCache::new();
    for page in pdf.pages().iter().take(MOST_PAGES) {
        let mut letters = Letters::new(stopped);
        let mut context = Context::new(
            Affine::IDENTITY,
            Rect::new(0.0, 0.0, 1.0, 1.0),
            &cache,
            pdf.xref(),
            InterpreterSettings::default(),
        );
        interpret_page(page, &mut context, &mut letters);
        if found.send(Step::Page(letters.text)).is_err() {
            return;
        }
    }
}

fn about(metadata: &Metadata) -> Document {
    let said = |bytes: &Option<Box<[u8]>>| {
        let text = bytes.as_deref().map(read_text)?;
        let text = text.trim_matches(['\0', ' ']);
        (!text.is_empty()).then(|| text.to_owned())
    };
    Document {
        title: said(&metadata.title),
        author: said(&metadata.author),
        created_at: metadata.creation_date.as_ref().and_then(moment),
        updated_at: metadata.modification_date.as_ref().and_then(moment),
        ..Document::default()
    }
}

fn moment(time: &DateTime) -> Option<String> {
    let DateTime {
        year,
        month,
        day,
        hour,
        minute,
        second,
        utc_offset_hour: hours,
        utc_offset_minute: minutes,
    } = *time;
    let sign = if hours < 0 { '-' } else { '+' };
    let text = format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{:02}:{minutes:02}",
        hours.unsigned_abs()
    );
    super::office::moment(&text)
}

/// Puts the letters of a page together: a gap is a space, a step down or back is a line.
struct Letters<'f> {
    text: String,
    /// Where the last letter ended, and how large it was.
    end: Option<(Point, f64)>,
    /// The last run of letters, with their places.
    run: Vec<(String, Affine)>,
    stopped: &'f AtomicBool,
}

impl<'f> Letters<'f> {
    fn new(stopped: &'f AtomicBool) -> Self {
        Self {
            text: String::new(),
            end: None,
            run: Vec::new(),
            stopped,
        }
    }

    /// Ends the thread when nobody waits for it any more.
    fn check(&self) {
        if self.stopped.load(Ordering::Relaxed) {
            resume_unwind(Box::new("stopped"));
        }
    }

    fn add(&mut self, text: &str, transform: Affine, advance: f64) {
        // One more than is kept, so that the cut is noticed.
        if text.is_empty() || self.text.len() > LONGEST_TEXT {
            return;
        }
        // A letter is drawn in thousandths of its size.
        let [a, b, ..] = transform.as_coeffs();
        let size = (a * a + b * b).sqrt() * 1000.0;
        let start = transform * Point::ZERO;
        if let Some((end, last_size)) = self.end {
            let (right, up) = (start.x - end.x, start.y - end.y);
            let size = size.max(last_size);
            if up.abs() > 0.5 * size || right < -size {
                let paragraph = up.abs() > 2.0 * size;
                self.gap(if paragraph { "\n\n" } else { "\n" });
            } else if right > 0.15 * size {
                self.gap(" ");
            }
        }
        for character in text.chars() {
            match character {
                '\u{ad}' => self.text.push('-'),
                character if character.is_whitespace() => self.gap(" "),
                character if character.is_control() => {}
                character => self.text.push(character),
            }
        }
        self.end = Some((transform * Point::new(advance, 0.0), size));
    }

    fn gap(&mut self, gap: &str) {
        let kept = self.text.trim_end_matches([' ', '\n']).len();
        let there = self.text.get(kept..).unwrap_or_default();
        // A line is more than a space, and two are more than one.
        let weight = |gap: &str| gap.len() + gap.matches('\n').count();
        if kept > 0 && weight(gap) > weight(there) {
            self.text.truncate(kept);
            self.text.push_str(gap);
        }
    }
}

/// What a letter says; nothing where nobody knows.
fn letter(glyph: &Glyph<'_>) -> String {
    match glyph.as_unicode() {
        Some(BfString::Char(character)) => character.to_string(),
        Some(BfString::String(text)) => text,
        None => String::new(),
    }
}

/// How wide a letter is, in thousandths of its size.
fn advance(glyph: &Glyph<'_>) -> f64 {
    let advance = match glyph {
        Glyph::Outline(glyph) => glyph.advance_width(),
        Glyph::Type3(glyph) => glyph.advance_width(),
    };
    advance.map_or(500.0, f64::from)
}

impl<'a> Device<'a> for Letters<'_> {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        self.check();
        let letters: Vec<(String, Affine)> = run
            .glyphs()
            .iter()
            .map(|glyph| (letter(glyph), props.transform * glyph.transform()))
            .collect();
        // Letters that are filled and outlined, or bold by being drawn twice, come twice.
        let is_again = letters.len() == self.run.len()
            && letters.iter().zip(&self.run).all(|(one, other)| {
                let [here, there] = [one.1, other.1].map(|place| place * Point::ZERO);
                one.0 == other.0 && here.distance(there) < 0.5
            });
        if is_again {
            return;
        }
        for ((text, place), glyph) in letters.iter().zip(run.glyphs()) {
            self.add(text, *place, advance(glyph));
        }
        self.run = letters;
    }
    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {
        self.check();
    }
    fn push_clip_path(&mut self, _: &ClipPath) {
        self.check();
    }
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}
