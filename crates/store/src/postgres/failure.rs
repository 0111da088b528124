//! What an error of the driver means for the caller.

use tokio_postgres::error::SqlState;

use crate::StoreError;

/// What helps where the server lets nobody in.
const CREDENTIALS: &str =
    "See that PDPP_DATABASE or --database has a user and a password that it knows";

/// And where the database is not there.
const DATABASE: &str = "Create it, or name another";

/// An error of a statement on a connection that stood.
pub(super) fn of_statement(place: &str, error: &tokio_postgres::Error) -> StoreError {
    let place = place.to_owned();
    let detail = words(error);
    match error.code() {
        Some(code) => of_code(place, detail, code),
        // Without a code of the server it is the connection, or a value that is not of its type.
        None if is_of_connection(error) => StoreError::Unavailable { place, detail },
        None => StoreError::Database { place, detail },
    }
}

/// An error of making a connection.
pub(super) fn connecting(place: &str, error: &tokio_postgres::Error) -> StoreError {
    let place = place.to_owned();
    let mut detail = words(error);
    // PgBouncer says no more of a wrong password.
    if detail.starts_with("SASL authentication failed") {
        detail.push_str(": the user or the password is wrong");
    }
    // PgBouncer gives all it says of its own the same code; then only its words tell.
    match error.code() {
        Some(code) if *code != SqlState::PROTOCOL_VIOLATION => {
            return of_code(place, detail, code);
        }
        _ => {}
    }
    if detail.contains("does not allow writes") {
        return StoreError::DatabaseReadOnly { place };
    }
    // These do not go away by trying again: the certificate, the password, a name, an option.
    let says = |words: &[&str]| words.iter().any(|word| detail.contains(word));
    if says(&["authentication", "password", "no such user"]) {
        return refused(place, &detail, CREDENTIALS);
    }
    if says(&["no such database", "does not exist"]) {
        return refused(place, &detail, DATABASE);
    }
    if says(&["TLS", "configuration"]) {
        return StoreError::DatabaseRefused { place, detail };
    }
    StoreError::Unavailable { place, detail }
}

fn of_code(place: String, detail: String, code: &SqlState) -> StoreError {
    let class = code.code().get(..2).unwrap_or_default();
    match *code {
        SqlState::READ_ONLY_SQL_TRANSACTION => StoreError::DatabaseReadOnly { place },
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE
        | SqlState::QUERY_CANCELED => StoreError::Contended { place, detail },
        SqlState::ADMIN_SHUTDOWN
        | SqlState::CRASH_SHUTDOWN
        | SqlState::CANNOT_CONNECT_NOW
        | SqlState::TOO_MANY_CONNECTIONS
        | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => {
            StoreError::Unavailable { place, detail }
        }
        SqlState::INVALID_CATALOG_NAME => refused(place, &detail, DATABASE),
        SqlState::INSUFFICIENT_PRIVILEGE => {
            refused(place, &detail, "Let the user own the database")
        }
        SqlState::FEATURE_NOT_SUPPORTED => StoreError::DatabaseRefused { place, detail },
        _ if class == "28" => refused(place, &detail, CREDENTIALS),
        _ if class == "08" => StoreError::Unavailable { place, detail },
        _ => StoreError::Database { place, detail },
    }
}

/// Refused for a reason that has a remedy.
fn refused(place: String, detail: &str, remedy: &str) -> StoreError {
    let detail = format!("{detail}. {remedy}");
    StoreError::DatabaseRefused { place, detail }
}

fn is_of_connection(error: &tokio_postgres::Error) -> bool {
    let cause = std::error::Error::source(error);
    error.is_closed() || cause.is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

/// The error with its causes; the driver's own words alone say little.
pub(super) fn words(error: &tokio_postgres::Error) -> String {
    if let Some(told) = error.as_db_error() {
        return format!("{} ({})", told.message(), told.code().code());
    }
    with_causes(error)
}

/// An error and what caused it, in one line.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = next.source();
    }
    words
}
