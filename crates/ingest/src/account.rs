//! The account that an export is of, where one of its files names it: then the export goes into the connection of that account.

use serde_json::Value;

use crate::exports::{Export, Recognised};
use crate::importers::{Rows, first_members, mended_text};
use crate::lines::MAX_LINE_BYTES;

/// The account that the beginning of a file names, and the export it is of.
pub(crate) fn named_in(head: &[u8], path: &str) -> Option<(Export, String)> {
    let file_name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let text = String::from_utf8_lossy(head);
    let (export, account) = match file_name {
        "user.json" => chatgpt(&text)
            .map(|account| (Export::CHATGPT, account))
            .or_else(|| Some((Export::DISCORD, discord(head)?)))?,
        "users.json" => claude(&text)
            .map(|account| (Export::CLAUDE, account))
            .or_else(|| Some((Export::SLACK, slack(path)?)))?,
        "actor.json" => (Export::MASTODON, mastodon(head)?),
        "account.js" => (Export::X, x(&text)?),
        "personal_information.json" => (Export::INSTAGRAM, instagram(&text, path)?),
        "profile_information.json" => (Export::FACEBOOK, facebook(&text)?),
        "Profile.csv" => (Export::LINKEDIN, linkedin(head)?),
        "statistics.csv" => (Export::REDDIT, reddit(&text)?),
        name if name.starts_with("repositories_0") => (Export::GITHUB, github(&text)?),
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

/// A member of the object that a file begins with.
fn member(head: &[u8], name: &str) -> Option<String> {
    first_members(head, name).1.filter(|text| !text.is_empty())
}

/// What members of a name say, wherever they stand: the file may be longer than what was read of it.
fn each_said<'t>(text: &'t str, name: &str) -> impl Iterator<Item = String> + 't {
    let mark = format!("\"{name}\"");
    let after: Vec<&str> = text.split(&*mark).skip(1).collect();
    after.into_iter().filter_map(|after| {
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
        values.next()?.ok()?.as_str().map(str::to_owned)
    })
}

fn discord(head: &[u8]) -> Option<String> {
    let (members, name) = first_members(head, "username");
    let is_user = ["id", "discriminator"].iter();
    let mut is_user = is_user.map(|wanted| members.iter().any(|member| member == wanted));
    name.filter(|_| is_user.all(|is| is))
}

/// The name of the workspace stands in the name of the archive only: `Boats Slack export Jan 1 2024 - Feb 1 2024.zip`.
fn slack(path: &str) -> Option<String> {
    let mut parts = path.split(['/', '\\']);
    let (workspace, _) = parts.find_map(|part| part.split_once(" Slack export "))?;
    Some(workspace.to_owned())
}

fn mastodon(head: &[u8]) -> Option<String> {
    let (name, id) = (member(head, "preferredUsername")?, member(head, "id")?);
    let host = id.split_once("://")?.1.split('/').next()?;
    Some(format!("{name}@{host}"))
}

fn x(text: &str) -> Option<String> {
    let is_account = text.trim_start().starts_with("window.YTD.account.");
    each_said(text, "username").next().filter(|_| is_account)
}

/// The label of the name, in the languages in which it is known; else the archive is called after it:
/// `instagram-ida.l-2024-01-05-AbCd.zip`.
fn instagram(text: &str, path: &str) -> Option<String> {
    let (_, user) = text.split_once("\"profile_user\"")?;
    // Texts are written as Meta does: each byte of UTF-8 as a character.
    let labels = [
        "Username",
        "Benutzername",
        "Nombre de usuario",
        "Nome utente",
        "Gebruikersnaam",
        "Nom d\\u00e2\\u0080\\u0099utilisateur",
        "Nome de usu\\u00c3\\u00a1rio",
        "Nome de utilizador",
        "Brugernavn",
        "Brukernavn",
        "Anv\\u00c3\\u00a4ndarnamn",
    ];
    let named = labels.iter().find_map(|label| {
        let (_, named) = user.split_once(&format!("\"{label}\""))?;
        Some(named)
    });
    let said = named.and_then(|named| each_said(named, "value").next());
    said.or_else(|| path.split(['/', '\\']).find_map(called_after_account))
}

/// The account in the name of an archive: what stands between the service and the day.
fn called_after_account(part: &str) -> Option<String> {
    let rest = part.strip_prefix("instagram-")?;
    let day = rest.match_indices('-').find(|(at, _)| {
        let day = rest.get(at + 1..at + 11).unwrap_or_default();
        day.parse::<jiff::civil::Date>().is_ok()
    });
    rest.get(..day?.0).map(str::to_owned)
}

fn facebook(text: &str) -> Option<String> {
    let (_, profile) = text.split_once("\"profile_v2\"")?;
    Some(mended_text(each_said(profile, "full_name").next()?))
}

