//! Downloading blobs, whole or in part, with headers that keep a browser from running them.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use contract::error::ErrorCode;
use contract::query::BlobQuery;
use contract::reader::{Blob, ReadContract};

use crate::auth::Caller;
use crate::body_stream::outgoing_body;
use crate::problem::Problem;
use crate::query_params::ConnectionSelector;
use crate::table::{HandlerResult, RequestContext};

/// Media types a browser may show inline. None of them can hold a script that runs.
const INLINE_MEDIA_TYPES: [&str; 9] = [
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

#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    Whole,
    /// First byte, and the byte after the last.
    Part(u64, u64),
    Unsatisfiable,
}

pub(crate) async fn blob(context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, caller.is_owner(), None)?;
    let query = BlobQuery {
        blob_id: context.part(0).to_owned(),
        connection_id: selector.connection_id.clone(),
    };
    let blob = caller.reader(&context.service).blob(query).await?;
    let mut response = response(&context.headers, blob)?;
    if selector.by_alias {
        add_alias_warning(&mut response);
    }
    Ok(response)
}

/// The bytes of a blob, or the part of them that was asked for.
pub(crate) fn response(headers: &HeaderMap, blob: Blob) -> HandlerResult {
    let size = blob.size_bytes;
    let (status, from, to) = match requested_range(headers, size) {
        RequestedRange::Whole => (StatusCode::OK, 0, size),
        RequestedRange::Part(from, to) => (StatusCode::PARTIAL_CONTENT, from, to),
        RequestedRange::Unsatisfiable => {
            let message = format!("the blob has {size} bytes, none of them in this range");
            return Err(Problem::new(ErrorCode::InvalidRequest, message)
                .with_status(StatusCode::RANGE_NOT_SATISFIABLE)
                .with_header(header::CONTENT_RANGE, &format!("bytes */{size}")));
        }
    };
    let mut response = Response::new(outgoing_body(blob.content, from, to - from));
    *response.status_mut() = status;
    set_headers(response.headers_mut(), &blob.media_type, to - from);
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {from}-{}/{size}", to - 1);
        response
            .headers_mut()
            .extend(HeaderValue::from_str(&range).map(|range| (header::CONTENT_RANGE, range)));
    }
    Ok(response)
}

/// Warns of the deprecated parameter name in a header, where the body has no place for warnings.
pub(crate) fn add_alias_warning(response: &mut Response<Body>) {
    response.headers_mut().insert(
        "pdpp-warning",
        HeaderValue::from_static("deprecated_alias_used: connector_instance_id"),
    );
}

fn set_headers(headers: &mut HeaderMap, media_type: &str, length: u64) {
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
    if !is_inline(essence(media_type)) {
        let attachment = HeaderValue::from_static("attachment");
        headers.insert(header::CONTENT_DISPOSITION, attachment);
    }
}

/// A media type without its parameters.
pub(crate) fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// Whether a browser may show this media type, given without parameters, in place.
pub(crate) fn is_inline(essence: &str) -> bool {
    INLINE_MEDIA_TYPES.contains(&essence.to_ascii_lowercase().as_str())
}

/// Parses `Range`. Several ranges, other units and conditions ask for the whole blob: blobs have no validators.
fn requested_range(headers: &HeaderMap, size: u64) -> RequestedRange {
    if headers.contains_key(header::IF_RANGE) {
        return RequestedRange::Whole;
    }
    let range = headers
        .get(header::RANGE)
        .and_then(|value| value.to_str().ok());
    let Some(range) = range.and_then(|text| text.trim().strip_prefix("bytes=")) else {
        return RequestedRange::Whole;
    };
    let Some((first, last)) = range.split_once('-') else {
        return RequestedRange::Whole;
    };
    let (first, last) = (first.trim(), last.trim());
    let (from, to) = match (parse_digits(first), parse_digits(last)) {
        (Some(from), Some(last)) if last >= from => (from, last.saturating_add(1).min(size)),
        (Some(from), None) if last.is_empty() => (from, size),
        (None, Some(tail)) if first.is_empty() => (size.saturating_sub(tail), size),
        _ => return RequestedRange::Whole,
    };
    if from < to {
        RequestedRange::Part(from, to)
    } else {
        RequestedRange::Unsatisfiable
    }
}

fn parse_digits(text: &str) -> Option<u64> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_to_what_there_is() {
        for (range, expected) in [
            ("bytes=0-3", RequestedRange::Part(0, 4)),
            ("bytes=5-", RequestedRange::Part(5, 10)),
            ("bytes=-4", RequestedRange::Part(6, 10)),
            ("bytes=-40", RequestedRange::Part(0, 10)),
            ("bytes=8-99999999999999999999", RequestedRange::Part(8, 10)),
            ("bytes=10-", RequestedRange::Unsatisfiable),
            ("bytes=-0", RequestedRange::Unsatisfiable),
            ("bytes=4-2", RequestedRange::Whole),
            ("bytes=0-1,3-4", RequestedRange::Whole),
            ("lines=1-2", RequestedRange::Whole),
            ("bytes=a-b", RequestedRange::Whole),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, HeaderValue::from_static(range));
            assert_eq!(requested_range(&headers, 10), expected, "{range}");
        }
        assert_eq!(
            requested_range(&HeaderMap::new(), 10),
            RequestedRange::Whole
        );
    }
}
