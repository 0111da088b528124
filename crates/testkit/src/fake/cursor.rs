//! Cursors and bookmarks: opaque to callers, refused anywhere but where they were given.

use super::call::Call;
use super::reply::Failure;

/// What a cursor stands in: the route and the parameters that shape the answer.
pub(crate) fn binding(call: &Call) -> u64 {
    let mut shaping: Vec<String> = call
        .query
        .iter()
        .filter(|(name, _)| !is_free(name))
        .map(|(name, value)| format!("{name}\u{0}{value}"))
        .collect();
    shaping.sort_unstable();
    shaping.push(call.segments.join("\u{0}"));
    fnv(shaping.join("\u{1}").as_bytes())
}

/// Parameters that may change from page to page.
fn is_free(name: &str) -> bool {
    [
        "cursor",
        "limit",
        "changes_since",
        "fields",
        "view",
        "count",
    ]
    .contains(&name)
        || name.starts_with("expand")
}

/// A handle of a kind with its numbers.
pub(crate) fn mint(kind: &str, call: &Call, numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("{kind}.{:016x}.{}", binding(call), numbers.join("-"))
}

/// The numbers of a handle that was given for this very question.
pub(crate) fn read<const N: usize>(
    kind: &str,
    call: &Call,
    cursor: &str,
) -> Result<[u64; N], Failure> {
    let refused = || {
        Failure::new(
            400,
            "invalid_cursor",
            "The cursor is malformed or belongs to another request",
        )
    };
    let parts: Vec<&str> = cursor.split('.').collect();
    let [found, bound, numbers] = parts.as_slice() else {
        return Err(refused());
    };
    let is_ours = *found == kind && *bound == format!("{:016x}", binding(call));
    let numbers: Vec<u64> = numbers
        .split('-')
        .map_while(|number| number.parse().ok())
        .collect();
    let numbers = <[u64; N]>::try_from(numbers).map_err(|_| refused())?;
    if is_ours { Ok(numbers) } else { Err(refused()) }
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
