//! Statements of banks, in the formats that banks and programs for money hand out: OFX, QIF, camt.053, MT940, and the table of `PayPal`.
//! All become the same records: accounts, and transactions with an exact amount.

mod camt;
mod mt940;
mod ofx;
mod paypal;
mod qif;
mod records;

use self::records::Statements;
use super::pieces::{Converter, Cut, Made, malformed, read_text};
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "bank",
    title: "bank statements (OFX, QFX, QIF, camt.053, MT940, PayPal)",
    declaration: Declared::Shape(SHAPE),
    origin: "The website of the bank, where transactions or statements are downloaded, as OFX, QFX, QIF, CAMT or MT940. PayPal: Activity > Download > CSV",
    contents: "accounts with their last balance, and transactions",
    recognise: verdict,
    importer: |input, acceptor, _| {
        let converter = Bank {
            stem: input.stem().to_owned(),
            note: None,
        };
        Cut::Whole.importer(input.into_reader(), acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "bank",
    name: "Bank statements",
    streams: &[
        Stream {
            name: "transactions",
            label: "Transactions",
            about: "Booked transactions of all accounts. Sums are only meant within one currency.",
            time: Some("booked_on"),
            fields: &[
                shape::text("id"),
                shape::text("account_id").grouped(),
                shape::date("booked_on"),
                shape::date("value_on").about("From when on interest is counted."),
                shape::number("amount").about("Negative where money left the account."),
                shape::text("currency").grouped(),
                shape::text("counterparty")
                    .role("title")
                    .searched()
                    .grouped(),
                shape::text("counterparty_account").searched(),
                shape::text("purpose").role("body").searched(),
                shape::text("reference")
                    .searched()
                    .about("The reference that the parties gave, or the number of a cheque."),
                shape::text("kind").searched().grouped(),
                shape::text("category").searched().grouped(),
                shape::number("fee").about("Part of the amount."),
                shape::number("balance").about("Of the account, after the transaction."),
            ],
            children: &[],
        },
        Stream {
            name: "accounts",
            label: "Accounts",
            about: "Accounts of which there are statements.",
            time: None,
            fields: &[
                shape::text("id"),
                shape::text("name").role("title").searched(),
                shape::text("number").searched(),
                shape::text("bank").searched().grouped(),
                shape::text("kind").grouped(),
                shape::text("currency").grouped(),
                shape::number("balance"),
                shape::date("balance_on"),
            ],
            children: &[("transactions", "account_id")],
        },
    ],
};

/// The formats, as told by the beginning of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ofx,
    Qif,
    Camt,
    Mt940,
    Paypal,
}

impl Kind {
    fn detect(head: &str) -> Option<Self> {
        let head = head.trim_start_matches('\u{feff}').trim_start();
        let kinds = [
            (ofx::is_ofx(head), Self::Ofx),
            (qif::is_qif(head), Self::Qif),
            (camt::is_statement(head), Self::Camt),
            (mt940::is_statement(head), Self::Mt940),
            (paypal::is_table(head), Self::Paypal),
        ];
        kinds.into_iter().find_map(|(is, kind)| is.then_some(kind))
    }
}

fn verdict(file: &Candidate<'_>) -> Verdict {
    let head = read_text(file.head);
    if Kind::detect(&head).is_some() {
        return Verdict::Takes;
    }
    if head.contains("BkToCstmrDbtCdtNtfctn") {
        return Verdict::Misses("it is a notice (camt.054); the statement (camt.053) has the same");
    }
    let lower = file.file_name().to_ascii_lowercase();
    let called = |endings: &[&str]| endings.iter().any(|ending| lower.ends_with(ending));
    if called(&[".ofx", ".qfx"]) {
        return Verdict::Misses("no element <OFX> stands at its beginning");
    }
    if called(&[".qif"]) {
        return Verdict::Misses("it does not begin with a line like !Type:Bank");
    }
    if called(&[".sta", ".mt940", ".940"]) {
        return Verdict::Misses("no lines :20: and :25: stand at its beginning");
    }
    Verdict::Unlike
}

struct Bank {
    /// The name of the file, for formats that do not name the account.
    stem: String,
    note: Option<String>,
}

impl Converter for Bank {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let text = read_text(piece);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let kind = Kind::detect(text).ok_or_else(|| malformed("it is no statement of a bank"))?;
        let mut statements = Statements::new(made);
        match kind {
            Kind::Ofx => ofx::read(text, &mut statements),
            Kind::Qif => qif::read(text, &self.stem, &mut statements),
            Kind::Camt => camt::read(text, &mut statements)?,
            Kind::Mt940 => mt940::read(text, &mut statements),
            Kind::Paypal => paypal::read(text, &mut statements),
        }
        self.note = statements.finish();
        Ok(())
    }

    fn note(&self) -> Option<String> {
        self.note.clone()
    }
}
