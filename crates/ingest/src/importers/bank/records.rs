//! Accounts and transactions, whatever they were read from, and their keys: what the bank calls a transaction, else a hash of what it
//! says, with which of several equal ones it is.

use std::collections::HashMap;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::importers::json_members::some_text;
use crate::importers::pieces::{Kept, Made};
use crate::readable_key::readable_key;
pub(super) use crate::rejection::BROKEN_OFF;
use crate::table::{self, DateOrder};

#[derive(Debug, Default, Clone)]
pub(super) struct Account {
    /// What tells it apart from all others.
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) number: Option<String>,
    pub(super) bank: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) currency: Option<String>,
    pub(super) balance: Option<String>,
    pub(super) balance_on: Option<String>,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Transaction {
    pub(super) account_id: String,
    /// What the bank calls it, and nothing else of the account.
    pub(super) bank_id: Option<String>,
    pub(super) booked_on: Option<String>,
    pub(super) value_on: Option<String>,
    /// A decimal number, as JSON writes it.
    pub(super) amount: Option<String>,
    pub(super) currency: Option<String>,
    pub(super) counterparty: Option<String>,
    pub(super) counterparty_account: Option<String>,
    pub(super) purpose: Option<String>,
    pub(super) reference: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) category: Option<String>,
    pub(super) fee: Option<String>,
    pub(super) balance: Option<String>,
}

/// Takes what a file says.
pub(super) struct Statements<'m> {
    made: &'m mut Made,
    /// How often a key was given, by the content it was given to last.
    seen: HashMap<String, (u32, String)>,
    /// Accounts with their latest balances.
    accounts: Vec<Account>,
    notes: Vec<String>,
    pending: u64,
}

impl<'m> Statements<'m> {
    pub(super) fn new(made: &'m mut Made) -> Self {
        Self {
            made,
            seen: HashMap::new(),
            accounts: Vec::new(),
            notes: Vec::new(),
            pending: 0,
        }
    }

    pub(super) fn reject(&mut self, message: impl Into<String>) {
        self.made.reject(message);
    }

    /// Leaves out what is not booked.
    pub(super) fn leave_pending(&mut self) {
        self.pending += 1;
    }

    pub(super) fn assume(&mut self, what: String) {
        self.notes.push(what);
    }

    /// Adds the accounts, and says what was assumed or left out.
    pub(super) fn finish(mut self) -> Option<String> {
        for account in std::mem::take(&mut self.accounts) {
            self.add_account(&account);
        }
        let mut notes = self.notes;
        if self.pending > 0 {
            notes.push(format!(
                "left out, because not booked or not moving money: {}",
                self.pending
            ));
        }
        some_text(notes.join("; "))
    }

    /// Takes an account as a statement has it. Of several statements the latest tells the balance.
    pub(super) fn account(&mut self, account: &Account) {
        let known = self.accounts.iter_mut().find(|one| one.id == account.id);
        match known {
            Some(known) if known.balance_on > account.balance_on => {}
            Some(known) => *known = account.clone(),
            None => self.accounts.push(account.clone()),
        }
    }

    fn add_account(&mut self, account: &Account) {
        self.made.add(
            "accounts",
            json!({
                "id": readable_key(&account.id),
                "name": account.name,
                "number": account.number,
                "bank": account.bank,
                "kind": account.kind,
                "currency": account.currency,
                "balance": account.balance.as_deref().and_then(exact),
                "balance_on": account.balance_on,
            }),
        );
    }

    pub(super) fn transaction(&mut self, transaction: Transaction) {
        self.transaction_formerly(transaction, None);
    }

