//! The record of a contact.

use contract::time::Instant;
use jiff::civil::Date;
use serde_json::{Value, json};

use crate::importers::content_lines::{Component, Escapes, Property, filled, key_of};
use crate::rejection::{Rejection, RejectionCode};

/// Types that say how something is sent, not where it belongs.
const NO_LABELS: [&str; 7] = ["internet", "pref", "voice", "msg", "text", "x400", "uri"];

/// The record of a contact. One without any content is refused.
pub(super) fn contact(component: &Component) -> Result<Value, Rejection> {
    let card = Card::new(component);
    let [family, given, additional, prefix, suffix] = card.names();
    let mut organization = card.list("ORG", ';').into_iter();
    let employer = organization.next().unwrap_or_default();
    let emails = card.reached("EMAIL");
    let phones = card.reached("TEL");
    let addresses: Vec<Address> = card
        .component
        .all("ADR")
        .map(|it| card.address(it))
        .collect();
    let name = card.name([&prefix, &given, &additional, &family, &suffix], &employer);
    let name = name
        .or_else(|| preferred(&emails))
        .or_else(|| preferred(&phones));
    if name.is_none() {
        let message = "the contact has no name, organization, address or number";
        return Err(Rejection::new(RejectionCode::MalformedExport, message));
    }
    Ok(filled(json!({
        "id": key_of(component, None),
        "name": name,
        "given_name": given,
        "additional_names": additional,
        "family_name": family,
        "prefix": prefix,
        "suffix": suffix,
        "nickname": card.list("NICKNAME", ',').join(", "),
        "kind": card.kind(),
        "organization": employer,
        "department": organization.filter(|unit| !unit.is_empty()).collect::<Vec<_>>().join(", "),
        "job_title": card.text("TITLE"),
        "email": preferred(&emails),
        "phone": preferred(&phones),
        "emails": emails.iter().map(|it| it.value("address")).collect::<Vec<_>>(),
        "phones": phones.iter().map(|it| it.value("number")).collect::<Vec<_>>(),
        "addresses": addresses.iter().map(Address::value).collect::<Vec<_>>(),
        "city": Address::first(&addresses, |address| &address.city),
        "country": Address::first(&addresses, |address| &address.country),
        "reached_at": reached_at(&emails, &phones, &addresses),
        "birthday": card.day("BDAY"),
        "anniversary": card.day("ANNIVERSARY"),
        "categories": card.categories(),
        "urls": card.component.all("URL").map(|it| card.plain(it)).collect::<Vec<_>>(),
        "updated_at": card.text("REV").and_then(|text| Instant::parse(text.trim())).map(Instant::to_rfc3339_millis),
        "note": card.component.all("NOTE").map(|it| it.text(card.escapes)).collect::<Vec<_>>().join("\n\n"),
    })))
}

/// A contact and how it is written.
struct Card<'a> {
    component: &'a Component,
    escapes: Escapes,
}

/// An address or number, and what it is for.
struct Reached {
    text: String,
    label: Option<String>,
    /// The lower, the rather.
    rank: u8,
}

/// Where somebody lives or works.
struct Address {
    street: String,
    city: String,
    region: String,
    postal_code: String,
    country: String,
    label: Option<String>,
}

