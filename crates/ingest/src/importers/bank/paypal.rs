//! The table of activities that `PayPal` hands out, in English and German.

use super::records::{Account, Statements, Transaction, decimal, order_of};
use crate::importers::Rows;
use crate::lines::MAX_LINE_BYTES;
use crate::table::{self, DateOrder};

/// The names of the columns that are read.
const COLUMNS: [&[&str]; 14] = [
    &["Date", "Datum"],
    &["Name"],
    &["Type", "Description", "Typ", "Beschreibung"],
    &["Status", "Status"],
    &["Currency", "Währung"],
    &["Fee", "Fees", "Gebühr", "Entgelt"],
    &["Net", "Netto"],
    &["From Email Address", "Absender E-Mail-Adresse"],
    &["To Email Address", "Empfänger E-Mail-Adresse"],
    &["Transaction ID", "Transaktionscode"],
    &["Item Title", "Artikelbezeichnung"],
    &["Balance", "Guthaben"],
    &["Balance Impact", "Auswirkung auf Guthaben"],
    &["Invoice Number", "Invoice ID", "Rechnungsnummer"],
];

pub(super) fn is_table(head: &str) -> bool {
    let header = head.lines().next().unwrap_or_default();
    let has = |english: &str| position(&cells(header), english).is_some();
    ["Date", "Currency", "Net", "Fee", "Transaction ID"]
        .into_iter()
        .all(has)
}

fn cells(line: &str) -> Vec<String> {
    let cells = line.split([',', '\t', ';']);
    cells
        .map(|cell| cell.trim_matches(['"', ' ', '\u{feff}']).to_owned())
        .collect()
}

/// Where a column stands, by its English name.
fn position(header: &[String], english: &str) -> Option<usize> {
    let names = COLUMNS
        .iter()
        .find(|names| names.first() == Some(&english))?;
    header.iter().position(|name| names.contains(&name.trim()))
}

/// A row, and where its columns stand.
struct Activity<'r> {
    header: &'r [String],
    row: &'r [String],
    order: DateOrder,
}

impl Activity<'_> {
    fn get(&self, english: &str) -> Option<String> {
        let text = self.row.get(position(self.header, english)?)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number(&self, english: &str) -> Option<String> {
        self.get(english).and_then(|text| decimal(&text))
    }

    fn day(&self) -> Option<String> {
        let day = self.get("Date")?;
        Some(table::date(&day, self.order)?.text)
    }

    /// Whether money was moved. A memo says what was agreed, and another row what was paid.
    fn is_booked(&self) -> bool {
        let is_memo = self
            .get("Balance Impact")
            .is_some_and(|impact| impact.eq_ignore_ascii_case("memo"));
        let is_open = self.get("Status").is_some_and(|status| {
            ["Pending", "Denied", "Offen", "Abgelehnt"].contains(&status.as_str())
        });
        !is_memo && !is_open
    }

    fn account(&self) -> Account {
        let currency = self.get("Currency");
        Account {
            id: format!("paypal-{}", currency.as_deref().unwrap_or_default()),
            name: Some("PayPal".to_owned()),
            bank: Some("PayPal".to_owned()),
            currency,
            balance: self.number("Balance"),
            balance_on: self.day(),
            ..Account::default()
        }
    }

    fn transaction(&self) -> Transaction {
        let amount = self.number("Net");
        let is_debit = amount
            .as_deref()
            .is_some_and(|amount| amount.starts_with('-'));
        let other = if is_debit {
            "To Email Address"
        } else {
            "From Email Address"
        };
        Transaction {
            account_id: self.account().id,
            bank_id: self.get("Transaction ID"),
            booked_on: self.day(),
            amount,
            currency: self.get("Currency"),
            counterparty: self.get("Name"),
            counterparty_account: self.get(other),
            purpose: self.get("Item Title"),
            reference: self.get("Invoice Number"),
            kind: self.get("Type"),
            fee: self.number("Fee"),
            balance: self.number("Balance"),
            ..Transaction::default()
        }
    }
}

pub(super) fn read(text: &str, statements: &mut Statements<'_>) {
    let first = text.lines().next().unwrap_or_default();
    let delimiter = if first.contains('\t') { b'\t' } else { b',' };
    let rows = Rows::with_delimiter(text.as_bytes(), MAX_LINE_BYTES, delimiter);
    let Ok(mut rows) = rows else {
        return statements.reject("it is no table");
    };
    let Ok(Some(header)) = rows.next_cells() else {
        return;
    };
    let mut table = Vec::new();
    while let Ok(Some((_, cells))) = rows.next_texts() {
        match cells {
            Ok(cells) => table.push(cells),
            Err(rejection) => statements.reject(rejection.message),
        }
    }
    let date = position(&header, "Date").unwrap_or_default();
    let days = table
        .iter()
        .filter_map(|row| row.get(date))
        .map(|day| day.trim());
    let (order, is_assumed) = order_of(&days.filter(|day| !day.is_empty()));
    if is_assumed {
        statements.assume("its dates are read with the month first; none of them tells".to_owned());
    }
    let mut balances: Vec<Account> = Vec::new();
    for row in &table {
        let header = &header;
        let activity = Activity { header, row, order };
        if activity.is_booked() {
            statements.transaction(activity.transaction());
            keep_latest(&mut balances, activity.account());
        } else {
            statements.leave_pending();
        }
    }
    for account in &balances {
        statements.account(account);
    }
}

/// Keeps the balance of the latest day; rows of a day may stand in either order, so the first of them counts only where it is later.
fn keep_latest(balances: &mut Vec<Account>, account: Account) {
    match balances.iter_mut().find(|one| one.id == account.id) {
        Some(known) if known.balance_on < account.balance_on => *known = account,
        Some(_) => {}
        None => balances.push(account),
    }
}
