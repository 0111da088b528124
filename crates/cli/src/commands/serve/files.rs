//! How many files the server may have open: a connection takes one each, and the usual limit is low.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What some systems allow where they name no limit.
const MODEST: u64 = 10_240;

/// Raises the limit as far as anybody may; the one that holds then.
pub(super) fn raise_limit() -> u64 {
    let before = getrlimit(Resource::Nofile);
    let modest = Some(before.maximum.map_or(MODEST, |maximum| maximum.min(MODEST)));
    for wanted in [before.maximum, modest] {
        let is_more = wanted.is_none_or(|wanted| before.current.is_some_and(|now| now < wanted));
        let raised = Rlimit {
            current: wanted,
            maximum: before.maximum,
        };
        if is_more && setrlimit(Resource::Nofile, raised).is_ok() {
            break;
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
