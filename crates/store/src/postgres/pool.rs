//! Connections to the database, and transactions on them, for callers that wait.
//!
//! A pooler in front of the database may give every transaction another session. So nothing is prepared under a name, and
//! limits are set within each transaction.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, ToSql, Type};

use super::address::Address;
use super::connection::Connection;
use super::failure;
use super::waiting::Waiting;
use crate::{Result, StoreError};

/// How long a caller waits for a free connection.
const CONNECTION_WITHIN: Duration = Duration::from_secs(2);
/// How long a transaction waits for a lock of another.
const LOCK_MS: u32 = 10_000;
/// How long one statement may take.
const STATEMENT: Duration = Duration::from_mins(1);
/// What the server is given more than that to report it, before the connection counts as lost.
const GRACE: Duration = Duration::from_secs(10);
/// How long the server may take to answer what costs it nothing. Where it takes longer, what is sent gets lost without a word.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How many rows are fetched first and at most, and how many bytes.
const FETCHED_FIRST: usize = 16;
const FETCHED_MOST: usize = 2_000;
const FETCHED_BYTES: usize = 16 * 1024 * 1024;
/// A node that stops in the middle of a transaction must not keep its locks.
const IDLE_MS: u32 = 30_000;

/// A value for a statement, with the type that the statement is sent with.
pub(crate) trait Param: ToSql + Sync {
    fn sql_type(&self) -> Type;
}

macro_rules! params {
    ($($rust:ty => $sql:ident),+ $(,)?) => {$(
        impl Param for $rust {
            fn sql_type(&self) -> Type {
                Type::$sql
            }
        }
    )+};
}

params! {
    bool => BOOL, i64 => INT8, Option<i64> => INT8, f64 => FLOAT8,
    &str => TEXT, String => TEXT, Option<&str> => TEXT, Option<String> => TEXT,
    &[u8] => BYTEA, Vec<u8> => BYTEA,
    Vec<i64> => INT8_ARRAY, &[i64] => INT8_ARRAY, Vec<Option<i64>> => INT8_ARRAY,
    Vec<&str> => TEXT_ARRAY, Vec<String> => TEXT_ARRAY, &[&str] => TEXT_ARRAY, &[String] => TEXT_ARRAY,
    Vec<Option<&str>> => TEXT_ARRAY, Vec<Option<String>> => TEXT_ARRAY,
    Vec<&[u8]> => BYTEA_ARRAY, Vec<Vec<u8>> => BYTEA_ARRAY, Vec<Option<Vec<u8>>> => BYTEA_ARRAY,
}

/// A row of an answer. A column of another type than was written is an error, not a panic.
#[derive(Debug)]
pub(crate) struct Row {
    columns: tokio_postgres::Row,
    place: Arc<str>,
}

impl Row {
    pub(crate) fn get<'a, T: FromSql<'a>>(&'a self, column: usize) -> Result<T> {
        let value = self.columns.try_get(column);
        value.map_err(|error| self.unreadable(column, &failure::words(&error)))
    }

    /// A value that was checked when it was written.
    pub(crate) fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        column: usize,
    ) -> Result<T> {
        let text: &str = self.get(column)?;
        let parsed = text.parse();
        parsed.map_err(|error: T::Err| self.unreadable(column, &error.to_string()))
    }

    fn unreadable(&self, column: usize, detail: &str) -> StoreError {
        let name = self.columns.columns().get(column);
        let name = name.map_or("?", |column| column.name());
        StoreError::Database {
            place: self.place.to_string(),
            detail: format!("the column {name:?} does not hold what was written: {detail}"),
        }
    }
}

pub(crate) struct Pool {
    address: Address,
    connections: Mutex<Connections>,
    freed: Condvar,
    place: Arc<str>,
    /// How often the database was asked and answered.
    pub(super) round_trips: AtomicU64,
    pub(super) waiting: Arc<Waiting>,
}

struct Connections {
    idle: Vec<Connection>,
    /// How many more may be made.
    left: usize,
}

