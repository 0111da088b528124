//! Two shops. A purchase is an order with its items and its parcel, a confirmation in the mail, and a line in the bank statement.

use std::fmt::Write as _;

use serde::Serialize;

use crate::dice::Dice;
use crate::error::DemoError;
use crate::grammar::Grammar;
use crate::life::Source;
use crate::lines::Lines;
use crate::mail::{Conversation, Letter};
use crate::moment::{FIRST_DAY, LAST_DAY, Moment};
use crate::people::{HOME, MARA};

const DECLARATION: &str = include_str!("../declarations/shop.json");

pub(crate) const CURRENCY: &str = "CHF";

#[derive(Debug)]
pub(crate) struct Shop {
    connection: &'static str,
    pub(crate) name: &'static str,
    connection_name: &'static str,
    domain: &'static str,
    prefix: &'static str,
    first_number: i64,
    catalogue: &'static str,
    carrier: &'static str,
    orders: usize,
}

const SHOPS: [Shop; 2] = [
    Shop {
        connection: "shop-nordwand",
        name: "Nordwand Outdoor",
        connection_name: "Nordwand Outdoor",
        domain: "nordwand.example",
        prefix: "NW/",
        first_number: 40_112,
        catalogue: "nordwand",
        carrier: "Alpenpost",
        orders: 80,
    },
    Shop {
        connection: "shop-kueche",
        name: "Korn & Küche",
        connection_name: "Korn & Küche",
        domain: "korn-kueche.example",
        prefix: "KK-",
        first_number: 7_031,
        catalogue: "kueche",
        carrier: "Velokurier Rheinknie",
        orders: 130,
    },
];

/// The order that was sent back: the headphones, which Mara returned because one side crackled.
const RETURNED: (&str, &str, i64) = ("KK-9001", "2026-08-22T18:20:00Z", 27_900);

#[derive(Debug)]
struct Item {
    name: &'static str,
    category: &'static str,
    quantity: i64,
    unit_cents: i64,
}

#[derive(Debug)]
pub(crate) struct Purchase {
    pub(crate) shop: &'static Shop,
    pub(crate) number: String,
    pub(crate) at: Moment,
    items: Vec<Item>,
    tracking: String,
    shipped_at: Moment,
    delivered_at: Moment,
    /// When the money came back, for what was sent back.
    pub(crate) refunded_at: Option<Moment>,
}

impl Purchase {
    pub(crate) fn total_cents(&self) -> i64 {
        let lines = self.items.iter();
        lines.map(|item| item.quantity * item.unit_cents).sum()
    }

    fn title(&self) -> String {
        let first = self.items.first().map_or("Order", |item| item.name);
        match self.items.len() {
            0 | 1 => first.to_owned(),
            several => format!("{first} and {} more", several - 1),
        }
    }

    fn status(&self) -> &'static str {
        match (self.refunded_at, self.delivered_at.has_passed()) {
            (Some(_), _) => "returned",
            (None, true) => "delivered",
            (None, false) => "processing",
        }
    }

    /// What the shop wrote about it.
    pub(crate) fn letters(&self) -> Conversation {
        let (shop, number) = (self.shop, &self.number);
        let address = format!("orders@{}", shop.domain);
        let write = |at: Moment, subject: String, body: String| {
            let mut letter = Letter::new((shop.name, &address), &[&HOME[0]], at);
            letter.folder = Some("receipts".to_owned());
            letter.saying(subject, body)
        };
        let mut lines = String::new();
        for item in &self.items {
            let total = francs(item.quantity * item.unit_cents);
            // Writing to a String cannot fail.
            let _ = writeln!(
                lines,
                "{} x {}: {total} {CURRENCY}",
                item.quantity, item.name
            );
        }
        let total = francs(self.total_cents());
        let mut letters = vec![write(
            self.at,
            format!("Your order {number} at {}", shop.name),
            format!(
                "Hello {MARA},\n\nthank you for your order {number}.\n\n{lines}\nTotal: {total} {CURRENCY}, paid by bank transfer, reference {number}.\n\nYour team at {}",
                shop.name
            ),
        )];
        if self.shipped_at.has_passed() {
            letters.push(write(
                self.shipped_at,
                format!("Your order {number} is on its way"),
                format!(
                    "Good news: your parcel was handed to {}. Tracking number: {}.",
                    shop.carrier, self.tracking
                ),
            ));
        }
        if let Some(at) = self.refunded_at {
            letters.push(write(
                at,
                format!("Refund for your order {number}"),
                format!(
                    "Hello {MARA},\n\nyour return has arrived: {}. We have refunded {total} {CURRENCY} to your account, reference {number}. It takes two days.\n\nYour team at {}",
                    self.title(),
                    shop.name
                ),
            ));
        }
        letters
    }
}

