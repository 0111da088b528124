//! Statements as SWIFT has them: MT940. A line begins with a tag between colons or goes on with the one before; `:61:` is a transaction
//! and `:86:` what is said of it.

use super::records::{Account, BROKEN_OFF, Statements, Transaction, compact_day, signed};

pub(super) fn is_statement(head: &str) -> bool {
    let has = |tag: &str| head.lines().any(|line| line.starts_with(tag));
    (has(":20:") || head.contains("{4:\n:20:") || head.contains("{4:\r\n:20:"))
        && has(":25")
        && (has(":60") || has(":61:"))
}

/// A field: its tag, and its lines.
struct Field<'t> {
    tag: &'t str,
    lines: Vec<&'t str>,
}

pub(super) fn read(text: &str, statements: &mut Statements<'_>) {
    let mut account = Account::default();
    let mut open: Option<Transaction> = None;
    let mut is_inside = false;
    for field in fields(text) {
        let first = field.lines.first().copied().unwrap_or_default();
        if field.tag == "86" {
            if let Some(mut transaction) = open.take() {
                tell(&field.lines, &mut transaction);
                statements.transaction(transaction);
            }
            continue;
        }
        if let Some(transaction) = open.take() {
            statements.transaction(transaction);
        }
        match field.tag {
            "25" | "25P" => {
                account = Account {
                    id: first.trim().to_owned(),
                    number: Some(first.trim().to_owned()),
                    ..Account::default()
                };
            }
            "60F" | "60M" => {
                account.currency = first.get(7..10).map(str::to_owned);
                is_inside = true;
            }
            "61" => match transaction(&field.lines, &account) {
                Some(transaction) => open = Some(transaction),
                None => statements.reject(format!("the line ':61:{first}' is no transaction")),
            },
            // What a page of a statement ends with is no balance of a day.
            "62M" => is_inside = false,
            "62F" => {
                is_inside = false;
                let (side, rest) = first.split_at_checked(1).unwrap_or_default();
                account.balance_on = compact_day(rest, 2);
                account.currency = rest
                    .get(6..9)
                    .map(str::to_owned)
                    .or(account.currency.take());
                account.balance = rest.get(9..).and_then(|digits| signed(digits, side == "D"));
                statements.account(&account);
            }
            _ => {}
        }
    }
    if let Some(transaction) = open {
        statements.transaction(transaction);
    }
    if is_inside {
        statements.reject(BROKEN_OFF);
    }
}

fn fields(text: &str) -> impl Iterator<Item = Field<'_>> {
    let mut lines = text.lines().map(str::trim_end).peekable();
    std::iter::from_fn(move || {
        loop {
            let Some((tag, first)) = tagged(lines.next()?) else {
                continue;
            };
            let mut field = Field {
                tag,
                lines: vec![first],
            };
            while let Some(line) = lines.next_if(|line| tagged(line).is_none() && !ends(line)) {
                field.lines.push(line);
            }
            return Some(field);
        }
    })
}

/// The tag of a line, and what follows it.
fn tagged(line: &str) -> Option<(&str, &str)> {
    let (tag, rest) = line.strip_prefix(':')?.split_once(':')?;
    let is_tag = matches!(tag.len(), 2 | 3) && tag.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then_some((tag, rest))
}

/// Whether a message ends here.
fn ends(line: &str) -> bool {
    line == "-" || line.starts_with("-}") || line.starts_with('{')
}