impl Pool {
    pub(super) fn open(address: Address) -> Result<Self> {
        let waiting = Waiting::start().map_err(|error| StoreError::Database {
            place: address.place.clone(),
            detail: error.to_string(),
        })?;
        let processors = available_parallelism().map_or(4, usize::from);
        Ok(Self {
            place: address.place.as_str().into(),
            address,
            connections: Mutex::new(Connections {
                idle: Vec::new(),
                left: 2 * processors + 2,
            }),
            freed: Condvar::new(),
            round_trips: AtomicU64::new(0),
            waiting: Arc::new(waiting),
        })
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is free or new. What ended while nobody used it is passed over.
    fn connection(&self) -> Result<Connection> {
        let until = Instant::now() + CONNECTION_WITHIN;
        let mut connections = self.connections();
        loop {
            while let Some(mut connection) = connections.idle.pop() {
                if !connection.has_ended() {
                    return Ok(connection);
                }
                connections.left += 1;
            }
            if connections.left > 0 {
                connections.left -= 1;
                break;
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return Err(StoreError::Unavailable {
                    place: self.place.to_string(),
                    detail: "no connection was free in time".to_owned(),
                });
            };
            let waited = self.freed.wait_timeout(connections, left);
            connections = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(connections);
        let opened = Connection::open(&self.address, &self.waiting);
        opened.inspect_err(|_| self.give_back(None))
    }

    /// Lets somebody else use a connection, or make one in place of one that is of no use any more.
    fn give_back(&self, connection: Option<Connection>) {
        let mut connections = self.connections();
        match connection {
            Some(connection) => connections.idle.push(connection),
            None => connections.left += 1,
        }
        drop(connections);
        self.freed.notify_one();
    }

    /// The servers and the database, for people.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Reads without a transaction: each statement sees what is committed when it begins.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        let tx = self.begin(None)?;
        work(&tx)
    }

    /// Reads what costs the server nothing; every request begins with that. So it is told soon where the network swallows what is
    /// sent.
    pub(super) fn glance<T>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        let mut tx = self.begin(None)?;
        tx.within = ANSWER_WITHIN;
        work(&tx)
    }

    pub(crate) fn query(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>> {
        self.read(|tx| tx.query(sql, params))
    }

    pub(crate) fn query_one(&self, sql: &str, params: &[&dyn Param]) -> Result<Row> {
        self.read(|tx| tx.query_one(sql, params))
    }

    pub(crate) fn query_opt(&self, sql: &str, params: &[&dyn Param]) -> Result<Option<Row>> {
        self.read(|tx| tx.query_opt(sql, params))
    }

    /// Reads several statements that all see the same moment.
    pub(crate) fn snapshot<T>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        let tx = self.begin(Some("ISOLATION LEVEL REPEATABLE READ READ ONLY"))?;
        let outcome = work(&tx);
        tx.roll_back();
        outcome
    }

    /// Changes something in one transaction. After [`StoreError::Unavailable`] it may have been committed; after any other
    /// error it was not. Nothing is tried again here.
    pub(crate) fn transact<T>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        self.transact_if(|tx| work(tx).map(Some))?
            .ok_or(StoreError::Stopped)
    }

    /// The same; where the work finds that it must not be done and returns `None`, nothing is.
    pub(crate) fn transact_if<T>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let tx = self.begin(Some("ISOLATION LEVEL READ COMMITTED"))?;
        match work(&tx) {
            Ok(Some(value)) => tx.commit().map(|()| Some(value)),
            unfit => {
                tx.roll_back();
                unfit
            }
        }
    }

    pub(super) fn begin(&self, mode: Option<&str>) -> Result<Tx<'_>> {
        let mut tx = Tx {
            pool: self,
            connection: Some(RefCell::new(self.connection()?)),
            state: Cell::new(State::Idle),
            within: ANSWER_WITHIN,
        };
        if let Some(mode) = mode {
            tx.state.set(State::Open);
            tx.batch(&format!(
                "BEGIN {mode}; SET LOCAL lock_timeout = {LOCK_MS}; SET LOCAL statement_timeout = {}; \
                 SET LOCAL idle_in_transaction_session_timeout = {IDLE_MS}",
                STATEMENT.as_millis()
            ))?;
        }
        tx.within = STATEMENT + GRACE;
        Ok(tx)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No transaction is open: each statement is one.
    Idle,
    Open,
    /// A statement failed, and the transaction can only be rolled back.
    Failed,
    /// The connection is of no use any more.
    Lost,
}

/// One connection, while a transaction or a read has it.
pub(crate) struct Tx<'a> {
    pool: &'a Pool,
    connection: Option<RefCell<Connection>>,
    state: Cell<State>,
    /// How long a statement waits for its answer.
    within: Duration,
}

