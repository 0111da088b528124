//! A store that knows its declarations and connections and whose records nobody may touch: what is decided from a grant
//! alone is decided over it too.
#![expect(clippy::panic, reason = "a read that happens is a failed test")]

use std::io::{Read, Write};
use std::sync::Arc;

use contract::declaration::Declaration;
use contract::id::{BlobId, ConnectionId, ConnectorKey, GrantId, PackageId};
use contract::key::RecordKey;
use contract::time::Instant;

use store::blobs::{Blob, Blobs};
use store::catalog::{Connection, Declared, NewConnection, Removed, StreamStats};
use store::grants::{
    ChainCheck, Disclosure, LoggedDisclosure, NewApproval, NewToken, Revocable, Revoked,
    SELECTOR_BYTES, StoredGrant, StoredPackage, StoredToken, TokenUse,
};
use store::inspection::{Depth, Inspection, Rollback};
use store::keeping::{CountedTime, Dropped, Grown, KeepRules};
use store::records::{
    Applied, Change, ChangesPage, ChangesRequest, PageRequest, Purged, Revision, StoredPage,
    StoredRecord,
};
use store::registry::{self, Entry, EntryKind};
use store::search::{
    AggregateAnswer, AggregateRequest, Extent, IndexStatus, Scope, SearchAnswer, SearchRequest,
};
use store::{
    Backup, Catalog, Grants, Inspect, Keeping, Records, Registry, Result, Search, Store, StreamRef,
};

pub(crate) struct Shut(pub(crate) Arc<dyn Store>);

fn touched<T>() -> T {
    panic!("something was read that need not be")
}

impl Catalog for Shut {
    fn declare(&self, _: &Declaration) -> Result<Declared> {
        touched()
    }
    fn declaration(&self, connector: &ConnectorKey) -> Option<Arc<Declaration>> {
        self.0.declaration(connector)
    }
    fn declarations(&self) -> Vec<Arc<Declaration>> {
        self.0.declarations()
    }
    fn add_connection(&self, _: NewConnection) -> Result<Connection> {
        touched()
    }
    fn connections(&self) -> Vec<Connection> {
        self.0.connections()
    }
    fn connection(&self, id: &ConnectionId) -> Option<Connection> {
        self.0.connection(id)
    }
    fn rename_connection(&self, _: &ConnectionId, _: &str) -> Result<Connection> {
        touched()
    }
    fn remove_connection(&self, _: &ConnectionId) -> Result<Removed> {
        touched()
    }
    fn stream_stats(&self) -> Result<Vec<StreamStats>> {
        touched()
    }
}

impl Records for Shut {
    fn write(&self, _: &ConnectionId, _: Vec<Change>) -> Result<Vec<Applied>> {
        touched()
    }
    fn get(&self, _: &StreamRef, _: &RecordKey) -> Result<Option<StoredRecord>> {
        touched()
    }
    fn is_deleted_by_owner(&self, _: &StreamRef, _: &RecordKey) -> Result<bool> {
        touched()
    }
    fn page(&self, _: &StreamRef, _: &PageRequest) -> Result<StoredPage> {
        touched()
    }
    fn changes(&self, _: &StreamRef, _: &ChangesRequest) -> Result<ChangesPage> {
        touched()
    }
    fn history(&self, _: &StreamRef, _: &RecordKey, _: u64, _: usize) -> Result<Vec<Revision>> {
        touched()
    }
    fn redated(
        &self,
        _: &StreamRef,
        _: Option<Instant>,
        _: usize,
    ) -> Result<Vec<(Instant, StoredRecord)>> {
        touched()
    }
    fn purge(&self) -> Result<Purged> {
        touched()
    }
}

impl Search for Shut {
    fn search(&self, _: &SearchRequest) -> Result<SearchAnswer> {
        touched()
    }
    fn aggregate(&self, _: &AggregateRequest) -> Result<AggregateAnswer> {
        touched()
    }
    fn select(&self, _: &Scope, _: &PageRequest) -> Result<StoredPage> {
        touched()
    }
    fn extent(&self, _: &Scope, _: usize) -> Result<Extent> {
        touched()
    }
    fn index_status(&self) -> Result<IndexStatus> {
        touched()
    }
    fn settle_index(&self) -> Result<()> {
        touched()
    }
    fn tend_index(&self) -> Result<()> {
        touched()
    }
    fn rebuild_index(&self, _: &mut dyn FnMut(u64)) -> Result<()> {
        touched()
    }
}

impl Blobs for Shut {
    fn put_blob(&self, _: &StreamRef, _: &RecordKey, _: &str, _: &mut dyn Read) -> Result<Blob> {
        touched()
    }
    fn blob(&self, _: &StreamRef, _: &BlobId) -> Result<Option<(Blob, Vec<RecordKey>)>> {
        touched()
    }
    fn open_blob(&self, _: &BlobId) -> Result<Box<dyn Read + Send>> {
        touched()
    }
}

impl Grants for Shut {
    fn approve(&self, _: &NewApproval) -> Result<()> {
        touched()
    }
    fn add_owner_token(&self, _: &NewToken) -> Result<()> {
        touched()
    }
    fn token_candidates(&self, _: [u8; SELECTOR_BYTES]) -> Result<Vec<StoredToken>> {
        touched()
    }
    fn owner_tokens(&self) -> Result<Vec<StoredToken>> {
        touched()
    }
    fn grant(&self, _: &GrantId) -> Result<Option<StoredGrant>> {
        touched()
    }
    fn grants(&self) -> Result<Vec<StoredGrant>> {
        touched()
    }
    fn package(&self, _: &PackageId) -> Result<Option<StoredPackage>> {
        touched()
    }
    fn packages(&self) -> Result<Vec<StoredPackage>> {
        touched()
    }
    fn revoke(&self, _: Revocable<'_>, _: Instant) -> Result<Revoked> {
        touched()
    }
    fn log_disclosures(&self, _: &[Disclosure], _: &[TokenUse]) -> Result<()> {
        touched()
    }
    fn disclosures(
        &self,
        _: Option<&GrantId>,
        _: Option<u64>,
        _: usize,
    ) -> Result<Vec<LoggedDisclosure>> {
        touched()
    }
    fn check_disclosures(&self) -> Result<ChainCheck> {
        touched()
    }
}

impl Registry for Shut {
    fn entry(&self, _: EntryKind, _: &str, _: Instant) -> Result<Option<Entry>> {
        touched()
    }
    fn entries(&self, _: EntryKind, _: Option<&str>, _: usize, _: Instant) -> Result<Vec<Entry>> {
        touched()
    }
    fn apply(&self, _: &[registry::Change<'_>], _: Instant) -> Result<bool> {
        touched()
    }
}

impl Backup for Shut {
    fn missing_blobs(&self) -> Result<Vec<BlobId>> {
        touched()
    }
    fn backup_beside(
        &self,
        _: &mut dyn Write,
        _: &[BlobId],
        _: Option<&std::path::Path>,
    ) -> Result<()> {
        touched()
    }
}

impl Inspect for Shut {
    fn rolled_back(&self) -> Option<Rollback> {
        None
    }
    fn accept_rollback(&self) -> Result<Option<Rollback>> {
        touched()
    }
    fn inspect(&self, _: Depth) -> Result<Inspection> {
        touched()
    }
}

impl Keeping for Shut {
    fn time(&self) -> CountedTime {
        touched()
    }
    fn reset_time(&self) -> Result<CountedTime> {
        touched()
    }
    fn grown(&self) -> Result<Grown> {
        touched()
    }
    fn drop_old(&self, _: KeepRules) -> Result<Dropped> {
        touched()
    }
}
