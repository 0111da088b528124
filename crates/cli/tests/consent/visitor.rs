//! The owner's browser, as far as these tests need one: it keeps cookies, follows nothing by itself, and fills in the
//! forms that pages give it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::harness::server::{connect, raw_exchange, status_in};

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) location: String,
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn field(&self, name: &str) -> String {
        let mark = format!(" name=\"{name}\"");
        let inputs = self.text.rsplit("<input");
        let mut values = inputs
            .filter_map(|input| input.split('>').next())
            .filter(|input| input.contains(&mark))
            .filter_map(|input| input.split_once("value=\"")?.1.split('"').next());
        let value = values.next();
        value
            .unwrap_or_else(|| panic!("no {name} in {self:?}"))
            .to_owned()
    }
}

pub(crate) struct Visitor {
    /// `http://127.0.0.1:port`
    pub(crate) url: String,
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Visitor {
    /// A browser that opens the link of the server's start and signs in by it.
    pub(crate) fn signed_in(url: &str, link: &str) -> Self {
        let mut visitor = Self {
            url: url.to_owned(),
            cookies: BTreeMap::new(),
        };
        let page = visitor.get(link);
        let (csrf, code) = (page.field("csrf"), page.field("code"));
        let form = [("csrf", csrf.as_str()), ("code", &code)];
        let entered = visitor.post("/sign-in", &form);
        assert_eq!((entered.status, entered.location.as_str()), (303, "/"));
        visitor
    }

    pub(crate) fn get(&mut self, address: &str) -> Page {
        self.send("GET", address, &[])
    }

    pub(crate) fn post(&mut self, path: &str, form: &[(&str, &str)]) -> Page {
        self.send("POST", path, form)
    }

    fn send(&mut self, method: &str, address: &str, form: &[(&str, &str)]) -> Page {
        let server = self.url.strip_prefix("http://").unwrap();
        let host = server.replace("127.0.0.1", "pdpp.localhost");
        // Pages are at a host of their own, to which the server sends whoever asks at another.
        let path = [&self.url, &format!("http://{host}")]
            .iter()
            .find_map(|origin| address.strip_prefix(origin.as_str()))
            .unwrap_or(address);
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAccept: text/html\r\n"
        );
        for (name, value) in &self.cookies {
            write!(head, "Cookie: {name}={value}\r\n").unwrap();
        }
        let body = encoded(form);
        if method == "POST" {
            head.push_str("Content-Type: application/x-www-form-urlencoded\r\n");
        }
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let (head, text) = raw_exchange(connect(server), &request);
        let mut page = Page {
            status: status_in(&head),
            location: String::new(),
            text,
        };
        for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
            match name {
                "location" => value.clone_into(&mut page.location),
                "set-cookie" => {
                    let (name, kept) = value.split(';').next().unwrap().split_once('=').unwrap();
                    self.cookies.insert(name.to_owned(), kept.to_owned());
                }
                _ => {}
            }
        }
        page
    }

    /// Opens the link a device shows, picks, and gives the review of it.
    fn review(&mut self, link: &str, pick: &[(&str, &str)]) -> Page {
        let page = self.get(link);
        let (csrf, code) = (page.field("csrf"), page.field("user_code"));
        let found = self.post("/device", &[("csrf", &csrf), ("user_code", &code)]);
        assert_eq!(found.status, 303, "{found:?}");
        let picker = self.get(&found.location);
        let (csrf, request) = (picker.field("csrf"), picker.field("request"));
        let form = [&[("csrf", csrf.as_str()), ("request", &request)], pick].concat();
        let review = self.post("/consent/review", &form);
        assert_eq!(review.status, 200, "{review:?}");
        review
    }

    /// Opens the link a device shows, picks, reviews and allows; gives the review.
    pub(crate) fn allow(&mut self, link: &str, pick: &[(&str, &str)]) -> Page {
        let review = self.review(link, pick);
        let fields = ["csrf", "request", "digest"].map(|name| (name, review.field(name)));
        let form = fields
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        let allowed = self.post("/consent/approve", &form);
        assert!(allowed.text.contains("<h1>Allowed</h1>"), "{allowed:?}");
        review
    }

    pub(crate) fn end(&mut self, grant: &str) {
        let page = self.get("/");
        assert!(page.text.contains(grant), "{page:?}");
        let csrf = page.field("csrf");
        let ended = self.post(&format!("/grants/{grant}/revoke"), &[("csrf", &csrf)]);
        assert_eq!((ended.status, ended.location.as_str()), (303, "/grants"));
    }
}

fn encoded(form: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| {
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
        format!("{}={value}", utf8_percent_encode(name, NON_ALPHANUMERIC))
    };
    form.iter().map(pair).collect::<Vec<_>>().join("&")
}
