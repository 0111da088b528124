//! What differs from run to run, by a name that stays: ids, secrets, cursors, addresses, sizes and the present. The names can
//! be used in the commands that follow.

use std::path::Path;

/// Where a word of each kind begins, and the name it goes by.
const KINDS: &[(&str, &str)] = &[
    ("grt_", "GRANT"),
    ("gpkg_", "PACKAGE"),
    ("tok_", "TOKEN-ID"),
    ("pdpp_at_", "TOKEN"),
    ("pdpp_owner_", "OWNER-TOKEN"),
    ("pdpp_signin_", "CODE"),
    ("127.0.0.1:", "ADDRESS"),
    ("pdpp.localhost:", "CONSOLE"),
];

pub(crate) struct Masks {
    home: String,
    /// What is hidden, and its name.
    known: Vec<(String, String)>,
}

impl Masks {
    pub(crate) fn new(home: &Path) -> Self {
        Self {
            home: home.to_str().unwrap().to_owned(),
            known: Vec::new(),
        }
    }

    /// The text with names in place of what differs.
    pub(crate) fn hide(&mut self, text: &str) -> String {
        let text = text.replace(&self.home, "~");
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let taken = if out.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
                None
            } else {
                self.name_at(rest, &out)
            };
            if let Some((length, name)) = taken {
                // Before one that begins with a dash stands `=` instead of a space, by chance.
                if name.starts_with("CURSOR") && out.ends_with('=') {
                    out.pop();
                    out.push(' ');
                }
                out.push_str(&name);
                rest = &rest[length..];
            } else {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        out
    }

    /// The command as it can be run.
    pub(crate) fn reveal(&self, line: &str) -> String {
        // The longest first: TOKEN1 is a part of OWNER-TOKEN1, and GRANT1 of GRANT10.
        let mut known: Vec<_> = self.known.iter().collect();
        known.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
        known.iter().fold(line.to_owned(), |line, (real, name)| {
            line.replace(name, real)
        })
    }

    /// What stands here and must be hidden: its length and its name.
    fn name_at(&mut self, text: &str, before: &str) -> Option<(usize, String)> {
        let word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        for (prefix, kind) in KINDS {
            if let Some(rest) = text.strip_prefix(prefix) {
                let length = prefix.len() + rest.find(|c| !word(c)).unwrap_or(rest.len());
                // Ports of servers that were started here; the customary one stays.
                let is_address = prefix.ends_with(':');
                let customary = is_address && length < prefix.len() + "10000".len();
                // Ids are long; what is short was made up.
                let made_up = !is_address
                    && (length < prefix.len() + 12 || text[..length].ends_with("00000000"));
                return (!customary && !made_up)
                    .then(|| (length, self.named(&text[..length], kind)));
            }
        }
        let cursors = [
            "--cursor ",
            "--cursor=",
            "--changes-since ",
            "--changes-since=",
        ];
        if cursors.iter().any(|option| before.ends_with(option)) {
            let length = text.find(char::is_whitespace).unwrap_or(text.len());
            return (length > 40).then(|| (length, self.named(&text[..length], "CURSOR")));
        }
        let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
        if line.starts_with("pdpp verify ") && line.split(' ').count() == 4 {
            let length = text.find(char::is_whitespace).unwrap_or(text.len());
            return Some((length, self.named(&text[..length], "CITE")));
        }
        if before.ends_with("\":\"")
            && before
                .rsplit(['{', ','])
                .take(2)
                .any(|part| part.contains("\"cite\":"))
        {
            let length = text.find('"').unwrap_or(text.len());
            return Some((length, self.named(&text[..length], "CITE")));
        }
        present(text)
            .map(|length| (length, "TIME".to_owned()))
            .or_else(|| size(text).map(|length| (length, "SIZE".to_owned())))
    }

    fn named(&mut self, real: &str, kind: &str) -> String {
        if let Some((_, name)) = self.known.iter().find(|(known, _)| known == real) {
            return name.clone();
        }
        let same = |(_, name): &&(String, String)| {
            name.trim_end_matches(|c: char| c.is_ascii_digit()) == kind
        };
        let number = self.known.iter().filter(same).count() + 1;
        let name = format!("{kind}{number}");
        self.known.push((real.to_owned(), name.clone()));
        name
    }
}

/// A time of the present. What the samples hold is older.
fn present(text: &str) -> Option<usize> {
    let date = text.get(..10)?;
    let dashes = date.as_bytes()[4] == b'-' && date.as_bytes()[7] == b'-';
    let digits = date.bytes().filter(u8::is_ascii_digit).count() == 8;
    if !dashes || !digits || date < "2026-07-01" {
        return None;
    }
    let rest = &text[10..];
    let is_time = rest.starts_with('T') || rest.starts_with(' ');
    if !is_time || !rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let clock = |c: char| c.is_ascii_digit() || ":.".contains(c);
    let mut length = 11 + rest[1..].find(|c| !clock(c)).unwrap_or(rest.len() - 1);
    if text[length..].starts_with('Z') {
        length += 1;
    } else if text[length..].starts_with(" +") || text[length..].starts_with(" -") {
        length += " +01:00".len();
    }
    Some(length)
}

fn size(text: &str) -> Option<usize> {
    let number = |c: char| c.is_ascii_digit() || c == '.';
    let digits = text.find(|c| !number(c)).filter(|length| *length > 0)?;
    let unit = [" KiB", " MiB", " GiB", " TiB"];
    let unit = unit
        .iter()
        .find(|unit| text[digits..].starts_with(**unit))?;
    Some(digits + unit.len())
}
