//! Statements in XML as ISO 20022 has them: camt.053, and camt.052, which some banks hand out for the same.

use super::records::{Account, Statements, Transaction};
use crate::importers::markup::{Element, Leaf, Markup, attribute};
use crate::table;

pub(super) fn is_statement(head: &str) -> bool {
    head.starts_with('<')
        && ["<BkToCstmrStmt", ":BkToCstmrStmt", "BkToCstmrAcctRpt"]
            .iter()
            .any(|name| head.contains(name))
}

pub(super) fn read(text: &str, statements: &mut Statements<'_>) {
    let mut markup = Markup::new(text);
    let mut account = Account::default();
    while let Some(tag) = markup.next() {
        match (tag.name, tag.is_end) {
            ("Acct", false) => account = described(&markup.element("Acct")),
            ("Bal", false) => {
                let balance = markup.element("Bal");
                if balance.text("Cd") == Some("CLBD") {
                    account.balance = amount(&balance, "Amt").map(|(amount, _)| amount);
                    account.balance_on = day(&balance, "Dt");
                }
            }
            ("Ntry", false) => entry(&markup.element("Ntry"), &account, statements),
            ("Stmt" | "Rpt", true) => {
                statements.account(&account);
                account = Account::default();
            }
            _ => {}
        }
    }
    if !account.id.is_empty() {
        statements.account(&account);
    }
}

fn described(element: &Element<'_>) -> Account {
    let number = element.at("Id/IBAN").or_else(|| element.at("Id/Othr/Id"));
    let bank = [
        "Svcr/FinInstnId/Nm",
        "Svcr/FinInstnId/BICFI",
        "Svcr/FinInstnId/BIC",
    ];
    let bank = bank.iter().find_map(|path| element.at(path));
    Account {
        id: number.unwrap_or_default().to_owned(),
        name: element
            .at("Nm")
            .or_else(|| element.at("Ownr/Nm"))
            .map(str::to_owned),
        number: number.map(str::to_owned),
        bank: bank.map(str::to_owned),
        currency: element.at("Ccy").map(str::to_owned),
        ..Account::default()
    }
}

/// An amount with its sign, and its currency.
fn amount(element: &Element<'_>, path: &str) -> Option<(String, Option<String>)> {
    let leaf = element.leaves().iter().find(|leaf| leaf.path == path)?;
    signed(leaf, element.at("CdtDbtInd"))
}

fn signed(leaf: &Leaf<'_>, direction: Option<&str>) -> Option<(String, Option<String>)> {
    let number = table::number(&leaf.text, '.')?;
    let number = number.trim_start_matches('-');
    let sign = if direction == Some("DBIT") { "-" } else { "" };
    Some((format!("{sign}{number}"), attribute(leaf.attributes, "Ccy")))
}

/// A day, of which the time may be told too.
fn day(element: &Element<'_>, name: &str) -> Option<String> {
    let text = [format!("{name}/Dt"), format!("{name}/DtTm")]
        .iter()
        .find_map(|path| element.at(path))?;
    Some(table::iso(text.get(..10)?)?.text)
}

/// A booked entry is a transaction, or several that were booked together.
fn entry(entry: &Element<'_>, account: &Account, statements: &mut Statements<'_>) {
    let status = entry.at("Sts").or_else(|| entry.at("Sts/Cd"));
    if status.is_some_and(|status| status != "BOOK") {
        return statements.leave_pending();
    }
    let Some((whole, currency)) = amount(entry, "Amt") else {
        return statements.reject("an entry has no amount that is a number");
    };
    let reference = entry.at("AcctSvcrRef").or_else(|| entry.at("NtryRef"));
    let bank_id = reference.filter(|id| !matches!(*id, "NONREF" | "NOTPROVIDED"));
    let booked = Transaction {
        account_id: account.id.clone(),
        bank_id: bank_id.map(str::to_owned),
        booked_on: day(entry, "BookgDt"),
        value_on: day(entry, "ValDt"),
        amount: Some(whole),
        currency: currency.or_else(|| account.currency.clone()),
        kind: entry.at("AddtlNtryInf").map(str::to_owned),
        ..Transaction::default()
    };
    let is_debit = entry.at("CdtDbtInd") == Some("DBIT");
    let parts = parts(entry);
    let [first, rest @ ..] = parts.as_slice() else {
        return statements.transaction(booked);
    };
    let amounts: Option<Vec<_>> = parts.iter().map(|part| part.amount(is_debit)).collect();
    let Some(amounts) = amounts.filter(|_| !rest.is_empty()) else {
        // The parts of a batch that says only what they come to are told as one.
        return statements.transaction(first.completing(booked, is_debit));
    };
    for (nth, (part, (amount, currency))) in parts.iter().zip(amounts).enumerate() {
        let bank_id = booked
            .bank_id
            .as_ref()
            .map(|id| format!("{id}-{}", nth + 1));
        let part_of = Transaction {
            bank_id,
            amount: Some(amount),
            currency: currency.or_else(|| booked.currency.clone()),
            ..booked.clone()
        };
        statements.transaction(part.completing(part_of, is_debit));
    }
}

