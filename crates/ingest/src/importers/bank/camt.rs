//! Statements in XML as ISO 20022 has them: camt.053, and camt.052, which some banks hand out for the same.

use super::records::{Account, Statements, Transaction};
use crate::importers::xml::Node;
use crate::rejection::Rejection;
use crate::table;

pub(super) fn is_statement(head: &str) -> bool {
    head.starts_with('<')
        && ["<BkToCstmrStmt", ":BkToCstmrStmt", "BkToCstmrAcctRpt"]
            .iter()
            .any(|name| head.contains(name))
}

pub(super) fn read(text: &str, statements: &mut Statements<'_>) -> Result<(), Rejection> {
    let document = Node::parse(text.as_bytes())?;
    each_statement(&document, &mut |statement| {
        let account = statement.child("Acct").map(described);
        let mut account = account.unwrap_or_default();
        for balance in statement.named("Bal") {
            let is_closing = balance
                .find("Cd")
                .is_some_and(|code| code.text().trim() == "CLBD");
            if is_closing {
                account.balance = amount(balance).map(|(amount, _)| amount);
                account.balance_on = day(balance, "Dt");
            }
        }
        for one in statement.named("Ntry") {
            entry(one, &account, statements);
        }
        statements.account(&account);
    });
    Ok(())
}

/// A file may hold several statements, and may wrap them in elements of its own.
fn each_statement(node: &Node, take: &mut dyn FnMut(&Node)) {
    for child in node.children() {
        if matches!(child.name.as_str(), "Stmt" | "Rpt") {
            take(child);
        } else {
            each_statement(child, take);
        }
    }
}

fn described(account: &Node) -> Account {
    let number = account.at("Id/IBAN").or_else(|| account.at("Id/Othr/Id"));
    let bank = [
        "Svcr/FinInstnId/Nm",
        "Svcr/FinInstnId/BICFI",
        "Svcr/FinInstnId/BIC",
    ];
    Account {
        id: number.clone().unwrap_or_default(),
        name: account.at("Nm").or_else(|| account.at("Ownr/Nm")),
        number,
        bank: bank.iter().find_map(|path| account.at(path)),
        currency: account.at("Ccy"),
        ..Account::default()
    }
}

/// The amount of an element with its sign, and its currency.
fn amount(element: &Node) -> Option<(String, Option<String>)> {
    signed(element.child("Amt")?, element.at("CdtDbtInd").as_deref())
}

fn signed(amount: &Node, direction: Option<&str>) -> Option<(String, Option<String>)> {
    let number = table::number(amount.text().trim(), '.')?;
    let number = number.trim_start_matches('-');
    let sign = if direction == Some("DBIT") { "-" } else { "" };
    let currency = amount.attribute("Ccy").map(str::to_owned);
    Some((format!("{sign}{number}"), currency))
}

/// A day, of which the time may be told too.
fn day(element: &Node, name: &str) -> Option<String> {
    let day = element.child(name)?;
    let text = day.at("Dt").or_else(|| day.at("DtTm"))?;
    Some(table::iso(text.get(..10)?)?.text)
}

