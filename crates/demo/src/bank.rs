//! Two bank accounts: salary and rent, everyday spending, and a line for every order and refund.

use serde::Serialize;

use crate::dice::Dice;
use crate::error::DemoError;
use crate::life::Source;
use crate::lines::Lines;
use crate::moment::{FIRST_DAY, LAST_DAY, Moment};
use crate::shop::{CURRENCY, Purchase};

const DECLARATION: &str = include_str!("../declarations/bank.json");

const CURRENT: &str = "CH00 0000 0001";
const SAVINGS: &str = "CH00 0000 0002";

/// What an account held on the first day.
const OPENING_CENTS: i64 = 1_248_050;

/// Day of the month, hundredths, who, category, purpose.
const MONTHLY: [(&str, i64, &str, &str, &str); 8] = [
    ("25", 845_000, "Tidewater Structures", "salary", "Salary"),
    (
        "01",
        -215_000,
        "Immobilien Spalen AG",
        "rent",
        "Rent, Spalenring 88, third floor",
    ),
    (
        "03",
        -41_230,
        "Helvia Krankenkasse",
        "insurance",
        "Health insurance, premium",
    ),
    (
        "05",
        -5_900,
        "Funknetz",
        "phone",
        "Mobile phones, two numbers",
    ),
    (
        "10",
        -4_800,
        "Schwimmschule Rhyblick",
        "children",
        "Swimming lessons, Lina and Emil",
    ),
    ("12", -7_600, "Basler Verkehr", "transport", "Monthly pass"),
    (
        "15",
        -3_200,
        "Gartenverein Lange Erlen",
        "garden",
        "Allotment and water",
    ),
    (
        "27",
        -50_000,
        "Mara Keller, savings",
        "savings",
        "Standing order",
    ),
];

/// Who, category, purpose, smallest and largest amount.
const EVERYDAY: [(&str, &str, &str, i64, i64); 9] = [
    (
        "Markthalle am Kanal",
        "groceries",
        "Card payment",
        850,
        6_400,
    ),
    ("Dorfladen Spalen", "groceries", "Card payment", 420, 9_800),
    ("Bäckerei Amrein", "groceries", "Card payment", 380, 2_450),
    ("Café Holunder", "restaurants", "Card payment", 540, 3_900),
    (
        "Restaurant Löwenzahn",
        "restaurants",
        "Card payment",
        3_200,
        14_800,
    ),
    ("Apotheke am Ring", "health", "Card payment", 690, 7_450),
    (
        "Buchhandlung Seiltänzer",
        "books",
        "Card payment",
        1_450,
        6_900,
    ),
    ("Bahnbillette", "transport", "Ticket", 380, 8_800),
    ("Kino Quartier", "leisure", "Tickets", 1_600, 5_600),
];

struct Booking {
    day: i64,
    account: &'static str,
    amount_cents: i64,
    counterparty: &'static str,
    category: &'static str,
    reference: Option<String>,
    purpose: String,
}

#[derive(Serialize)]
struct Transaction<'a> {
    account: &'a str,
    number: i64,
    booked_on: &'a str,
    amount_cents: i64,
    currency: &'a str,
    counterparty: &'a str,
    category: &'a str,
    reference: Option<&'a str>,
    purpose: &'a str,
    balance_cents: i64,
}

pub(crate) fn source(purchases: &[Purchase]) -> Result<Source, DemoError> {
    let mut bookings: Vec<Booking> = Vec::new();
    for day in FIRST_DAY..=LAST_DAY {
        monthly(day, &mut bookings);
    }
    everyday(&mut bookings);
    bookings.extend(purchases.iter().flat_map(paid));
    bookings.push(Booking {
        day: Moment::parse("2026-10-02").map_or(LAST_DAY, Moment::day),
        account: CURRENT,
        amount_cents: -9_240,
        counterparty: "Rhône Rail",
        category: "transport",
        reference: Some("QX7T4M".to_owned()),
        purpose: "Train Basel – Lyon and back, 98.00 EUR".to_owned(),
    });
    bookings.sort_by_key(|booking| booking.day);
    let mut lines = Lines::default();
    for account in [CURRENT, SAVINGS] {
        let mut balance_cents = OPENING_CENTS;
        let own = bookings.iter().filter(|booking| booking.account == account);
        for (number, booking) in (1..).zip(own) {
            balance_cents += booking.amount_cents;
            write(booking, (number, balance_cents), &mut lines)?;
        }
    }
    Ok(Source::new(DECLARATION, ("bank", "Bank Dreiland"), lines))
}

fn write(
    booking: &Booking,
    (number, balance_cents): (i64, i64),
    lines: &mut Lines,
) -> Result<(), DemoError> {
    let at = Moment::on(booking.day, 4, 0);
    let transaction = Transaction {
        account: booking.account,
        number,
        booked_on: &at.date(),
        amount_cents: booking.amount_cents,
        currency: CURRENCY,
        counterparty: booking.counterparty,
        category: booking.category,
        reference: booking.reference.as_deref(),
        purpose: &booking.purpose,
        balance_cents,
    };
    let key = [booking.account, &number.to_string()];
    lines.add("transactions", key, &at.text(), &transaction)
}

fn monthly(day: i64, bookings: &mut Vec<Booking>) {
    let date = Moment::on(day, 0, 0).date();
    for (due, amount_cents, counterparty, category, purpose) in MONTHLY {
        if !date.ends_with(&format!("-{due}")) {
            continue;
        }
        let booking = |account, amount_cents| Booking {
            day,
            account,
            amount_cents,
            counterparty,
            category,
            reference: None,
            purpose: purpose.to_owned(),
        };
        bookings.push(booking(CURRENT, amount_cents));
        if category == "savings" {
            bookings.push(booking(SAVINGS, -amount_cents));
        }
    }
}

fn everyday(bookings: &mut Vec<Booking>) {
    let mut dice = Dice::new("bank");
    for day in FIRST_DAY..=LAST_DAY {
        for _ in 0..dice.between(0, 3) {
            let (counterparty, category, purpose, low, high) = *dice.pick(&EVERYDAY);
            bookings.push(Booking {
                day,
                account: CURRENT,
                amount_cents: -dice.between(low, high),
                counterparty,
                category,
                reference: None,
                purpose: purpose.to_owned(),
            });
        }
    }
}

/// What an order leaves in the statement: the payment on the next day, and what came back.
fn paid(purchase: &Purchase) -> Vec<Booking> {
    let booking = |at: Moment, amount_cents, purpose: &str| Booking {
        day: at.day().min(LAST_DAY),
        account: CURRENT,
        amount_cents,
        counterparty: purchase.shop.name,
        category: "shopping",
        reference: Some(purchase.number.clone()),
        purpose: format!("{purpose} {}", purchase.number),
    };
    let total = purchase.total_cents();
    let mut bookings = vec![booking(purchase.at.plus_days(1), -total, "Order")];
    let refunded = purchase.refunded_at;
    bookings.extend(refunded.map(|at| booking(at.plus_days(2), total, "Refund")));
    bookings
}
