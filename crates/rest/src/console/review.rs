//! The review: who would get what, with samples of the records they would see.

use contract::grant::{AccessMode, Authority, GrantedAuthority, GrantedRow, GrantedStream};
use contract::query::{Count, ListOptions, PageLimit, Reading, RecordsQuery};
use contract::reader::ReadContract as _;
use contract::record::Record;
use grants::oauth::{Client, ClientTrust, GrantFlow, PendingRequest, Review};
use grants::{Draft, Wording};
use read::GrantReader;

use super::format::{Member, format_count, label, members, visible};
use super::moment::Moment;
use crate::problem::Problem;
use crate::service::Service;

const SAMPLES: u32 = 3;
/// How many streams are shown with records; the others only with their count.
const SAMPLED_STREAMS: usize = 40;
/// The longest value shown, in characters.
const VALUE_CHARS: usize = 160;

/// The application that asks, and how far its identity is proven.
pub(super) struct Requester {
    pub(super) name: String,
    /// Whether `name` is the application's own claim, and not its id.
    pub(super) named: bool,
    pub(super) id: String,
    pub(super) sure: String,
    /// When it registered itself, if it did.
    pub(super) registered: Option<Moment>,
    pub(super) grade: Grade,
    pub(super) answer_to: String,
}

/// How far an application's identity is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grade {
    /// Control of a web address proves it.
    Proven,
    /// A program on this computer, which proves nothing about itself.
    Local,
    /// Anybody on the internet could have registered so.
    Unproven,
}

impl Grade {
    /// The class of the sentence that says so.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Local => "care",
            Self::Unproven => "mistake",
        }
    }
}

impl Requester {
    pub(super) fn from_request(asked: &PendingRequest) -> Self {
        let Client {
            client_id,
            client_name,
            trust,
            ..
        } = &asked.client;
        let is_local = match &asked.flow {
            GrantFlow::Device => false,
            GrantFlow::Code { back, .. } => is_on_this_computer(origin(&back.redirect_uri)),
        };
        let (sure, registered) = match trust {
            ClientTrust::Document { origin } => (
                format!(
                    "It is published at {}: whoever controls that address made it.",
                    label(origin)
                ),
                None,
            ),
            ClientTrust::Registered { at } => {
                let sure = "Anybody could have registered under this name.";
                (sure.to_owned(), Moment::new(*at))
            }
        };
        let grade = match trust {
            ClientTrust::Document { .. } => Grade::Proven,
            ClientTrust::Registered { .. } if is_local => Grade::Local,
            ClientTrust::Registered { .. } => Grade::Unproven,
        };
        let answer_to = match &asked.flow {
            GrantFlow::Device => "The answer goes to the device that showed you the code. Make sure that it is yours.".to_owned(),
            GrantFlow::Code { back, .. } => match origin(&back.redirect_uri) {
                origin if is_loopback(origin) => {
                    "The answer goes to a program on the computer this browser runs on.".to_owned()
                }
                origin if origin.starts_with("http") => {
                    format!("The answer goes to {}.", label(origin))
                }
                scheme => format!(
                    "The answer goes to the program on this computer that opens addresses beginning with {}",
                    label(scheme)
                ),
            },
        };
        Self {
            name: label(client_name.as_deref().unwrap_or(client_id.as_str())),
            named: client_name.is_some(),
            id: label(client_id.as_str()),
            sure,
            registered,
            grade,
            answer_to,
        }
    }
}

/// Scheme, host and port of an address that was validated at registration. An address that is not `http` or `https`
/// has no origin; then its scheme.
pub(crate) fn origin(address: &str) -> &str {
    if !address.starts_with("https://") && !address.starts_with("http://") {
        let scheme = address.find(':').and_then(|end| address.get(..=end));
        return scheme.unwrap_or_default();
    }
    let after = address.find("://").map_or(0, |at| at + 3);
    let rest = address.get(after..).unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    address.get(..after + end).unwrap_or(address)
}

/// Whether an answer goes to a program on the computer of the browser, whatever it is: at a port, or for a scheme of its own.
fn is_on_this_computer(origin: &str) -> bool {
    is_loopback(origin) || !origin.starts_with("http")
}

fn is_loopback(origin: &str) -> bool {
    ["http://127.0.0.1", "http://localhost", "http://[::1]"]
        .iter()
        .any(|host| {
            origin
                .strip_prefix(host)
                .is_some_and(|port| port.is_empty() || port.starts_with(':'))
        })
}

/// The purpose, in the application's words.
pub(super) struct Purpose {
    pub(super) code: String,
    pub(super) said: String,
    pub(super) training: bool,
}

impl Purpose {
    pub(super) fn from_draft(draft: &Draft) -> Self {
        Self {
            code: visible(&draft.purpose_code),
            said: visible(draft.purpose_description.as_deref().unwrap_or_default()),
            training: draft.purpose_code.ends_with("/purpose/ai_training"),
        }
    }
}

pub(super) struct StreamPreview {
    pub(super) source: String,
    pub(super) stream: String,
    pub(super) total: String,
    /// All that would be granted of it, in words.
    pub(super) words: String,
    pub(super) samples: Vec<Vec<Member>>,
    /// Records that only one rule keeps back.
    pub(super) outside: Vec<Vec<Member>>,
}

