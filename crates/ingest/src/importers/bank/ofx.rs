//! OFX and Quicken's QFX: SGML up to version 1, XML from version 2 on. Their elements are the same.

use super::records::{Account, BROKEN_OFF, Statements, Transaction, compact_day, decimal};
use crate::importers::markup::{Element, Markup};

pub(super) fn is_ofx(head: &str) -> bool {
    let begins =
        head.starts_with("OFXHEADER") || head.starts_with("<?") || head.starts_with("<OFX");
    begins && head.contains("<OFX>")
}

pub(super) fn read(text: &str, statements: &mut Statements<'_>) {
    let mut markup = Markup::new(text);
    let mut account = Account::default();
    let mut bank: Option<String> = None;
    while let Some(tag) = markup.next() {
        match (tag.name, tag.is_end) {
            ("ORG", false) => bank = Some(tag.text),
            ("CURDEF", false) => account.currency = Some(tag.text),
            ("BANKACCTFROM" | "CCACCTFROM" | "INVACCTFROM", false) => {
                take_account(&markup.element(tag.name), &mut account);
                account.bank = account.bank.take().or_else(|| bank.clone());
            }
            ("STMTTRN", false) => {
                let element = markup.element("STMTTRN");
                statements.transaction(transaction(&element, &account));
            }
            ("LEDGERBAL", false) => {
                let element = markup.element("LEDGERBAL");
                account.balance = element.text("BALAMT").and_then(decimal);
                account.balance_on = element.text("DTASOF").and_then(|day| compact_day(day, 4));
            }
            ("STMTRS" | "CCSTMTRS" | "INVSTMTRS", true) => {
                statements.account(&account);
                account = Account::default();
            }
            _ => {}
        }
    }
    // The file was cut inside of a statement.
    if !account.id.is_empty() {
        statements.account(&account);
    }
    if !text.trim_end().to_ascii_uppercase().ends_with("</OFX>") {
        statements.reject(BROKEN_OFF);
    }
}

fn take_account(element: &Element, account: &mut Account) {
    let number = element.text("ACCTID").unwrap_or_default();
    let bank = element.text("BANKID").or_else(|| element.text("BROKERID"));
    account.id = match bank {
        Some(bank) => format!("{bank}-{number}"),
        None => number.to_owned(),
    };
    account.number = Some(number.to_owned());
    account.kind = element.text("ACCTTYPE").map(str::to_ascii_lowercase);
    account.bank = None;
}

fn transaction(element: &Element, account: &Account) -> Transaction {
    let text = |name: &str| element.text(name).map(str::to_owned);
    let day = |name: &str| element.text(name).and_then(|day| compact_day(day, 4));
    // Another one, in ORIGCURRENCY, is what the amount was before it was converted.
    let currency = element.at("CURRENCY/CURSYM");
    let number = element.text("CHECKNUM").or_else(|| element.text("REFNUM"));
    let to = element.at("BANKACCTTO/ACCTID");
    Transaction {
        account_id: account.id.clone(),
        bank_id: text("FITID"),
        booked_on: day("DTPOSTED"),
        value_on: day("DTAVAIL"),
        amount: element.text("TRNAMT").and_then(decimal),
        currency: currency
            .map(str::to_owned)
            .or_else(|| account.currency.clone()),
        counterparty: text("NAME"),
        counterparty_account: to.map(str::to_owned),
        purpose: text("MEMO"),
        reference: number.map(str::to_owned),
        kind: element.text("TRNTYPE").map(str::to_ascii_lowercase),
        ..Transaction::default()
    }
}
