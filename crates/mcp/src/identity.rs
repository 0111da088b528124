//! Who a record is: the id that is printed, and whether it can be called. An id that names no record is never dressed up as
//! one that does.

use contract::handle::{RecordHandle, WINDOW_URI, position_id};
use contract::upstream::Get;

#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) id: String,
    /// The record, where the id can be called.
    pub(crate) handle: Option<RecordHandle>,
}

/// Where people can look at a record, as a server says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Addresses {
    pub(crate) citation: Option<String>,
    /// An address of its own, used where the record cannot be named.
    pub(crate) own: Option<String>,
}

impl Identity {
    pub(crate) fn new(handle: RecordHandle) -> Self {
        Self {
            id: handle.to_string(),
            handle: Some(handle),
        }
    }

    /// What the server calls a hit that is no record we can name, unless that would be read as the name of one, or is a
    /// window; else its place on the page.
    pub(crate) fn opaque(own: Option<&str>, place: usize) -> Self {
        let is_free = |id: &&str| RecordHandle::parse(id).is_err() && !id.starts_with(WINDOW_URI);
        let id = own.filter(is_free);
        Self {
            id: id.map_or_else(|| position_id(place + 1), str::to_owned),
            handle: None,
        }
    }

    /// The record that was asked for, with the connection the server names where it was left open.
    pub(crate) fn adopting(handle: &RecordHandle, connection: Option<&str>) -> Self {
        let named = connection.filter(|_| handle.connection().is_none());
        let adopted = handle.clone().with_connection(named);
        Self::new(adopted.unwrap_or_else(|_| handle.clone()))
    }

    pub(crate) fn is_fetchable(&self) -> bool {
        self.handle.is_some()
    }

    pub(crate) fn connection(&self) -> Option<&str> {
        self.handle.as_ref().and_then(RecordHandle::connection)
    }

    /// The connection that must be passed beside the id, because the id cannot carry it.
    pub(crate) fn separate_connection(&self) -> Option<&str> {
        let handle = self.handle.as_ref()?;
        handle.connection().filter(|_| !handle.embeds_connection())
    }

    /// The citation address: the one the server gives, else the record's own on that server; where no server is reached
    /// by an address, the handle as one. Always absolute.
    pub(crate) fn url(&self, given: &Addresses, provider: Option<&str>) -> String {
        let absolute = |url: &&String| url.starts_with("https://") || url.starts_with("http://");
        if let Some(citation) = given.citation.as_ref().filter(absolute) {
            return citation.clone();
        }
        if let Some(handle) = &self.handle {
            let path = ["streams", handle.stream(), "records", handle.record()];
            let question = Get::v1(path).with("connection_id", handle.connection());
            return match provider {
                Some(provider) => format!("{provider}{}", question.target()),
                None => handle.to_uri(),
            };
        }
        let own = given.own.as_ref().filter(absolute).map(String::as_str);
        own.or(provider).unwrap_or(&self.id).to_owned()
    }
}
