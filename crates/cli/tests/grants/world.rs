//! A home to grant in, what is done there often, and outputs without what differs from run to run.
#![expect(unreachable_pub, reason = "shared by the modules of one test program")]

use contract::id::{ClientId, GrantId};
use contract::time::Instant;
use store::Grants;
use store::grants::Disclosure;

use crate::harness::{Home, MAIL, Ran};

/// Far away, so that no test outlives it.
const END: &str = "2099-01-01T00:00:00.000Z";
/// The same, as people in the zone of the tests read it.
const END_HERE: &str = "2099-01-01 02:00:00 +02:00";

/// Mail and chat, one connection each; chat can be granted by time.
pub fn mail_and_chat() -> Home {
    let home = Home::with_mail();
    let chat = MAIL
        .replace("connectors/mail", "connectors/chat")
        .replace("\"messages\"", "\"posts\"")
        .replace(
            "\"cursor_field\": \"sent_at\"",
            "\"cursor_field\": \"sent_at\", \"consent_time_field\": \"sent_at\"",
        );
    let file = home.file("chat.json", chat);
    home.run(format!("declare {file}")).succeeds();
    home.run("connections add chat --name Team").succeeds();
    home
}

/// `pdpp grant create` for the client `agent` until a fixed day.
pub fn create(home: &Home, options: &str) -> Ran {
    let create = "grant create --client agent --expires 2099-01-01";
    home.run(format!("{create} {options}"))
}

pub fn issued(home: &Home, options: &str) -> String {
    let json = create(home, &format!("{options} --json")).succeeds().json();
    let id = json.get("grant_id").or(json.get("grant_package_id"));
    id.unwrap().as_str().unwrap().to_owned()
}

/// The text with ids, secrets and the present replaced by words.
pub fn masked(text: &str) -> String {
    let secret = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut out = String::new();
    let mut rest = text;
    'next: while let Some(first) = rest.chars().next() {
        for prefix in [
            "pdpp_at_",
            "pdpp_owner_",
            "grt_",
            "gpkg_",
            "tok_",
            "sha256:",
        ] {
            if let Some(after) = rest.strip_prefix(prefix) {
                out.push_str(prefix);
                out.push('…');
                rest = after.trim_start_matches(secret);
                continue 'next;
            }
        }
        if let Some(time) = present(rest) {
            out.push_str("NOW");
            rest = &rest[time.len()..];
            continue;
        }
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// The time a text begins with, in either form, unless it is the fixed end.
fn present(text: &str) -> Option<&str> {
    let wire = text
        .get(..END.len())
        .filter(|time| time.ends_with('Z') && *time != END && Instant::parse(time).is_some());
    let here = || {
        let time = text.get(..END_HERE.len())?;
        let moment = time.replacen(' ', "T", 1).replace(' ', "");
        (time.ends_with("+02:00") && time != END_HERE && Instant::parse(&moment).is_some())
            .then_some(time)
    };
    wire.or_else(here)
}

/// The operation, the record handles and the fields of a call.
type Call<'a> = (&'a str, &'a str, &'a str);

pub fn disclose(home: &Home, grant: &str, calls: &[Call<'_>]) {
    home.end_server();
    let store = home.open_store();
    let texts = |texts: &str| texts.split_whitespace().map(str::to_owned).collect();
    let entries: Vec<Disclosure> = calls
        .iter()
        .map(|(operation, records, fields)| Disclosure {
            bytes: None,
            at: Instant::parse("2026-01-02T03:04:05Z").unwrap(),
            grant_ids: vec![GrantId::parse(grant).unwrap()],
            client_id: ClientId::parse("agent").unwrap(),
            operation: (*operation).to_owned(),
            records: texts(records),
            fields: texts(fields),
        })
        .collect();
    store.log_disclosures(&entries, &[]).unwrap();
}
