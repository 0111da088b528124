//! A page over several connections that ends without a cursor: what pages through each of them.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{compact, plain};
use crate::budget;

/// Connections named.
const NAMED: usize = 4;

/// The sentence that names the call. `connections` are those of the rows that came, in their order.
pub(crate) fn way_on<'a>(
    (tool, given): (&str, &Map<String, Value>),
    connections: impl Iterator<Item = &'a str>,
    longest_call: usize,
) -> String {
    if given.contains_key("connection_id") {
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
    let mut args = given.clone();
    // A cursor belongs to the page it came from.
    args.remove("cursor");
    args.insert("connection_id".to_owned(), json!(first));
    let call = compact::call(tool, &args);
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
        let given = json!({"stream": "mail", "limit": 5, "cursor": "c"});
        let given = given.as_object().unwrap();
        let told = |given, connections: &[&str], longest| {
            way_on(
                ("query_records", given),
                connections.iter().copied(),
                longest,
            )
        };
        assert_eq!(
            told(given, &["a", "b", "a"], 200),
            " There are more, but no cursor over several connections; page through each: \
             query_records {\"stream\":\"mail\",\"limit\":5,\"connection_id\":\"a\"}, then \"b\"."
        );
        let many = ["a", "b", "c", "d", "e"];
        let short = told(given, &many, 10);
        assert!(short.contains("repeating this call with connection_id=\"a\", then \"b\""));
        assert!(
            short.ends_with("\"d\" and the others that schema lists."),
            "{short}"
        );
        assert!(told(given, &[], 200).ends_with("connection_id that schema lists."));
        let one = json!({"connection_id": "a"});
        assert!(told(one.as_object().unwrap(), &["a"], 200).ends_with("raise limit."));
    }
}