impl Tx<'_> {
    pub(crate) fn query(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>> {
        let params = typed(params);
        let rows = self.run(async |client| client.query_typed(sql, &params).await)?;
        let row = |columns| Row {
            columns,
            place: Arc::clone(&self.pool.place),
        };
        Ok(rows.into_iter().map(row).collect())
    }

    /// The one row that there is; another number of them is an error.
    pub(crate) fn query_one(&self, sql: &str, params: &[&dyn Param]) -> Result<Row> {
        self.query_opt(sql, params)?
            .ok_or_else(|| self.missing_row())
    }

    pub(super) fn missing_row(&self) -> StoreError {
        StoreError::Database {
            place: self.pool.place.to_string(),
            detail: "a row that must be there is missing".to_owned(),
        }
    }

    pub(crate) fn query_opt(&self, sql: &str, params: &[&dyn Param]) -> Result<Option<Row>> {
        let mut rows = self.query(sql, params)?;
        if rows.len() > 1 {
            return Err(StoreError::Database {
                place: self.pool.place.to_string(),
                detail: "there are two rows where one can be".to_owned(),
            });
        }
        Ok(rows.pop())
    }

    /// Hands over the rows of a query within a transaction, until the callback returns false. Returns whether it never did. Some
    /// are fetched at a time, and fewer where they are large: a row may have some 50 MiB.
    pub(super) fn each(
        &self,
        sql: &str,
        params: &[&dyn Param],
        each: &mut dyn FnMut(&Row) -> Result<bool>,
    ) -> Result<bool> {
        self.execute(
            &format!("DECLARE handed NO SCROLL CURSOR FOR {sql}"),
            params,
        )?;
        let (mut wanted, mut goes_on) = (FETCHED_FIRST, true);
        while goes_on {
            let rows = self.query(&format!("FETCH {wanted} FROM handed"), &[])?;
            for row in &rows {
                goes_on = goes_on && each(row)?;
            }
            if rows.len() < wanted {
                break;
            }
            let bytes: usize = rows.iter().map(|row| row.columns.raw_size_bytes()).sum();
            let fitting = FETCHED_BYTES / (bytes / rows.len()).max(1);
            wanted = fitting.clamp(1, FETCHED_MOST.min(wanted * 2));
        }
        self.batch("CLOSE handed")?;
        Ok(goes_on)
    }

    /// Returns how many rows were changed.
    pub(crate) fn execute(&self, sql: &str, params: &[&dyn Param]) -> Result<u64> {
        let params = typed(params);
        self.run(async |client| client.execute_typed(sql, &params).await)
    }

    /// Executes a statement once for each set of values. All are sent before the first is answered.
    pub(super) fn execute_each<const N: usize>(
        &self,
        sql: &str,
        each: &[[&dyn Param; N]],
    ) -> Result<()> {
        if each.is_empty() {
            return Ok(());
        }
        let each: Vec<_> = each.iter().map(|params| typed(params)).collect();
        self.run(async |client| {
            let sent = each.iter().map(|params| client.execute_typed(sql, params));
            all_of(sent.collect()).await
        })
    }

    /// Several statements without values.
    pub(super) fn batch(&self, sql: &str) -> Result<()> {
        self.run(async |client| client.batch_execute(sql).await)
    }

    fn run<T>(
        &self,
        statement: impl AsyncFnOnce(&Client) -> std::result::Result<T, tokio_postgres::Error>,
    ) -> Result<T> {
        let lost = |detail: &str| StoreError::Unavailable {
            place: self.pool.place.to_string(),
            detail: detail.to_owned(),
        };
        let Some(connection) = self
            .connection
            .as_ref()
            .filter(|_| self.state.get() != State::Lost)
        else {
            return Err(lost("the connection was lost"));
        };
        self.pool.round_trips.fetch_add(1, Ordering::Relaxed);
        let mut connection = connection.borrow_mut();
        match connection.wait(statement, Instant::now() + self.within) {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => {
                // The session may keep that it only reads when the database takes writes again.
                let only_reads = error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION);
                let is_lost = connection.is_closed() || error.as_db_error().is_none() || only_reads;
                self.state.set(match self.state.get() {
                    _ if is_lost => State::Lost,
                    State::Open => State::Failed,
                    state => state,
                });
                Err(failure::of_statement(&self.pool.place, &error))
            }
            None => {
                self.state.set(State::Lost);
                Err(lost("it did not answer in time"))
            }
        }
    }

    fn commit(self) -> Result<()> {
        if self.state.get() == State::Failed {
            let place = self.pool.place.to_string();
            self.roll_back();
            return Err(StoreError::Database {
                place,
                detail: "a statement of the transaction failed, so it was not committed".to_owned(),
            });
        }
        let committed = self.batch("COMMIT");
        if committed.is_ok() {
            self.state.set(State::Idle);
        }
        committed
    }

    /// The connection is given up where this fails: the server then rolls back itself.
    fn roll_back(self) {
        if self.batch("ROLLBACK").is_ok() {
            self.state.set(State::Idle);
        }
    }
}

impl Drop for Tx<'_> {
    /// A connection with an open transaction, or that was lost, is not used again.
    fn drop(&mut self) {
        let connection = self.connection.take().map(RefCell::into_inner);
        let is_idle = self.state.get() == State::Idle;
        self.pool.give_back(connection.filter(|_| is_idle));
    }
}

/// Begins all in order, and waits for all; ends with the first that fails.
async fn all_of<T, E>(
    each: Vec<impl Future<Output = std::result::Result<T, E>>>,
) -> std::result::Result<(), E> {
    let mut each: Vec<_> = each.into_iter().map(|one| Some(Box::pin(one))).collect();
    poll_fn(|context| {
        // A statement is sent when it is polled first.
        for slot in &mut each {
            let Some(one) = slot else { continue };
            match one.as_mut().poll(context) {
                Poll::Ready(Ok(_)) => *slot = None,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        if each.iter().all(Option::is_none) {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    })
    .await
}

fn typed<'a>(params: &[&'a dyn Param]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    let typed = params.iter().map(|param| {
        let value: &(dyn ToSql + Sync) = *param;
        (value, param.sql_type())
    });
    typed.collect()
}
