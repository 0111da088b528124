//! Blobs out: the bytes a record points at, whole or in part, in a form no browser will run.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use contract::error::ErrorCode;
use contract::query::BlobQuery;
use contract::reader::ReadContract;

use crate::ask::Source;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::table::{Ask, Outcome};
use crate::transfer::outgoing;

/// Media types a browser may show in place. None of them can hold a script that runs.
const SHOWN: [&str; 9] = [
    "application/pdf",
    "image/avif",
    "image/bmp",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/tiff",
    "image/webp",
    "image/x-icon",
];

/// Which bytes a request wants.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Whole,
    /// From, and up to without.
    Part(u64, u64),
    Nothing,
}

pub(crate) async fn blob(ask: Ask, caller: Caller) -> Outcome {
    let source = Source::asked(&ask, caller.is_owner(), None)?;
    let query = BlobQuery {
        blob_id: ask.part(0).to_owned(),
        connection_id: source.connection_id.clone(),
    };
    let blob = caller.reader(&ask.service).blob(query).await?;
    let size = blob.size_bytes;
    let (status, from, to) = match wanted(&ask.headers, size) {
        Wanted::Whole => (StatusCode::OK, 0, size),
        Wanted::Part(from, to) => (StatusCode::PARTIAL_CONTENT, from, to),
        Wanted::Nothing => {
            let message = format!("the blob has {size} bytes, none of them in this range");
            return Err(Problem::new(ErrorCode::InvalidRequest, message)
                .with_status(StatusCode::RANGE_NOT_SATISFIABLE)
                .with_header(header::CONTENT_RANGE, &format!("bytes */{size}")));
        }
    };
    let mut response = Response::new(outgoing(blob.content, from, to - from));
    *response.status_mut() = status;
    describe(response.headers_mut(), &blob.media_type, to - from);
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {from}-{}/{size}", to - 1);
        response
            .headers_mut()
            .extend(HeaderValue::from_str(&range).map(|range| (header::CONTENT_RANGE, range)));
    }
    if source.by_alias {
        warn_of_alias(&mut response);
    }
    Ok(response)
}

/// Says that the deprecated name was used, where a body has no place for it.
pub(crate) fn warn_of_alias(response: &mut Response<Body>) {
    response.headers_mut().insert(
        "pdpp-warning",
        HeaderValue::from_static("deprecated_alias_used: connector_instance_id"),
    );
}

fn describe(headers: &mut HeaderMap, media_type: &str, length: u64) {
    let fixed = [
        (header::ACCEPT_RANGES, "bytes"),
        (header::CACHE_CONTROL, "private, no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; sandbox",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let known = HeaderValue::from_str(media_type).ok();
    let unknown = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, known.unwrap_or(unknown));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if !SHOWN.contains(&essence.to_ascii_lowercase().as_str()) {
        let attachment = HeaderValue::from_static("attachment");
        headers.insert(header::CONTENT_DISPOSITION, attachment);
    }
}

/// Reads `Range`. Anything but one range of bytes asks for the whole, and so does a condition, for blobs have no validators.
fn wanted(headers: &HeaderMap, size: u64) -> Wanted {
    if headers.contains_key(header::IF_RANGE) {
        return Wanted::Whole;
    }
    let range = headers
        .get(header::RANGE)
        .and_then(|value| value.to_str().ok());
    let Some(range) = range.and_then(|text| text.trim().strip_prefix("bytes=")) else {
        return Wanted::Whole;
    };
    let Some((first, last)) = range.split_once('-') else {
        return Wanted::Whole;
    };
    let (first, last) = (first.trim(), last.trim());
    let (from, to) = match (number(first), number(last)) {
        (Some(from), Some(last)) if last >= from => (from, last.saturating_add(1).min(size)),
        (Some(from), None) if last.is_empty() => (from, size),
        (None, Some(tail)) if first.is_empty() => (size.saturating_sub(tail), size),
        _ => return Wanted::Whole,
    };
    if from < to {
        Wanted::Part(from, to)
    } else {
        Wanted::Nothing
    }
}

fn number(text: &str) -> Option<u64> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_to_what_there_is() {
        for (range, expected) in [
            ("bytes=0-3", Wanted::Part(0, 4)),
            ("bytes=5-", Wanted::Part(5, 10)),
            ("bytes=-4", Wanted::Part(6, 10)),
            ("bytes=-40", Wanted::Part(0, 10)),
            ("bytes=8-99999999999999999999", Wanted::Part(8, 10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=4-2", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, HeaderValue::from_static(range));
            assert_eq!(wanted(&headers, 10), expected, "{range}");
        }
        assert_eq!(wanted(&HeaderMap::new(), 10), Wanted::Whole);
    }
}
