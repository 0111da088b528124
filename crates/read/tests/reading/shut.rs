//! A store that knows its declarations and connections and whose records nobody may touch: what is decided from a grant
//! alone is decided over it too.

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
use store::meaning::{MeaningQuestion, MeaningStatus, ModelInfo};
use store::records::{
    Applied, Change, ChangesPage, ChangesRequest, PageRequest, Purged, Revision, StoredPage,
    StoredRecord,
};
use store::registry::{self, Entry, EntryKind};
use store::search::{
    AggregateAnswer, AggregateRequest, Extent, IndexStatus, Scope, SearchAnswer, SearchRequest,
};
use store::{
    Backup, Catalog, Grants, Inspect, Keeping, Meaning, Nodes, Records, Registry, Result, Search,
    Store, StreamRef,
};

pub(crate) struct Shut(pub(crate) Arc<dyn Store>);

/// Methods that must not be called.
macro_rules! untouched {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $(_: $argument),*) -> $result {
            panic!("something was read that need not be")
        })*
    };
}

impl Catalog for Shut {
    untouched! {
        declare(&Declaration) -> Result<Declared>;
    }
    fn declaration(&self, connector: &ConnectorKey) -> Option<Arc<Declaration>> {
        self.0.declaration(connector)
    }
    fn declarations(&self) -> Vec<Arc<Declaration>> {
        self.0.declarations()
    }
    untouched! {
        add_connection(NewConnection) -> Result<Connection>;
    }
    fn connections(&self) -> Vec<Connection> {
        self.0.connections()
    }
    fn connection(&self, id: &ConnectionId) -> Option<Connection> {
        self.0.connection(id)
    }
    untouched! {
        rename_connection(&ConnectionId, &str) -> Result<Connection>;
        remove_connection(&ConnectionId) -> Result<Removed>;
        stream_stats() -> Result<Vec<StreamStats>>;
    }
}

impl Records for Shut {
    untouched! {
        write(&ConnectionId, Vec<Change>) -> Result<Vec<Applied>>;
        get(&StreamRef, &RecordKey) -> Result<Option<StoredRecord>>;
        is_deleted_by_owner(&StreamRef, &RecordKey) -> Result<bool>;
        page(&StreamRef, &PageRequest) -> Result<StoredPage>;
        changes(&StreamRef, &ChangesRequest) -> Result<ChangesPage>;
        history(&StreamRef, &RecordKey, u64, usize) -> Result<Vec<Revision>>;
        redated(&StreamRef, Option<Instant>, usize) -> Result<Vec<(Instant, StoredRecord)>>;
        purge() -> Result<Purged>;
    }
}

impl Search for Shut {
    untouched! {
        search(&SearchRequest) -> Result<SearchAnswer>;
        neighbours(&Scope, &[u64]) -> Result<Vec<[Option<StoredRecord>; 2]>>;
        aggregate(&AggregateRequest) -> Result<AggregateAnswer>;
        select(&Scope, &PageRequest) -> Result<StoredPage>;
        extent(&Scope, usize) -> Result<Extent>;
        passing_keys(&Scope) -> Result<Arc<Vec<RecordKey>>>;
        index_status() -> Result<IndexStatus>;
        settle_index() -> Result<()>;
        tend_index() -> Result<()>;
        rebuild_index(&mut dyn FnMut(u64)) -> Result<()>;
    }
}

impl Blobs for Shut {
    untouched! {
        put_blob(&StreamRef, &RecordKey, &str, &mut dyn Read) -> Result<Blob>;
        blob(&StreamRef, &BlobId) -> Result<Option<(Blob, Vec<RecordKey>)>>;
        open_blob(&BlobId) -> Result<Box<dyn Read + Send>>;
    }
}

impl Grants for Shut {
    untouched! {
        approve(&NewApproval) -> Result<()>;
        add_owner_token(&NewToken) -> Result<()>;
        token_candidates([u8; SELECTOR_BYTES]) -> Result<Vec<StoredToken>>;
        owner_tokens() -> Result<Vec<StoredToken>>;
        grant(&GrantId) -> Result<Option<StoredGrant>>;
        grants() -> Result<Vec<StoredGrant>>;
        tokens_end(&GrantId) -> Result<Option<Instant>>;
        package(&PackageId) -> Result<Option<StoredPackage>>;
        packages() -> Result<Vec<StoredPackage>>;
        revoke(Revocable<'_>, Instant) -> Result<Revoked>;
        log_disclosures(&[Disclosure], &[TokenUse]) -> Result<()>;
        log_room() -> u64;
        can_log(u64) -> bool;
        disclosures(Option<&GrantId>, Option<u64>, usize) -> Result<Vec<LoggedDisclosure>>;
        check_disclosures() -> Result<ChainCheck>;
    }
}

impl Registry for Shut {
    untouched! {
        entry(EntryKind, &str, Instant) -> Result<Option<Entry>>;
        entries(EntryKind, Option<&str>, usize, Instant) -> Result<Vec<Entry>>;
        apply(&[registry::Change<'_>], Instant) -> Result<bool>;
    }
}

impl Backup for Shut {
    untouched! {
        missing_blobs() -> Result<Vec<BlobId>>;
        backup_beside(&mut dyn Write, &[BlobId], Option<&std::path::Path>) -> Result<Vec<String>>;
    }
}

impl Inspect for Shut {
    fn rolled_back(&self) -> Option<Rollback> {
        None
    }
    untouched! {
        accept_rollback() -> Result<Option<Rollback>>;
        inspect(Depth) -> Result<Inspection>;
    }
}

impl Keeping for Shut {
    untouched! {
        time() -> CountedTime;
        reset_time() -> Result<CountedTime>;
        grown() -> Result<Grown>;
        drop_old(KeepRules) -> Result<Dropped>;
    }
}

impl Nodes for Shut {}

impl Meaning for Shut {
    fn model(&self) -> Option<ModelInfo> {
        None
    }
    untouched! {
        add_model(&std::path::Path) -> Result<ModelInfo>;
        remove_model() -> Result<Option<ModelInfo>>;
        meaning_status() -> Result<Option<MeaningStatus>>;
        embed_some() -> Result<bool>;
        search_by_meaning(&SearchRequest, &MeaningQuestion) -> Result<SearchAnswer>;
    }
}
