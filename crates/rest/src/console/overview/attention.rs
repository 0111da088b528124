//! What needs the owner's attention, each with the page that deals with it.

use std::time::Duration;

use contract::time::Instant;
use grants::budget;
use grants::sign_in::has_password;
use grants::{BudgetState, Overview, ShowError, step_up};
use store::search::IndexStatus;

use super::readings::Unusual;
use crate::console::format::{format_count, format_number, label};
use crate::console::moment::Moment;
use crate::console::viewer::client;
use crate::history;
use crate::problem::Problem;
use crate::service::Service;

/// A grant that ends within this time is worth a look.
const SOON: Duration = Duration::from_hours(7 * 24);
/// After this time without a backup there should be one.
const BACKUP_AFTER: Duration = Duration::from_hours(30 * 24);

pub(super) struct Attention {
    pub(super) text: String,
    pub(super) address: String,
    pub(super) link: &'static str,
}

impl Attention {
    fn new(text: String, address: &str, link: &'static str) -> Self {
        let address = address.to_owned();
        Self {
            text,
            address,
            link,
        }
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn attention(
    service: &Service,
    open: &[&Overview],
    name: &dyn Fn(&str) -> String,
) -> Result<Vec<Attention>, Problem> {
    let failed = |error: &dyn std::fmt::Display| Problem::internal("the first page", error);
    let (store, now) = (&*service.store, service.now());
    let status = store.index_status().map_err(|error| failed(&error))?;
    let indexing = indexing_words(&status);
    let indexing = indexing.map(|text| Attention::new(text, "/settings#health", "Health"));
    let mut attention: Vec<Attention> = indexing.into_iter().collect();
    let unusual = service.readings.unusual(now).into_iter();
    attention.extend(unusual.map(|one| read_much(&one, &name(&one.client))));
    let asks = step_up::open_asks(store, now).map_err(|error| failed(&error))?;
    attention.extend(asks.iter().map(|ask| {
        let text = format!(
            "{} asks for more than its grant gives.",
            name(ask.client_id.as_str())
        );
        Attention::new(text, &format!("/asks/{}", ask.id), "Look and decide")
    }));
    for grant in open {
        attention.extend(limited(service, grant, now).map_err(|error| failed(&error))?);
    }
    attention.extend(open.iter().filter_map(|one| ends_soon(one, now)));
    if !has_password(store, now).map_err(|error| failed(&error))? {
        let text = "There is no password: you can sign in only with a link that pdpp sign-in prints at the terminal.";
        attention.push(Attention::new(text.to_owned(), "/settings", "Settings"));
    }
    let last = history::last_backup(store, now).map_err(|error| failed(&error))?;
    let first = store.connections().iter().map(|one| one.created_at).min();
    attention.extend(no_backup(last, first, now));
    Ok(attention)
}

/// How far the index is; nothing where it is whole.
pub(in crate::console) fn indexing_words(status: &IndexStatus) -> Option<String> {
    Some(match status {
        IndexStatus { building: true, .. } => format!(
            "The index is being built: {} of {} changes are in it, and only what is there is found.",
            format_number(status.taken),
            format_number(status.written)
        ),
        IndexStatus {
            rebuilding: 1.., ..
        } => format!(
            "The index is being rebuilt: {} are left, and some of their fields are not found yet.",
            format_count(status.rebuilding, "record")
        ),
        _ => return None,
    })
}

/// A grant that is paused, or has used up its budget.
fn limited(
    service: &Service,
    grant: &Overview,
    now: Instant,
) -> Result<Option<Attention>, ShowError> {
    let store = &*service.store;
    let mut is_limited = false;
    for id in &grant.grant_ids {
        is_limited |= budget::budget(store, id, now)?.is_some();
        is_limited |= budget::paused(store, id, now)?.is_some();
    }
    if !is_limited {
        return Ok(None);
    }
    let shown = grants::show(store, &grant.id, now, 0)?;
    let text = match &shown.paused {
        Some(pause) => format!("{} is paused: {}.", client(grant), label(&pause.reason)),
        None if shown.budgets.iter().any(BudgetState::is_used_up) => {
            format!(
                "{} has read all that its budget allows today.",
                client(grant)
            )
        }
        None => return Ok(None),
    };
    let address = format!("/grants/{}", grant.id);
    Ok(Some(Attention::new(text, &address, "Look at it")))
}

fn ends_soon(grant: &Overview, now: Instant) -> Option<Attention> {
    let ends = Instant::parse(grant.expires_at.as_deref()?)?;
    let at = Moment::new(ends)?;
    let is_soon = ends.0.saturating_sub(now.0) < micros(SOON);
    is_soon.then(|| {
        let text = format!("What {} may read ends on {}.", client(grant), at.shown);
        let address = format!("/grants/{}", grant.id);
        Attention::new(text, &address, "Look at it")
    })
}

fn read_much(one: &Unusual, client: &str) -> Attention {
    let records = format_number(one.records);
    let text = match one.usual {
        Some(usual) => format!(
            "{client} was shown records {records} times within a day, and {} on its other days.",
            format_number(usual)
        ),
        None => format!("{client} was shown records {records} times within a day."),
    };
    let address = format!("/grants/{}/activity", one.grant);
    Attention::new(text, &address, "What it has read")
}

/// `last` is the last backup, `first` when the oldest connection was added.
fn no_backup(last: Option<Instant>, first: Option<Instant>, now: Instant) -> Option<Attention> {
    let since = last.or(first)?;
    let is_long_ago = now.0.saturating_sub(since.0) >= micros(BACKUP_AFTER);
    is_long_ago.then(|| {
        let text = match last.and_then(Moment::new) {
            Some(last) => format!("The last backup was made on {}.", last.shown),
            None => "There is no backup yet.".to_owned(),
        };
        Attention::new(text, "/settings#backup", "Make one")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;

    #[test]
    fn a_month_without_a_backup_is_told() {
        let now = Instant(100 * DAY);
        let told = |last: Option<i64>, first: Option<i64>| {
            let at = |day: Option<i64>| day.map(|day| Instant(day * DAY));
            no_backup(at(last), at(first), now).map(|one| one.text)
        };
        assert_eq!(told(None, None), None);
        assert_eq!(told(None, Some(80)), None);
        assert_eq!(told(None, Some(70)).unwrap(), "There is no backup yet.");
        assert_eq!(told(Some(71), Some(1)), None);
        assert!(
            told(Some(70), Some(1))
                .unwrap()
                .starts_with("The last backup was made on")
        );
    }

    #[test]
    fn an_index_that_is_not_whole_is_told() {
        let whole = IndexStatus {
            written: 5,
            indexed: 5,
            taken: 5,
            building: false,
            rebuilding: 0,
            records: 5,
        };
        assert!(indexing_words(&whole).is_none());
        let building = IndexStatus {
            building: true,
            taken: 3,
            ..whole
        };
        assert!(
            indexing_words(&building)
                .unwrap()
                .contains("3 of 5 changes")
        );
        let rebuilding = IndexStatus {
            rebuilding: 1,
            ..whole
        };
        assert!(indexing_words(&rebuilding).unwrap().contains("1 record"));
    }
}