/// An amount as people write it.
fn francs(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Everything that was ever ordered, oldest first.
pub(crate) fn purchases(grammar: &Grammar) -> Result<Vec<Purchase>, DemoError> {
    let mut all = Vec::new();
    for shop in &SHOPS {
        let mut dice = Dice::new(shop.connection);
        let mut days: Vec<i64> = (0..shop.orders)
            .map(|_| dice.between(FIRST_DAY, LAST_DAY))
            .collect();
        days.sort_unstable();
        let mut number = shop.first_number;
        for day in days {
            number += dice.between(1, 9);
            let at = Moment::on(day, dice.between(6, 21), dice.between(0, 59));
            let number = format!("{}{number}", shop.prefix);
            let items = items(grammar, shop, &mut dice)?;
            all.push(ordered(shop, number, at, items, &mut dice));
        }
    }
    let (number, at, unit_cents) = RETURNED;
    let at = crate::story::moment(at)?;
    let headphones = vec![Item {
        name: "Noise-cancelling headphones",
        category: "electronics",
        quantity: 1,
        unit_cents,
    }];
    let dice = &mut Dice::new(number);
    let mut returned = ordered(&SHOPS[1], number.to_owned(), at, headphones, dice);
    returned.refunded_at = Some(at.plus_days(11));
    all.push(returned);
    all.sort_by(|one, other| (one.at, &one.number).cmp(&(other.at, &other.number)));
    Ok(all)
}

fn ordered(
    shop: &'static Shop,
    number: String,
    at: Moment,
    items: Vec<Item>,
    dice: &mut Dice,
) -> Purchase {
    let shipped_at = at.plus_minutes(dice.between(300, 2_600)).awake(true);
    Purchase {
        shop,
        number,
        at,
        items,
        tracking: format!("{:012}", dice.between(10_000_000, 899_999_999_999)),
        shipped_at,
        delivered_at: shipped_at
            .plus_minutes(dice.between(900, 4_000))
            .awake(true),
        refunded_at: None,
    }
}

fn items(grammar: &Grammar, shop: &Shop, dice: &mut Dice) -> Result<Vec<Item>, DemoError> {
    let mut items: Vec<Item> = Vec::new();
    for _ in 0..dice.between(1, 4) {
        let line = *dice.pick(grammar.list(shop.catalogue));
        let item = catalogued(line)
            .ok_or_else(|| DemoError::Story(format!("the catalogue line {line:?}")))?;
        // The headphones are in the story, once.
        let known = items.iter().any(|one| one.name == item.name);
        if !known && item.category != "electronics" {
            let cheap = item.unit_cents < 3_000;
            let quantity = if cheap { dice.between(1, 3) } else { 1 };
            items.push(Item { quantity, ..item });
        }
    }
    if items.is_empty() {
        let first = grammar.list(shop.catalogue).first().copied();
        items.extend(first.and_then(catalogued));
    }
    Ok(items)
}

fn catalogued(line: &'static str) -> Option<Item> {
    let mut parts = line.split(" | ");
    Some(Item {
        name: parts.next()?,
        category: parts.next()?,
        quantity: 1,
        unit_cents: parts.next()?.parse().ok()?,
    })
}

#[derive(Serialize)]
struct Order<'a> {
    id: &'a str,
    title: String,
    shop: &'a str,
    status: &'a str,
    ordered_at: &'a str,
    item_count: i64,
    total_cents: i64,
    refunded_cents: i64,
    currency: &'a str,
    payment_reference: &'a str,
    note: Option<&'a str>,
    url: String,
}

#[derive(Serialize)]
struct OrderedItem<'a> {
    order_id: &'a str,
    line: usize,
    name: &'a str,
    category: &'a str,
    quantity: i64,
    unit_cents: i64,
    total_cents: i64,
    currency: &'a str,
    ordered_at: &'a str,
}

#[derive(Serialize)]
struct Shipment<'a> {
    id: &'a str,
    order_id: &'a str,
    carrier: &'a str,
    shipped_at: String,
    delivered_at: Option<String>,
}

pub(crate) fn sources(purchases: &[Purchase]) -> Result<Vec<Source>, DemoError> {
    let mut sources = Vec::new();
    for shop in &SHOPS {
        let mut lines = Lines::default();
        let own = purchases
            .iter()
            .filter(|one| one.shop.connection == shop.connection);
        for purchase in own {
            write(purchase, &mut lines)?;
        }
        sources.push(Source::new(
            DECLARATION,
            (shop.connection, shop.connection_name),
            lines,
        ));
    }
    Ok(sources)
}

fn write(purchase: &Purchase, lines: &mut Lines) -> Result<(), DemoError> {
    let number = purchase.number.as_str();
    let ordered_at = purchase.at.text();
    let total_cents = purchase.total_cents();
    let refunded = purchase.refunded_at.is_some();
    let order = Order {
        id: number,
        title: purchase.title(),
        shop: purchase.shop.name,
        status: purchase.status(),
        ordered_at: &ordered_at,
        item_count: purchase.items.iter().map(|item| item.quantity).sum(),
        total_cents,
        refunded_cents: if refunded { total_cents } else { 0 },
        currency: CURRENCY,
        payment_reference: number,
        note: refunded.then_some("Returned: the left side crackles."),
        url: format!("https://{}/orders?number={number}", purchase.shop.domain),
    };
    lines.add("orders", number, &ordered_at, &order)?;
    for (place, item) in purchase.items.iter().enumerate() {
        let line = place + 1;
        let record = OrderedItem {
            order_id: number,
            line,
            name: item.name,
            category: item.category,
            quantity: item.quantity,
            unit_cents: item.unit_cents,
            total_cents: item.quantity * item.unit_cents,
            currency: CURRENCY,
            ordered_at: &ordered_at,
        };
        lines.add("items", [number, &line.to_string()], &ordered_at, &record)?;
    }
    if !purchase.shipped_at.has_passed() {
        return Ok(());
    }
    let delivered = purchase.delivered_at;
    let shipment = Shipment {
        id: &purchase.tracking,
        order_id: number,
        carrier: purchase.shop.carrier,
        shipped_at: purchase.shipped_at.text(),
        delivered_at: delivered.has_passed().then(|| delivered.text()),
    };
    lines.add(
        "shipments",
        &purchase.tracking,
        &purchase.shipped_at.text(),
        &shipment,
    )
}