impl<'a> Card<'a> {
    fn new(component: &'a Component) -> Self {
        let version = component.property("VERSION");
        let is_old = version.is_some_and(|version| version.value.trim() == "2.1");
        Self {
            component,
            escapes: if is_old {
                Escapes::Separators
            } else {
                Escapes::All
            },
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        Some(self.component.property(name)?.text(self.escapes))
    }

    fn plain(&self, property: &Property) -> String {
        property.text(self.escapes).trim().to_owned()
    }

    /// The items of the first property of that name.
    fn list(&self, name: &str, separator: char) -> Vec<String> {
        let property = self.component.property(name);
        let items = property.map(|property| property.texts(separator, self.escapes));
        let items = items.into_iter().flatten();
        items.map(|item| item.trim().to_owned()).collect()
    }

    fn categories(&self) -> Vec<String> {
        let properties = self.component.all("CATEGORIES");
        let items = properties.flat_map(|property| property.texts(',', self.escapes));
        items.map(|item| item.trim().to_owned()).collect()
    }

    /// The five parts of a name. Each may be several; some may be missing at the end.
    fn names(&self) -> [String; 5] {
        let names = self.component.property("N");
        let names = names.map(|names| names.lists(self.escapes));
        let mut parts = names.into_iter().flatten().map(|part| {
            let part: Vec<&str> = part.iter().map(|name| name.trim()).collect();
            part.join(" ").trim().to_owned()
        });
        std::array::from_fn(|_| parts.next().unwrap_or_default())
    }

    /// The name as it is written, else put together from its parts, else that of the organization.
    fn name(&self, parts: [&String; 5], employer: &str) -> Option<String> {
        let parts: Vec<&str> = parts
            .iter()
            .map(|part| part.as_str())
            .filter(|part| !part.is_empty())
            .collect();
        let written = self.text("FN").map(|name| name.trim().to_owned());
        [
            written.unwrap_or_default(),
            parts.join(" "),
            employer.to_owned(),
        ]
        .into_iter()
        .find(|name| !name.is_empty())
    }

    /// What the contact stands for. Before version 4.0, Apple had to invent a property for it.
    fn kind(&self) -> String {
        let is_company = self
            .text("X-ABSHOWAS")
            .is_some_and(|shown| shown.trim().eq_ignore_ascii_case("COMPANY"));
        let kind = self
            .text("KIND")
            .or_else(|| self.text("X-ADDRESSBOOKSERVER-KIND"))
            .map(|kind| kind.trim().to_ascii_lowercase())
            .filter(|kind| !kind.is_empty());
        kind.unwrap_or_else(|| if is_company { "org" } else { "individual" }.to_owned())
    }

    fn reached(&self, name: &str) -> Vec<Reached> {
        let properties = self.component.all(name);
        let reached = properties.map(|property| {
            let text = self.plain(property);
            let text = text
                .strip_prefix("tel:")
                .or_else(|| text.strip_prefix("mailto:"))
                .unwrap_or(&text);
            Reached {
                text: text.to_owned(),
                label: self.label(property),
                rank: rank(property),
            }
        });
        reached.filter(|it| !it.text.is_empty()).collect()
    }

    fn address(&self, property: &Property) -> Address {
        let parts = property.texts(';', self.escapes);
        let mut parts = parts.into_iter().map(|part| part.trim().to_owned());
        let mut next = || parts.next().unwrap_or_default();
        let (post_box, extended, street) = (next(), next(), next());
        let lines = [street, extended, post_box].into_iter();
        Address {
            street: lines
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>()
                .join("\n"),
            city: next(),
            region: next(),
            postal_code: next(),
            country: next(),
            label: self.label(property),
        }
    }

    /// What it is for: in the words of the owner, if there are any, else by its types.
    fn label(&self, property: &Property) -> Option<String> {
        let group = property.group.as_ref();
        let own = group.and_then(|group| {
            self.component
                .all("X-ABLABEL")
                .find(|label| label.group.as_ref() == Some(group))
        });
        if let Some(own) = own {
            let text = self.plain(own);
            // Apple's own words stand in a frame: `_$!<Home>!$_`.
            let framed = text.strip_prefix("_$!<");
            return match framed.and_then(|text| text.strip_suffix(">!$_")) {
                Some(word) => Some(word.to_lowercase()),
                None => Some(text),
            };
        }
        let types = property.types();
        let labels: Vec<String> = types
            .filter(|word| !NO_LABELS.contains(&word.as_str()))
            .collect();
        (!labels.is_empty()).then(|| labels.join(" "))
    }

    /// A day of somebody's life; the year may be unknown.
    fn day(&self, name: &str) -> Option<String> {
        let property = self.component.property(name)?;
        let text = self.plain(property);
        let omitted = property.parameter("X-APPLE-OMIT-YEAR");
        let day = text.split(['T', ' ']).next().unwrap_or_default();
        // Any leap year will do to read a day without one.
        let (given, known) = match day.strip_prefix("--") {
            Some(rest) => (format!("2000{}", rest.replace('-', "")), false),
            None => (
                day.replace('-', ""),
                omitted.is_none_or(|year| !day.starts_with(year)),
            ),
        };
        let is_day = given.len() == 8 && given.bytes().all(|byte| byte.is_ascii_digit());
        match given.parse::<Date>() {
            Ok(date) if is_day && known => Some(date.to_string()),
            Ok(date) if is_day => Some(format!("--{:02}-{:02}", date.month(), date.day())),
            _ => Some(text),
        }
    }
}

impl Reached {
    fn value(&self, name: &str) -> Value {
        json!({ name: self.text, "label": self.label })
    }
}

impl Address {
    fn value(&self) -> Value {
        json!({
            "street": self.street,
            "city": self.city,
            "region": self.region,
            "postal_code": self.postal_code,
            "country": self.country,
            "label": self.label,
        })
    }

    fn line(&self) -> String {
        let place = format!("{} {}", self.postal_code, self.city);
        let street = self.street.replace('\n', ", ");
        let parts = [&street, place.trim(), &self.region, &self.country];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    }

    fn first(all: &[Self], part: fn(&Self) -> &String) -> Option<&String> {
        all.iter().map(part).find(|part| !part.is_empty())
    }
}

/// The preferred one, else the first.
fn preferred(all: &[Reached]) -> Option<String> {
    let best = all.iter().min_by_key(|it| it.rank);
    best.map(|it| it.text.clone())
}

/// How much it is preferred: version 4.0 counts from 1 to 100, the older ones only mark it.
fn rank(property: &Property) -> u8 {
    let counted = property.parameter("PREF");
    match counted.and_then(|rank| rank.trim().parse().ok()) {
        Some(rank) => rank,
        None if property.types().any(|word| word == "pref") => 1,
        None => u8::MAX,
    }
}

fn reached_at(emails: &[Reached], phones: &[Reached], addresses: &[Address]) -> String {
    let reached = emails.iter().chain(phones).map(|it| it.text.clone());
    let lines = reached.chain(addresses.iter().map(Address::line));
    lines
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}
