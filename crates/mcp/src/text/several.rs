//! A page over several connections that ends without a cursor: what pages through each of them.

use std::fmt::Write as _;

use super::plain;
use crate::budget;
use crate::tool_call::ToolCall;

const NAMED: usize = 4;

/// The sentence that names the call. `connections` are those of the rows that came, in their order; `repeat` is the call that
/// was made, and `asked` the connection it named.
pub(crate) fn way_on<'a>(
    repeat: ToolCall,
    asked: Option<&str>,
    connections: impl Iterator<Item = &'a str>,
    longest_call: usize,
) -> String {
    if asked.is_some() {
        return " There are more, but the server gives no cursor: raise limit.".to_owned();
    }
    let mut known: Vec<&str> = Vec::new();
    for connection in connections {
        if !known.contains(&connection) {
            known.push(connection);
        }
    }
    let told = " There are more, but no cursor over several connections;";
    let Some((first, others)) = known.split_first() else {
        return format!("{told} repeat this call with a connection_id that schema lists.");
    };
    // A cursor belongs to the page it came from.
    let call = repeat.without("cursor").with("connection_id", *first);
    let call = call.to_string();
    let mut line = if call.len() <= longest_call {
        format!("{told} page through each: {call}")
    } else {
        let first = plain::quoted(first, budget::LABEL);
        format!("{told} page through each by repeating this call with connection_id={first}")
    };
    let named = others.iter().take(NAMED - 1);
    let named: Vec<String> = named.map(|one| plain::quoted(one, budget::LABEL)).collect();
    // Writing to a String cannot fail.
    if !named.is_empty() {
        let _ = write!(line, ", then {}", named.join(", "));
    }
    if others.len() > named.len() {
        line.push_str(" and the others that schema lists");
    }
    line.push('.');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    // TR-29: it was advised to narrow what was asked, which shows less of it.
    #[test]
    fn the_call_that_pages_is_named() {
        let repeat = ToolCall::new("query_records")
            .with("stream", "mail")
            .with("limit", 5_u64)
            .with("cursor", "c");
        let told = |asked, connections: &[&str], longest| {
            way_on(repeat.clone(), asked, connections.iter().copied(), longest)
        };
        assert_eq!(
            told(None, &["a", "b", "a"], 200),
            " There are more, but no cursor over several connections; page through each: \
             query_records {\"stream\":\"mail\",\"limit\":5,\"connection_id\":\"a\"}, then \"b\"."
        );
        let many = ["a", "b", "c", "d", "e"];
        let short = told(None, &many, 10);
        assert!(short.contains("repeating this call with connection_id=\"a\", then \"b\""));
        assert!(
            short.ends_with("\"d\" and the others that schema lists."),
            "{short}"
        );
        assert!(told(None, &[], 200).ends_with("connection_id that schema lists."));
        assert!(told(Some("a"), &["a"], 200).ends_with("raise limit."));
    }
}
