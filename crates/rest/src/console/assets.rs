//! The style sheet, the script and the icon.

use axum::http::{HeaderValue, header};
use axum::response::IntoResponse as _;

use super::with_security_headers;
use crate::table::{HandlerResult, RequestContext};

const STYLE: &str = include_str!("../../templates/style.css");
const SCRIPT: &str = include_str!("../../templates/script.js");
const ICON: &str = include_str!("../../templates/icon.svg");

pub(super) async fn style(_: RequestContext) -> HandlerResult {
    asset("text/css; charset=utf-8", STYLE)
}

pub(super) async fn script(_: RequestContext) -> HandlerResult {
    asset("text/javascript; charset=utf-8", SCRIPT)
}

pub(super) async fn icon(_: RequestContext) -> HandlerResult {
    asset("image/svg+xml", ICON)
}

#[expect(clippy::unnecessary_wraps, reason = "it is how every page ends")]
fn asset(media_type: &'static str, text: &'static str) -> HandlerResult {
    let mut response = with_security_headers(text.into_response());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    let kept = HeaderValue::from_static("public, max-age=3600");
    headers.insert(header::CACHE_CONTROL, kept);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_small() {
        assert!(SCRIPT.len() < 10_000, "{} bytes", SCRIPT.len());
    }
}
