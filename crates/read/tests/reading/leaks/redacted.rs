//! Random redactions, and the same scene with other values where they hide them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testkit::Dice;

use super::scene::Scene;

impl Scene {
    /// Redacts some of the granted fields. Those that decide which records are shown stay whole here: their values cannot
    /// differ without showing other records.
    pub(crate) fn redact_some(&mut self, dice: &mut Dice) {
        for granted in self.granted.values_mut() {
            for field in granted.fields.clone() {
                if granted.decides_by(field) || dice.once_in(3) {
                    continue;
                }
                let how = match field {
                    "akey" | "pkey" => continue,
                    "dmoment" => "month",
                    "sent_at" => dice.pick(&["year", "month", "presence"]),
                    "eamount" | "gflag" => "presence",
                    "name" => "domain",
                    _ => dice.pick(&["first:3", "presence"]),
                };
                granted.redact.insert(field, how);
            }
        }
    }

    /// The scene with other values behind every redaction: each its own, or all the same.
    pub(crate) fn hidden_otherwise(&self, all_the_same: bool) -> Self {
        let mut other = Self {
            first: self.first.clone(),
            second: self.second.clone(),
            granted: BTreeMap::new(),
        };
        for write in other.first.iter_mut().chain(&mut other.second) {
            let redact = self.granted.get(write.address.1).map(|one| &one.redact);
            for (field, value) in write.record.iter_mut().flatten() {
                if let Some(how) = redact.and_then(|redact| redact.get(field)) {
                    *value = otherwise(field, how, value, all_the_same);
                }
            }
        }
        other
    }
}

fn otherwise(field: &str, how: &str, value: &Value, all_the_same: bool) -> Value {
    let text = value.as_str().unwrap_or_default();
    match (how, field) {
        ("first:3", _) => {
            let shown: String = text.chars().take(3).collect();
            let hidden: String = text.chars().skip(3).collect();
            if hidden.is_empty() {
                return value.clone();
            }
            if all_the_same {
                json!(format!("{shown} coffee"))
            } else {
                json!(format!("{shown}room milk {hidden}"))
            }
        }
        ("month", _) => json!(text.replace("-10T", "-21T")),
        ("year", _) => json!(format!("{}-12-01T00:00:00Z", &text[..4])),
        ("presence", "eamount") => json!(if all_the_same { 9 } else { 3 }),
        ("presence", "gflag") => json!(all_the_same),
        ("presence", "sent_at") => json!("2019-01-01T00:00:00Z"),
        _ if all_the_same => json!("tea"),
        _ => json!(format!("milk {text}")),
    }
}
