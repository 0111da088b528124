//! The account that an export is of, where one of its files names it: then the export goes into the connection of that account.

use serde_json::Value;

use crate::exports::{Export, Recognised};

/// The account that the beginning of a file names, and the export it is of.
pub(crate) fn named_in(head: &[u8], path: &str) -> Option<(Export, String)> {
    let file_name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let text = String::from_utf8_lossy(head);
    let (export, account) = match file_name {
        "user.json" => (Export::CHATGPT, chatgpt(&text)?),
        "users.json" => (Export::CLAUDE, claude(&text)?),
        _ => match Export::recognise(head, path)? {
            Recognised::Export { export, .. } if export == Export::TELEGRAM => {
                (export, telegram(&text)?)
            }
            Recognised::Export { export, .. } if export == Export::MAIL => (export, mail(&text)?),
            _ => return None,
        },
    };
    let account: String = account
        .chars()
        .filter(|c| !c.is_control())
        .take(100)
        .collect();
    let account = account.trim().to_owned();
    (!account.is_empty()).then_some((export, account))
}

fn chatgpt(text: &str) -> Option<String> {
    let user: Value = serde_json::from_str(text).ok()?;
    let is_user = user.get("id")?.as_str()?.starts_with("user-");
    Some(user.get("email")?.as_str().filter(|_| is_user)?.to_owned())
}

fn claude(text: &str) -> Option<String> {
    let users: Value = serde_json::from_str(text).ok()?;
    let [user] = users.as_array()?.as_slice() else {
        return None;
    };
    Some(user["email_address"].as_str()?.to_owned())
}

/// The phone number, which tells an account, in the object that stands first in a whole export.
fn telegram(text: &str) -> Option<String> {
    let (_, after) = text.split_once("\"personal_information\":")?;
    let (object, _) = after.split_once('}')?;
    let (_, number) = object.split_once("\"phone_number\":")?;
    let (number, _) = number.trim_start().strip_prefix('"')?.split_once('"')?;
    Some(number.to_owned())
}

/// Whom the first messages were delivered to, if all to the same address.
fn mail(text: &str) -> Option<String> {
    let delivered = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("delivered-to")
            .then(|| value.trim().to_lowercase())
    });
    let mut addresses: Vec<String> = delivered.collect();
    addresses.dedup();
    match addresses.as_slice() {
        [only] if only.contains('@') => Some(only.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_named_where_the_export_says_it() {
        let mail = "From - Mon Mar 04 10:11:12 2024\nDelivered-To: Ida@example.org\nSubject: x\n\n";
        for (path, head, expected) in [
            (
                "a/user.json",
                r#"{"id":"user-1","email":"ida@example.org"}"#,
                Some("ida@example.org"),
            ),
            (
                "a/user.json",
                r#"{"id":"7","email":"ida@example.org"}"#,
                None,
            ),
            (
                "users.json",
                r#"[{"uuid":"a","email_address":"ida@example.org"}]"#,
                Some("ida@example.org"),
            ),
            (
                "users.json",
                r#"[{"email_address":"a"},{"email_address":"b"}]"#,
                None,
            ),
            (
                "result.json",
                "{\n \"about\": \"Here is the data you requested.\",\n \"personal_information\": {\n  \"user_id\": 1,\n  \"phone_number\": \"+49 1\"\n },\n \"chats\": {\"list\": [",
                Some("+49 1"),
            ),
            ("Inbox.mbox", mail, Some("ida@example.org")),
            (
                "Inbox.mbox",
                "From - Mon Mar 04 10:11:12 2024\nSubject: x\n\n",
                None,
            ),
        ] {
            let named = named_in(head.as_bytes(), path);
            let named = named.as_ref().map(|(_, account)| account.as_str());
            assert_eq!(named, expected, "{path}: {head}");
        }
        let two = format!("{mail}\nDelivered-To: noor@example.org\n");
        assert_eq!(named_in(two.as_bytes(), "Inbox.mbox"), None);
    }
}