/// `2403040305DR12,50NTRFNONREF//BANK-1`: value date, day of booking, side, amount, kind, and two references.
fn transaction(lines: &[&str], account: &Account) -> Option<Transaction> {
    let line = *lines.first()?;
    let value_on = compact_day(line, 2)?;
    let rest = line.get(6..)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (booked, rest) = rest.split_at_checked(if digits == 4 { 4 } else { 0 })?;
    let (is_reversal, rest) = match rest.strip_prefix('R') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let is_debit = match rest.chars().next()? {
        'D' => !is_reversal,
        'C' => is_reversal,
        _ => return None,
    };
    // The last letter of the currency may follow.
    let rest = rest
        .get(1..)?
        .trim_start_matches(|c: char| c.is_ascii_uppercase());
    let length = rest
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b',')
        .count();
    let (digits, rest) = rest.split_at_checked(length)?;
    let rest = rest.get(4..).unwrap_or_default();
    let (reference, bank_reference) = rest.split_once("//").unwrap_or((rest, ""));
    let mut references = [reference.trim(), bank_reference.trim()].into_iter();
    let reference = references.find(|text| !matches!(*text, "" | "NONREF"));
    let noted = lines.get(1..)?.join(" ").trim().to_owned();
    Some(Transaction {
        account_id: account.id.clone(),
        booked_on: booked_on(&value_on, booked).or_else(|| Some(value_on.clone())),
        value_on: Some(value_on),
        amount: signed(digits, is_debit),
        currency: account.currency.clone(),
        reference: reference.map(str::to_owned),
        kind: Some(noted).filter(|noted| !noted.is_empty()),
        ..Transaction::default()
    })
}

/// The day of booking has no year: it is the nearest to the value date.
fn booked_on(value_on: &str, month_and_day: &str) -> Option<String> {
    let (month, day) = month_and_day.split_at_checked(2)?;
    let value: jiff::civil::Date = value_on.parse().ok()?;
    let (month, day) = (month.parse().ok()?, day.parse().ok()?);
    let years = [value.year() - 1, value.year(), value.year() + 1];
    let days = years
        .into_iter()
        .filter_map(|year| jiff::civil::Date::new(year, month, day).ok());
    let nearest = days.min_by_key(|day| (*day - value).get_days().abs());
    nearest.map(|day| day.to_string())
}

/// What a bank says of a transaction: in parts that `?` and two digits begin, in parts with names between slashes, or as a text.
fn tell(lines: &[&str], transaction: &mut Transaction) {
    let joined = lines.concat();
    if joined.get(3..4) == Some("?") {
        return tell_numbered(&joined, transaction);
    }
    let named = |name: &str| {
        let (_, behind) = joined.split_once(&format!("/{name}/"))?;
        let end = behind.find('/').unwrap_or(behind.len());
        Some(behind.get(..end)?.trim().to_owned()).filter(|text| !text.is_empty())
    };
    transaction.counterparty = named("NAME");
    transaction.counterparty_account = named("IBAN");
    let remitted = named("REMI").filter(|text| *text != "USTD");
    let text = lines.join(" ").trim().to_owned();
    transaction.purpose = remitted.or(Some(text)).filter(|text| !text.is_empty());
}

/// The parts as German banks number them: 00 the kind, 20 to 29 and 60 to 63 the purpose, 31 the account and 32 and 33 the name of the
/// other party.
fn tell_numbered(joined: &str, transaction: &mut Transaction) {
    let (mut purpose, mut name) = (String::new(), String::new());
    for part in joined.split('?').skip(1) {
        let Some((number, text)) = part.split_at_checked(2) else {
            continue;
        };
        match number {
            number if number.starts_with('2') || matches!(number, "60" | "61" | "62" | "63") => {
                purpose.push_str(text);
            }
            "00" => transaction.kind = Some(text.trim().to_owned()),
            "31" => transaction.counterparty_account = Some(text.trim().to_owned()),
            "32" | "33" => name.push_str(text),
            _ => {}
        }
    }
    let sepa = |mark: &str| {
        let (_, behind) = purpose.split_once(mark)?;
        let marks = [
            "EREF+", "KREF+", "MREF+", "CRED+", "DEBT+", "SVWZ+", "ABWA+", "IBAN+", "BIC+",
        ];
        let end = marks.iter().filter_map(|mark| behind.find(mark)).min();
        let text = behind.get(..end.unwrap_or(behind.len()))?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let reference = sepa("EREF+").filter(|id| id != "NOTPROVIDED");
    transaction.reference = reference.or(transaction.reference.take());
    transaction.purpose = sepa("SVWZ+").or_else(|| Some(purpose.trim().to_owned()));
    transaction.purpose.take_if(|text| text.is_empty());
    transaction.counterparty = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
}
