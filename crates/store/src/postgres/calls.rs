//! Calls that nodes tell each other of, so that a limit holds for all of them together.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant as Moment};

use super::PostgresStore;
use super::nodes::NOW;
use crate::Result;

/// What was told longer ago is not asked for. Who has not asked for so long begins anew.
const RECENT: Duration = Duration::from_secs(10);
/// What is older than any limit reaches back is removed, in microseconds.
const OLD: i64 = 120_000_000;

/// What other nodes had told when this one asked last, and when that was.
#[derive(Default)]
pub(super) struct Told(Mutex<Known>);

#[derive(Default)]
struct Known {
    made: HashMap<(String, String), i64>,
    at: Option<Moment>,
}

impl PostgresStore {
    /// Tells other nodes of calls, and answers what they have told since.
    pub(super) fn tell_calls(&self, made: &[(String, u64)]) -> Result<Vec<(String, u64)>> {
        let mut known = self.told.0.lock().unwrap_or_else(PoisonError::into_inner);
        let callers: Vec<&str> = made.iter().map(|(caller, _)| caller.as_str()).collect();
        let counts: Vec<i64> = made.iter().map(|(_, count)| count.cast_signed()).collect();
        let recent = i64::try_from(RECENT.as_micros()).unwrap_or(i64::MAX);
        let node = &self.options.node;
        let tell = format!(
            "WITH old AS (
                 DELETE FROM calls WHERE owner_id = $1 AND node = $2 AND at < {NOW} - {OLD} AND NOT caller = ANY($3)
             )
             INSERT INTO calls (owner_id, node, caller, made, at) SELECT $1, $2, caller, made, {NOW} FROM unnest($3, $4) AS new (caller, made)
             ON CONFLICT (owner_id, node, caller) DO UPDATE SET made = calls.made + excluded.made, at = excluded.at"
        );
        let ask = format!(
            "SELECT node, caller, made FROM calls WHERE owner_id = $1 AND node <> $2 AND at > {NOW} - {recent}"
        );
        let rows = self.pool.transact(|tx| {
            tx.execute(&tell, &[&self.owner, node, &callers, &counts])?;
            tx.query(&ask, &[&self.owner, node])
        })?;
        let is_new = known.at.is_none_or(|at| at.elapsed() > RECENT);
        let before = std::mem::take(&mut known.made);
        known.at = Some(Moment::now());
        let mut told: HashMap<String, u64> = HashMap::new();
        for row in &rows {
            let (node, caller, made): (String, String, i64) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let name = (node, caller);
            let seen = before.get(&name).copied().filter(|seen| *seen <= made);
            let more = if is_new { 0 } else { made - seen.unwrap_or(0) };
            if more > 0 {
                *told.entry(name.1.clone()).or_default() += more.cast_unsigned();
            }
            known.made.insert(name, made);
        }
        Ok(told.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{options, two_nodes, url};

    #[test]
    fn a_node_hears_of_every_call_that_another_counted_once() {
        let Some(url) = url() else { return };
        let options = options(&url);
        let [one, two] = two_nodes(&options);
        let calls = |made: u64| vec![("grant".to_owned(), made)];
        let none = || Vec::<(String, u64)>::new();
        assert_eq!(one.tell_calls(&calls(3)).unwrap(), none());
        // What was made before it began is not its own to judge.
        assert_eq!(two.tell_calls(&[]).unwrap(), none());
        assert_eq!(one.tell_calls(&calls(2)).unwrap(), none());
        assert_eq!(two.tell_calls(&calls(1)).unwrap(), calls(2));
        assert_eq!(two.tell_calls(&[]).unwrap(), none());
        let other = vec![("other".to_owned(), 4)];
        assert_eq!(one.tell_calls(&other).unwrap(), calls(1));
        assert_eq!(two.tell_calls(&[]).unwrap(), other);
    }
}
