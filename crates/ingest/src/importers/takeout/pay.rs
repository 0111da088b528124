//! Google Pay: what was paid through it and for things of Google.

use jiff::civil::DateTime;
use serde_json::{Number, json};

use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::importers::json_members::text;
use crate::importers::pieces::{Converter, Cut, Made, has_columns, malformed, parse_json};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "google-pay",
    title: "Google Pay (Takeout)",
    declaration: Declared::Shape(SHAPE),
    origin: "takeout.google.com: choose Google Pay; the archive, or its folder Google transactions",
    contents: "transactions",
    recognise,
    importer: |input, acceptor, _| Cut::Rows.importer(input.into_reader(), acceptor, Pay),
};

const SHAPE: Shape = Shape {
    key: "google-pay",
    name: "Google Pay",
    streams: &[Stream {
        name: "transactions",
        label: "Transactions",
        about: "What was paid.",
        time: Some("paid_at"),
        fields: &[
            shape::text("id"),
            shape::text("description").role("title").searched(),
            shape::time("paid_at"),
            shape::number("amount"),
            shape::text("currency")
                .grouped()
                .about("As the table writes it, a sign or a code."),
            shape::text("product").searched().grouped(),
            shape::text("method").searched().grouped(),
            shape::text("status").grouped(),
        ],
        children: &[],
    }],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    // Banks have tables with some of these columns too.
    let columns = [
        "Time",
        "Transaction ID",
        "Description",
        "Product",
        "Payment method",
        "Status",
        "Amount",
    ];
    has_columns(file.head, &columns).into()
}

struct Pay;

impl Converter for Pay {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let row = parse_json(piece)?;
        let Some(id) = text(&row, "Transaction ID") else {
            return Err(malformed("the row has no Transaction ID").in_field("Transaction ID"));
        };
        let amount = text(&row, "Amount").unwrap_or_default();
        let currency: String = amount
            .chars()
            .filter(|c| !c.is_ascii_digit() && !matches!(c, '.' | ',' | '-' | ' ' | '\u{a0}'))
            .collect();
        made.add(
            "transactions",
            json!({
                "id": readable_key(id),
                "description": text(&row, "Description"),
                "paid_at": text(&row, "Time").and_then(moment),
                "amount": number(amount),
                "currency": (!currency.is_empty()).then_some(currency),
                "product": text(&row, "Product"),
                "method": text(&row, "Payment method"),
                "status": text(&row, "Status"),
            }),
        );
        Ok(())
    }
}

/// The number of an amount. The last sign before one or two digits parts the fraction, every other one the thousands.
fn number(amount: &str) -> Option<Number> {
    let digits: String = amount
        .chars()
        .filter(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-'))
        .collect();
    let at = digits.rfind(['.', ',']);
    let (whole, part) = match at.and_then(|at| digits.split_at_checked(at)) {
        Some((whole, part)) if part.len() <= 3 => (whole, part.get(1..).unwrap_or_default()),
        _ => (digits.as_str(), ""),
    };
    let whole = whole.replace(['.', ','], "");
    let text = if part.is_empty() {
        whole
    } else {
        format!("{whole}.{part}")
    };
    text.parse().ok()
}

/// `Mar 5, 2024, 10:00 AM`, which counts as UTC: the table does not say of which zone it is.
fn moment(text: &str) -> Option<String> {
    let text = text.replace(['\u{202f}', '\u{a0}'], " ");
    let forms = [
        "%b %d, %Y, %I:%M %p",
        "%b %d, %Y, %I:%M:%S %p",
        "%d %b %Y, %H:%M",
    ];
    let mut times = forms
        .iter()
        .filter_map(|form| DateTime::strptime(form, &text).ok());
    times.next().map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_a_bank_is_another_one() {
        let is_known = |header: &str| {
            let head = format!("{header}\n");
            let candidate = Candidate {
                head: head.as_bytes(),
                path: "x.csv",
            };
            matches!(recognise(&candidate), Verdict::Takes)
        };
        assert!(is_known(
            "Time,Transaction ID,Description,Product,Payment method,Status,Amount"
        ));
        assert!(!is_known(
            "Transaction ID,Date,Time,Type,Name,Category,Amount,Currency,Description,Money In"
        ));
    }

    #[test]
    fn amounts_are_numbers() {
        for (amount, expected) in [
            ("US$1,234.50", Some("1234.50")),
            ("€ 1.234,5", Some("1234.5")),
            ("¥1,200", Some("1200")),
            ("-$3.99", Some("-3.99")),
            ("free", None),
        ] {
            let number = number(amount).map(|number| number.to_string());
            assert_eq!(number.as_deref(), expected, "{amount}");
        }
    }
}
