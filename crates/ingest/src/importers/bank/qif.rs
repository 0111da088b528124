//! QIF, the format of old programs for money: a line for each member, which its first letter names, and `^` after each transaction.
//! It says neither the currency nor the order of dates.

use super::records::{Account, BROKEN_OFF, Statements, Transaction, decimal, order_of};
use crate::table;

/// Lists of transactions; all other lists hold categories, securities and the like.
const TRANSACTIONS: [&str; 5] = ["bank", "ccard", "cash", "oth a", "oth l"];

pub(super) fn is_qif(head: &str) -> bool {
    let first = head.lines().next().unwrap_or_default().to_ascii_lowercase();
    ["!type:", "!account", "!option:", "!clear:"]
        .iter()
        .any(|begins| first.starts_with(begins))
}

pub(super) fn read(text: &str, stem: &str, statements: &mut Statements<'_>) {
    let days = text.lines().filter_map(|line| line.strip_prefix('D'));
    // Descriptions in lists begin with the same letter.
    let days: Vec<String> = days.filter_map(slashed).collect();
    let (order, is_assumed) = order_of(&days.iter().map(String::as_str));
    if is_assumed {
        statements.assume("its dates are read with the month first; none of them tells".to_owned());
    }
    let mut account = Account {
        id: stem.to_owned(),
        name: Some(stem.to_owned()),
        ..Account::default()
    };
    let mut list = String::new();
    let mut lines: Vec<&str> = Vec::new();
    let mut is_new = true;
    for line in text.lines().map(str::trim_end) {
        if let Some(header) = line.strip_prefix('!') {
            lines.clear();
            let header = header.trim().to_ascii_lowercase();
            if !header.starts_with("option:") && !header.starts_with("clear:") {
                list = header;
            }
        } else if line == "^" {
            if list == "account" {
                account = described(&lines);
                is_new = true;
            } else if is_transactions(&list) {
                if std::mem::take(&mut is_new) {
                    statements.account(&account);
                }
                let date = |day: &str| Some(table::date(&slashed(day)?, order)?.text);
                statements.transaction(transaction(&lines, &account, date));
            }
            lines.clear();
        } else if lines.len() < 1_000 {
            lines.push(line);
        }
    }
    if is_transactions(&list) && lines.iter().any(|line| !line.trim().is_empty()) {
        statements.reject(BROKEN_OFF);
    }
}

fn is_transactions(list: &str) -> bool {
    let list = list.strip_prefix("type:").unwrap_or_default();
    TRANSACTIONS.contains(&list.trim())
}

/// `1/ 2'04` and `12-31-23` with slashes; nothing if it is no day.
fn slashed(day: &str) -> Option<String> {
    let day: String = day.chars().filter(|c| !c.is_whitespace()).collect();
    let is_day = day.starts_with(|first: char| first.is_ascii_digit())
        && day
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '/' | '\'' | '-' | '.'));
    if !is_day {
        return None;
    }
    // Years behind an apostrophe are of this century.
    let day = match day.split_once('\'') {
        Some((before, year)) if year.len() == 2 => format!("{before}/20{year}"),
        _ => day.replace('\'', "/"),
    };
    Some(day.replace('-', "/"))
}

fn member<'l>(lines: &[&'l str], letter: char) -> Option<&'l str> {
    let member = lines.iter().find_map(|line| line.strip_prefix(letter));
    member.map(str::trim).filter(|text| !text.is_empty())
}

fn described(lines: &[&str]) -> Account {
    let name = member(lines, 'N').unwrap_or_default();
    Account {
        id: name.to_owned(),
        name: Some(name.to_owned()),
        kind: member(lines, 'T').map(str::to_ascii_lowercase),
        ..Account::default()
    }
}

fn transaction(
    lines: &[&str],
    account: &Account,
    date: impl Fn(&str) -> Option<String>,
) -> Transaction {
    let text = |letter| member(lines, letter).map(str::to_owned);
    let amount = member(lines, 'T').or_else(|| member(lines, 'U'));
    Transaction {
        account_id: account.id.clone(),
        booked_on: member(lines, 'D').and_then(date),
        amount: amount.and_then(decimal),
        counterparty: text('P'),
        purpose: text('M'),
        reference: text('N'),
        category: text('L'),
        ..Transaction::default()
    }
}