/// A booked entry is a transaction, or several that were booked together.
fn entry(entry: &Node, account: &Account, statements: &mut Statements<'_>) {
    let status = entry.at("Sts/Cd").or_else(|| entry.at("Sts"));
    if status.is_some_and(|status| status != "BOOK") {
        return statements.leave_pending();
    }
    let Some((whole, currency)) = amount(entry) else {
        return statements.reject("an entry has no amount that is a number");
    };
    let is_told = |id: &String| !matches!(id.as_str(), "NONREF" | "NOTPROVIDED");
    let bank_id = entry.at("AcctSvcrRef");
    // Many banks number the entries of each statement from one on; earlier releases made keys of these numbers.
    let former = entry.at("NtryRef").filter(|_| bank_id.is_none());
    let (bank_id, former) = (bank_id.filter(is_told), former.filter(is_told));
    let booked = Transaction {
        account_id: account.id.clone(),
        bank_id,
        booked_on: day(entry, "BookgDt"),
        value_on: day(entry, "ValDt"),
        amount: Some(whole),
        currency: currency.or_else(|| account.currency.clone()),
        kind: entry.at("AddtlNtryInf"),
        ..Transaction::default()
    };
    let is_debit = entry.at("CdtDbtInd").as_deref() == Some("DBIT");
    let parts: Vec<&Node> = entry
        .named("NtryDtls")
        .flat_map(|details| details.named("TxDtls"))
        .collect();
    let [first, rest @ ..] = parts.as_slice() else {
        return statements.transaction_formerly(booked, former);
    };
    let amounts: Option<Vec<_>> = parts
        .iter()
        .map(|part| part_amount(part, is_debit))
        .collect();
    let Some(amounts) = amounts.filter(|_| !rest.is_empty()) else {
        // The parts of a batch that says only what they come to are told as one.
        return statements.transaction_formerly(completed(first, booked, is_debit), former);
    };
    for (nth, (part, (amount, currency))) in parts.iter().zip(amounts).enumerate() {
        let of_part = |id: &String| format!("{id}-{}", nth + 1);
        let bank_id = booked.bank_id.as_ref().map(of_part);
        let former = former.as_ref().map(of_part);
        let part_of = Transaction {
            bank_id,
            amount: Some(amount),
            currency: currency.or_else(|| booked.currency.clone()),
            ..booked.clone()
        };
        statements.transaction_formerly(completed(part, part_of, is_debit), former);
    }
}

/// The amount of one transaction inside an entry.
fn part_amount(part: &Node, is_debit: bool) -> Option<(String, Option<String>)> {
    let within = || part.child("AmtDtls")?.child("TxAmt")?.child("Amt");
    let amount = part.child("Amt").or_else(within)?;
    let told = part.at("CdtDbtInd");
    signed(amount, told.as_deref().or(is_debit.then_some("DBIT")))
}

/// Adds who the other party is and what was said to them.
fn completed(part: &Node, booked: Transaction, is_debit: bool) -> Transaction {
    let (role, account) = if is_debit {
        ("Cdtr", "CdtrAcct")
    } else {
        ("Dbtr", "DbtrAcct")
    };
    let name = part
        .at(&format!("RltdPties/{role}/Nm"))
        .or_else(|| part.at(&format!("RltdPties/{role}/Pty/Nm")));
    let number = part
        .at(&format!("RltdPties/{account}/Id/IBAN"))
        .or_else(|| part.at(&format!("RltdPties/{account}/Id/Othr/Id")));
    let said = part
        .named("RmtInf")
        .flat_map(|said| said.named("Ustrd"))
        .map(|said| said.text().trim().to_owned());
    let said: Vec<String> = said.collect();
    let purpose = (!said.is_empty()).then(|| said.join(" "));
    let reference = part
        .at("RmtInf/Strd/CdtrRefInf/Ref")
        .or_else(|| part.at("Refs/EndToEndId").filter(|id| id != "NOTPROVIDED"));
    Transaction {
        counterparty: name,
        counterparty_account: number,
        purpose: purpose.or_else(|| part.at("AddtlTxInf")),
        reference,
        ..booked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importers::pieces::Made;

    #[test]
    fn a_statement_that_is_cut_off_or_crossed_is_refused_whole() {
        let whole = "<Document><BkToCstmrStmt><Stmt><Acct><Id><IBAN>X1</IBAN></Id></Acct>\
            <Ntry><Amt Ccy='EUR'>5.00</Amt><CdtDbtInd>DBIT</CdtDbtInd></Ntry></Stmt></BkToCstmrStmt></Document>";
        let refusal = |text: &str| {
            let mut made = Made::default();
            read(text, &mut Statements::new(&mut made)).map_err(|why| why.message)
        };
        assert_eq!(refusal(whole), Ok(()));
        let cut = whole.split_once("</Ntry>").unwrap().0;
        assert_eq!(refusal(cut), Err("it ends inside an element".to_owned()));
        let crossed = whole.replace("</Ntry></Stmt>", "</Stmt></Ntry>");
        assert!(refusal(&crossed).unwrap_err().contains("it is not XML"));
    }
}