/// Whether all of it can be used only once.
pub(super) fn is_single_use(review: &Review) -> bool {
    let once = |draft: &Draft| draft.access_mode == AccessMode::SingleUse;
    review.grants.iter().all(once)
}

pub(super) fn terms(review: &Review) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for draft in &review.grants {
        terms.extend(Wording::whole(visible).draft(draft));
    }
    terms.dedup();
    terms
}

/// Reads what would be granted, exactly as a token of that grant would. `streams` are those of the grants.
pub(super) async fn rows(
    service: &Service,
    authority: Authority,
    streams: &[&GrantedStream],
) -> Result<Vec<StreamPreview>, Problem> {
    let Authority::Granted(granted) = &authority else {
        return Ok(Vec::new());
    };
    let granted = granted.clone();
    let mut settings = service.reader_settings.clone();
    // A preview for the owner: nothing is disclosed.
    settings.disclosures = None;
    let reader = GrantReader::new(service.store.clone(), authority, settings);
    let mut rows = Vec::new();
    for (at, row) in granted.rows().iter().enumerate() {
        let samples = if at < SAMPLED_STREAMS { SAMPLES } else { 0 };
        let sampling = Sampling {
            reader: &reader,
            records: samples,
        };
        let mut preview = stream_preview(service, streams, row, sampling).await?;
        if samples > 0 {
            preview.outside = outside(service, &granted, row).await?;
        }
        rows.push(preview);
    }
    Ok(rows)
}

/// Records just outside: each meets every rule but one.
async fn outside(
    service: &Service,
    granted: &GrantedAuthority,
    row: &GrantedRow,
) -> Result<Vec<Vec<Member>>, Problem> {
    let mut turned = Vec::new();
    for (at, rule) in row.only.iter().enumerate() {
        let mut other = row.clone();
        other.only.remove(at);
        other.except.push(rule.clone());
        turned.push(other);
    }
    for (at, rule) in row.except.iter().enumerate() {
        let mut other = row.clone();
        other.except.remove(at);
        other.only.push(rule.clone());
        turned.push(other);
    }
    let most = usize::try_from(SAMPLES).unwrap_or(usize::MAX);
    let mut samples = Vec::new();
    for other in turned {
        let mut settings = service.reader_settings.clone();
        settings.disclosures = None;
        let authority = Authority::Granted(granted.clone().with_rows(vec![other]));
        let reader = GrantReader::new(service.store.clone(), authority, settings);
        let mut query = RecordsQuery::new(row.stream.clone());
        query.connection_id = Some(row.connection.to_string());
        query.limit = PageLimit::new(SAMPLES);
        for record in &reader.records(query).await?.data {
            let sample = members(record.data.as_deref(), VALUE_CHARS)?;
            if samples.len() < most && !samples.contains(&sample) {
                samples.push(sample);
            }
        }
    }
    Ok(samples)
}

struct Sampling<'a> {
    reader: &'a GrantReader,
    records: u32,
}

async fn stream_preview(
    service: &Service,
    streams: &[&GrantedStream],
    row: &GrantedRow,
    Sampling { reader, records }: Sampling<'_>,
) -> Result<StreamPreview, Problem> {
    let mut query = RecordsQuery::new(row.stream.clone());
    query.connection_id = Some(row.connection.to_string());
    query.limit = PageLimit::new(records.max(1));
    query.reading = Reading::List(ListOptions {
        count: Count::Exact,
        ..ListOptions::default()
    });
    let page = reader.records(query).await?;
    let meta = page.meta.as_ref();
    let total = meta.and_then(|meta| meta.count.as_option()?.value());
    // Every field is shown, because every one would be disclosed.
    let sample = |record: &Record| members(record.data.as_deref(), VALUE_CHARS);
    let shown = usize::try_from(records).unwrap_or(usize::MAX);
    let mut stream = streams.iter().filter(|stream| stream.name == row.stream);
    let stream = stream.find(|stream| stream.instance_ids.contains(&row.connection));
    let connection = service.store.connection(&row.connection);
    Ok(StreamPreview {
        source: match &connection {
            Some(connection) => label(&connection.display_name),
            None => row.connection.to_string(),
        },
        stream: label(row.stream.as_str()),
        total: total.map_or_else(
            || "Some records".to_owned(),
            |total| format_count(total, "record"),
        ),
        words: stream.map_or_else(String::new, |stream| {
            Wording::whole(visible).row(&row.connection, stream)
        }),
        samples: page
            .data
            .iter()
            .take(shown)
            .map(sample)
            .collect::<Result<_, _>>()?,
        outside: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_goes_to_an_origin() {
        assert_eq!(origin("https://a.example/cb?x=1"), "https://a.example");
        assert_eq!(origin("http://127.0.0.1:5000"), "http://127.0.0.1:5000");
        assert_eq!(origin("cursor://anysphere.cursor-mcp/cb"), "cursor:");
        assert_eq!(origin("com.example.app:/cb"), "com.example.app:");
        assert!(is_loopback("http://127.0.0.1:5000") && is_loopback("http://[::1]"));
        assert!(!is_loopback("http://127.0.0.1.example"));
    }
}
