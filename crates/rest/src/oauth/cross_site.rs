//! Refuses requests that another site's page sends in the background.

use axum::http::HeaderMap;
use contract::error::{ErrorCode, ReadError};

use crate::problem::Problem;

/// Refuses what another site requests as an image, a script, a frame or the like (`Sec-Fetch-*`). Requests that store
/// something are opened in a tab of their own, or sent by a program.
pub(super) fn refuse_background_requests(headers: &HeaderMap) -> Result<(), Problem> {
    let said = |name: &str| {
        let value = headers.get(name);
        value.map_or("", |value| value.to_str().unwrap_or_default())
    };
    let from_elsewhere = matches!(said("sec-fetch-site"), "cross-site" | "same-site");
    let is_opened = said("sec-fetch-mode") == "navigate" && said("sec-fetch-dest") == "document";
    let is_ahead = said("sec-purpose").contains("prefetch");
    if is_ahead || (from_elsewhere && !is_opened) {
        let message =
            "a page of another site asked for this in the background, so nothing was done";
        return Err(ReadError::new(ErrorCode::PermissionError, message)
            .with_hint("open the address in a tab of its own")
            .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_opened_may_come_from_another_site() {
        // TR-05
        let passes = |named: &[(&'static str, &'static str)]| {
            let headers = named
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            refuse_background_requests(&headers.collect()).is_ok()
        };
        let of = |site, mode, dest| {
            passes(&[
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ])
        };
        assert!(passes(&[]), "a program");
        assert!(of("none", "navigate", "document"));
        assert!(of("same-origin", "cors", "empty"));
        for site in ["cross-site", "same-site"] {
            assert!(of(site, "navigate", "document"), "a link");
            for (mode, dest) in [
                ("no-cors", "image"),
                ("no-cors", "script"),
                ("no-cors", "empty"),
                ("cors", "empty"),
                ("navigate", "iframe"),
                ("navigate", "object"),
                ("websocket", "websocket"),
            ] {
                assert!(!of(site, mode, dest), "{site} {mode} {dest}");
            }
            assert!(!passes(&[("sec-fetch-site", site)]));
        }
        assert!(!passes(&[("sec-purpose", "prefetch;prerender")]));
    }
}