fn linkedin(head: &[u8]) -> Option<String> {
    let mut rows = Rows::with_delimiter(head, MAX_LINE_BYTES, b',').ok()?;
    let header = rows.next_cells().ok()??;
    let cells = rows.next_cells().ok()??;
    let cell = |name: &str| {
        let at = header.iter().position(|column| column.trim() == name)?;
        cells.get(at).map(|cell| cell.trim())
    };
    let name = [cell("First Name")?, cell("Last Name")?].join(" ");
    Some(name.trim().to_owned())
}

/// Rows of what the account has, of which one is its name.
fn reddit(text: &str) -> Option<String> {
    let mut lines = text.lines();
    lines.next().filter(|header| *header == "statistic,value")?;
    lines
        .find_map(|line| line.strip_prefix("account name,"))
        .map(str::to_owned)
}

/// Whose the repositories are, if all are of one owner.
fn github(text: &str) -> Option<String> {
    let mut owners: Vec<String> = each_said(text, "owner").collect();
    owners.dedup();
    match owners.as_slice() {
        [only] => only.rsplit('/').next().map(str::to_owned),
        _ => None,
    }
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

    const MAIL: &str =
        "From - Mon Mar 04 10:11:12 2024\nDelivered-To: Ida@example.org\nSubject: x\n\n";

    /// Where a file stands, what it begins with, and the account that it names.
    const CASES: [(&str, &str, Option<&str>); 20] = [
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
            "a/user.json",
            r#"{"id":"7","username":"ida","discriminator":"0","email":"i"}"#,
            Some("ida"),
        ),
        (
            "a/Boats Slack export Jan 1 2024 - Feb 1 2024.zip/users.json",
            r#"[{"id":"U1","team_id":"T1"}]"#,
            Some("Boats"),
        ),
        ("a/users.json", r#"[{"id":"U1","team_id":"T1"}]"#, None),
        (
            "actor.json",
            r#"{"@context":["x",{"a":"b"}],"id":"https://boats.example/users/ida","type":"Person","preferredUsername":"ida","outbox":"o"}"#,
            Some("ida@boats.example"),
        ),
        (
            "data/account.js",
            r#"window.YTD.account.part0 = [ { "account" : { "email" : "i@x", "username" : "ida_l" } } ]"#,
            Some("ida_l"),
        ),
        (
            "personal_information.json",
            r#"{"profile_user":[{"string_map_data":{"E-Mail":{"value":"i@x"},"Benutzername":{"href":"","value":"ida.l"}}}]}"#,
            Some("ida.l"),
        ),
        (
            "personal_information.json",
            r#"{"profile_user":[{"string_map_data":{"Nom d\u00e2\u0080\u0099utilisateur":{"href":"","value":"ida.l"}}}]}"#,
            Some("ida.l"),
        ),
        (
            "a/instagram-ida-l.x-2024-01-05-AbCd.zip/personal_information/personal_information.json",
            r#"{"profile_user":[{"string_map_data":{"?":{"href":"","value":"i@x"}}}]}"#,
            Some("ida-l.x"),
        ),
        (
            "profile_information.json",
            r#"{"profile_v2":{"name":{"full_name":"Zo\u00c3\u00ab L","first_name":"Z"},"emails":{"#,
            Some("Zoë L"),
        ),
        (
            "Profile.csv",
            "First Name,Last Name,Maiden Name\nIda,Lund,\n",
            Some("Ida Lund"),
        ),
        (
            "statistics.csv",
            "statistic,value\nexport time,2024-01-06 00:00:00 UTC\naccount name,ida_l\n",
            Some("ida_l"),
        ),
        (
            "repositories_000001.json",
            r#"[{"type":"repository","owner":"https://github.com/ida"},{"owner":"https://github.com/ida"}]"#,
            Some("ida"),
        ),
        (
            "repositories_000001.json",
            r#"[{"owner":"https://github.com/ida"},{"owner":"https://github.com/noor"}]"#,
            None,
        ),
        (
            "result.json",
            "{\n \"about\": \"Here is the data you requested.\",\n \"personal_information\": {\n  \"user_id\": 1,\n  \"phone_number\": \"+49 1\"\n },\n \"chats\": {\"list\": [",
            Some("+49 1"),
        ),
        ("Inbox.mbox", MAIL, Some("ida@example.org")),
        (
            "Inbox.mbox",
            "From - Mon Mar 04 10:11:12 2024\nSubject: x\n\n",
            None,
        ),
    ];

    #[test]
    fn an_account_is_named_where_the_export_says_it() {
        for (path, head, expected) in CASES {
            let named = named_in(head.as_bytes(), path);
            let named = named.as_ref().map(|(_, account)| account.as_str());
            assert_eq!(named, expected, "{path}: {head}");
        }
        let two = format!("{MAIL}\nDelivered-To: noor@example.org\n");
        assert_eq!(named_in(two.as_bytes(), "Inbox.mbox"), None);
    }
}