/// The leaves of one transaction inside an entry.
struct Part<'e>(Vec<&'e Leaf<'e>>);

/// The transactions inside an entry. Each begins with its references, or with whatever a transaction says only once.
fn parts<'e>(entry: &'e Element<'_>) -> Vec<Part<'e>> {
    let mut parts: Vec<Part<'e>> = Vec::new();
    for leaf in entry.leaves() {
        let Some(path) = leaf.path.strip_prefix("NtryDtls/TxDtls/") else {
            continue;
        };
        let may_repeat =
            path.starts_with("RmtInf/") || path.contains("AdrLine") || path.contains("Prtry");
        let is_new = parts
            .last()
            .is_none_or(|part| !may_repeat && part.0.iter().any(|other| other.path == leaf.path));
        if is_new {
            parts.push(Part(Vec::new()));
        }
        parts
            .iter_mut()
            .next_back()
            .into_iter()
            .for_each(|part| part.0.push(leaf));
    }
    parts
}

impl Part<'_> {
    fn leaf(&self, path: &str) -> Option<&Leaf<'_>> {
        let mut leaves = self.0.iter();
        let is_at = |leaf: &&&Leaf<'_>| leaf.path.strip_prefix("NtryDtls/TxDtls/") == Some(path);
        leaves.find(is_at).copied()
    }

    fn at(&self, path: &str) -> Option<String> {
        self.leaf(path).map(|leaf| leaf.text.clone())
    }

    fn amount(&self, is_debit: bool) -> Option<(String, Option<String>)> {
        let leaf = self
            .leaf("Amt")
            .or_else(|| self.leaf("AmtDtls/TxAmt/Amt"))?;
        let told = self.leaf("CdtDbtInd").map(|leaf| leaf.text.as_str());
        signed(leaf, told.or(is_debit.then_some("DBIT")))
    }

    /// Adds who the other party is and what was said to them.
    fn completing(&self, booked: Transaction, is_debit: bool) -> Transaction {
        let (role, account) = if is_debit {
            ("Cdtr", "CdtrAcct")
        } else {
            ("Dbtr", "DbtrAcct")
        };
        let name = self
            .at(&format!("RltdPties/{role}/Nm"))
            .or_else(|| self.at(&format!("RltdPties/{role}/Pty/Nm")));
        let number = self
            .at(&format!("RltdPties/{account}/Id/IBAN"))
            .or_else(|| self.at(&format!("RltdPties/{account}/Id/Othr/Id")));
        let said: Vec<&str> = self
            .0
            .iter()
            .filter(|leaf| leaf.path.ends_with("RmtInf/Ustrd"))
            .map(|leaf| leaf.text.as_str())
            .collect();
        let purpose = (!said.is_empty()).then(|| said.join(" "));
        let reference = self
            .at("RmtInf/Strd/CdtrRefInf/Ref")
            .or_else(|| self.at("Refs/EndToEndId").filter(|id| id != "NOTPROVIDED"));
        Transaction {
            counterparty: name,
            counterparty_account: number,
            purpose: purpose.or_else(|| self.at("AddtlTxInf")),
            reference,
            ..booked
        }
    }
}
