//! What records of the log are called, as the owner reads them now. Only so many are looked up for a page; the others go by
//! their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::grant::Authority;
use contract::handle::RecordHandle;
use contract::id::StreamName;
use contract::query::RecordQuery;
use contract::reader::ReadContract as _;
use grants::DisclosedCall;
use read::GrantReader;

use super::grant::RECORDS;
use super::stream_shape::StreamShape;
use super::summary::Summary;
use crate::service::Service;

/// The most records that are looked up for one page.
const LOOKED_UP: usize = 300;

#[derive(Default)]
pub(super) struct Titles(BTreeMap<String, String>);

impl Titles {
    pub(super) async fn of_calls(service: &Arc<Service>, calls: &[DisclosedCall]) -> Self {
        let shown = calls
            .iter()
            .flat_map(|call| call.records.iter().take(RECORDS));
        Self::read(service, shown.map(String::as_str)).await
    }

    pub(super) async fn read(service: &Arc<Service>, handles: impl Iterator<Item = &str>) -> Self {
        let store = Arc::clone(&service.store);
        let reader = GrantReader::new(store, Authority::Owner, service.reader_settings.clone());
        let mut shapes: BTreeMap<(String, String), Option<StreamShape>> = BTreeMap::new();
        let mut titles = BTreeMap::new();
        for handle in handles {
            if titles.len() == LOOKED_UP {
                break;
            }
            let Ok(parsed) = RecordHandle::parse(handle) else {
                continue;
            };
            let (Some(connection), Ok(stream)) =
                (parsed.connection(), StreamName::parse(parsed.stream()))
            else {
                continue;
            };
            if titles.contains_key(handle) {
                continue;
            }
            let place = (connection.to_owned(), stream.to_string());
            if !shapes.contains_key(&place) {
                let shape = StreamShape::of_reader(&reader, service, &stream, connection);
                shapes.insert(place.clone(), shape.await.ok());
            }
            let Some(Some(shape)) = shapes.get(&place) else {
                continue;
            };
            let mut query = RecordQuery::new(stream, parsed.record());
            query.connection_id = Some(connection.to_owned());
            // A record that is gone keeps its name.
            if let Ok(record) = reader.record(query).await {
                titles.insert(handle.to_owned(), Summary::new(shape, &record).title);
            }
        }
        Self(titles)
    }

    pub(super) fn get(&self, handle: &str) -> Option<&str> {
        self.0.get(handle).map(String::as_str)
    }
}