    /// The same for one that an earlier release called after something that is not unique.
    pub(super) fn transaction_formerly(
        &mut self,
        transaction: Transaction,
        former_id: Option<String>,
    ) {
        let Some(amount) = transaction.amount.as_deref().and_then(exact) else {
            return self.reject("a transaction has no amount that is a number");
        };
        if transaction.booked_on.is_none() && transaction.value_on.is_none() {
            return self.reject("a transaction has no date");
        }
        // The balance is not part of what a transaction is: it depends on where a statement begins.
        let content = format!(
            "{:?}",
            Transaction {
                balance: None,
                ..transaction.clone()
            }
        );
        let named = transaction.bank_id.as_deref();
        let named = named.map(|id| format!("{}-{id}", transaction.account_id));
        let Some(key) = self.key(named, content) else {
            return;
        };
        let one = transaction;
        let former = former_id.map(|id| readable_key(&format!("{}-{id}", one.account_id)));
        let record = json!({
                "id": readable_key(&key),
                "account_id": readable_key(&one.account_id),
                "booked_on": one.booked_on.clone().or_else(|| one.value_on.clone()),
                "value_on": one.value_on,
                "amount": amount,
                "currency": one.currency,
                "counterparty": one.counterparty,
                "counterparty_account": one.counterparty_account,
                "purpose": one.purpose,
                "reference": one.reference,
                "kind": one.kind,
                "category": one.category,
                "fee": one.fee.as_deref().and_then(exact),
                "balance": one.balance.as_deref().and_then(exact),
        });
        match former {
            Some(former) => {
                let kept = Kept::Key(former, &["booked_on", "amount", "purpose"]);
                self.made.add_keeping("transactions", record, kept);
            }
            None => self.made.add("transactions", record),
        }
    }

    /// The key of a transaction; nothing if the bank named the same one before.
    fn key(&mut self, named: Option<String>, content: String) -> Option<String> {
        let is_named = named.is_some();
        let base = named.unwrap_or_else(|| {
            let digest = Sha256::digest(content.as_bytes());
            let first = digest.first_chunk::<8>().copied().unwrap_or_default();
            format!("{:016x}", u64::from_be_bytes(first))
        });
        let (count, last) = self.seen.entry(base.clone()).or_default();
        if is_named && *count > 0 && *last == content {
            return None;
        }
        *count += 1;
        *last = content;
        Some(match count {
            1 => base,
            count => format!("{base}-{count}"),
        })
    }
}

/// A decimal number as it is written, digit by digit.
fn exact(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    value.is_number().then_some(value)
}

/// A number with either decimal sign, with separated thousands or without.
pub(super) fn decimal(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches(['.', ',']);
    let (point, comma) = (text.rfind('.'), text.rfind(','));
    let behind_comma = comma.map_or(0, |at| text.len() - at - 1);
    let is_comma = comma > point && (point.is_some() || behind_comma != 3);
    table::number(text, if is_comma { ',' } else { '.' })
}

/// A number with a comma before its fraction and nothing between thousands, and the sign it has in the account.
pub(super) fn signed(digits: &str, is_debit: bool) -> Option<String> {
    let number = table::number(digits.trim().trim_end_matches(','), ',')?;
    let number = number.trim_start_matches('-').to_owned();
    Some(if is_debit {
        format!("-{number}")
    } else {
        number
    })
}

/// `20240304` or `240304`, with whatever behind it, as a day.
pub(super) fn compact_day(text: &str, year_digits: usize) -> Option<String> {
    let digits = text.get(..year_digits + 4)?;
    let (year, rest) = digits.split_at_checked(year_digits)?;
    let (month, day) = rest.split_at_checked(2)?;
    let cell = format!("{year}-{month}-{day}");
    table::date(&cell, DateOrder::YearMonthDay).map(|moment| moment.text)
}

/// In which order days of a file are written: the one in which all can be read. The month comes first where both can.
pub(super) fn order_of<'d>(days: &(impl Iterator<Item = &'d str> + Clone)) -> (DateOrder, bool) {
    let reads = |order| days.clone().all(|day| table::date(day, order).is_some());
    let year_first = days.clone().any(|day| {
        let digits = day.bytes().take_while(u8::is_ascii_digit).count();
        digits == 4
    });
    let has_dots = days.clone().any(|day| day.contains('.'));
    match (
        reads(DateOrder::MonthDayYear),
        reads(DateOrder::DayMonthYear),
    ) {
        _ if year_first => (DateOrder::YearMonthDay, false),
        _ if has_dots => (DateOrder::DayMonthYear, false),
        (true, true) => (DateOrder::MonthDayYear, true),
        (false, true) => (DateOrder::DayMonthYear, false),
        _ => (DateOrder::MonthDayYear, false),
    }
}
