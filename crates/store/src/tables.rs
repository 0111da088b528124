//! What a store holds that cannot be derived, table by table, as both databases have it. With this list everything of one is
//! copied into the other: a backup is the same file whichever wrote it, and a data directory can move into PostgreSQL.
//!
//! Left out is what only an index needs that has seen earlier states: a copy has no index yet. So there are no erased streams
//! in it, and no marks.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Text,
    Bytes,
    /// The number of a stream, which every database gives itself.
    Stream,
    /// The cursor value of a record, which each database writes in its own way.
    Sort,
}

#[derive(Debug)]
pub(crate) struct Table {
    /// Its name in PostgreSQL, and in the file.
    pub(crate) postgres: &'static str,
    pub(crate) sqlite: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind)],
    /// By what its rows are ordered. Where rows are numbered by the database, they keep this order.
    pub(crate) order: &'static str,
}

use Kind::{Bytes, Integer, Sort, Stream, Text};

pub(crate) const STREAMS: Table = Table {
    postgres: "streams",
    sqlite: "streams",
    columns: &[
        ("id", Stream),
        ("connection_id", Text),
        ("name", Text),
        ("live_records", Integer),
        ("last_version", Integer),
        ("purged_to", Integer),
    ],
    order: "id",
};

pub(crate) const RECORDS: Table = Table {
    postgres: "records",
    sqlite: "records",
    columns: &[
        ("stream_id", Stream),
        ("key", Text),
        ("version", Integer),
        ("emitted_at", Text),
        ("data", Text),
        ("digest", Integer),
        ("row_id", Integer),
        ("sort", Sort),
    ],
    order: "row_id",
};

pub(crate) const VERSIONS: Table = Table {
    postgres: "versions",
    sqlite: "versions",
    columns: &[
        ("stream_id", Stream),
        ("version", Integer),
        ("emitted_at", Text),
        ("data", Text),
        ("digest", Integer),
        ("row_id", Integer),
        ("next_version", Integer),
    ],
    order: "row_id, version",
};

/// Before streams: what these refer to.
pub(crate) const CATALOG: &[Table] = &[
    Table {
        postgres: "declarations",
        sqlite: "connectors",
        columns: &[
            ("connector_key", Text),
            ("declaration", Text),
            ("declared_at", Integer),
            ("reading", Integer),
        ],
        order: "connector_key",
    },
    Table {
        postgres: "declared_versions",
        sqlite: "declared_versions",
        columns: &[
            ("connector_key", Text),
            ("version", Text),
            ("declaration", Text),
        ],
        order: "connector_key, version",
    },
    Table {
        postgres: "slots",
        sqlite: "slots",
        columns: &[
            ("connector_key", Text),
            ("stream", Text),
            ("field", Text),
            ("kind", Text),
            ("slot", Integer),
        ],
        order: "connector_key, stream, field, kind",
    },
    Table {
        postgres: "connections",
        sqlite: "connections",
        columns: &[
            ("id", Text),
            ("connector_key", Text),
            ("display_name", Text),
            ("created_at", Integer),
        ],
        order: "ordinal",
    },
];

/// After streams and records, each after those that it refers to.
pub(crate) const OTHERS: &[Table] = &[
    Table {
        postgres: "redated",
        sqlite: "redated",
        columns: &[
            ("stream_id", Stream),
            ("row_id", Integer),
            ("latest", Integer),
        ],
        order: "row_id",
    },
    Table {
        postgres: "deleted_by_owner",
        sqlite: "deleted_by_owner",
        columns: &[("stream_id", Stream), ("key_digest", Bytes)],
        order: "stream_id, key_digest",
    },
    Table {
        postgres: "blobs",
        sqlite: "blobs",
        columns: &[("id", Text), ("size_bytes", Integer), ("mime_type", Text)],
        order: "id",
    },
    Table {
        postgres: "blob_bindings",
        sqlite: "blob_bindings",
        columns: &[("blob_id", Text), ("stream_id", Stream), ("key", Text)],
        order: "blob_id, stream_id, key",
    },
    Table {
        postgres: "packages",
        sqlite: "packages",
        columns: &[
            ("id", Text),
            ("client_id", Text),
            ("issued_at", Integer),
            ("revoked_at", Integer),
            ("revoked_reason", Text),
        ],
        order: "ordinal",
    },
    Table {
        postgres: "grants",
        sqlite: "grants",
        columns: &[
            ("id", Text),
            ("package_id", Text),
            ("client_id", Text),
            ("document", Text),
            ("issued_at", Integer),
            ("expires_at", Integer),
            ("redeem_by", Integer),
            ("revoked_at", Integer),
            ("revoked_reason", Text),
            ("narrowed_at", Integer),
            ("last_used_at", Integer),
        ],
        order: "ordinal",
    },
    Table {
        postgres: "tokens",
        sqlite: "tokens",
        columns: &[
            ("id", Text),
            ("selector", Bytes),
            ("hash", Bytes),
            ("grant_id", Text),
            ("package_id", Text),
            ("issued_at", Integer),
            ("expires_at", Integer),
            ("revoked_at", Integer),
            ("last_used_at", Integer),
            ("audience", Text),
            ("family", Text),
        ],
        order: "ordinal",
    },
    Table {
        postgres: "registry",
        sqlite: "registry",
        columns: &[
            ("kind", Text),
            ("key", Text),
            ("document", Text),
            ("expires_at", Integer),
            ("revision", Integer),
        ],
        order: "kind, key",
    },
    Table {
        postgres: "disclosures",
        sqlite: "disclosures",
        columns: &[("sequence", Integer), ("entry", Text), ("hash", Bytes)],
        order: "sequence",
    },
    Table {
        postgres: "disclosures_by_grant",
        sqlite: "disclosures_by_grant",
        columns: &[("grant_id", Text), ("sequence", Integer)],
        order: "grant_id, sequence",
    },
];

impl Table {
    /// The names of the columns, for a statement.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

/// Every table, in an order in which rows can be inserted.
pub(crate) fn all() -> impl Iterator<Item = &'static Table> {
    let records = [&STREAMS, &RECORDS, &VERSIONS];
    CATALOG.iter().chain(records).chain(OTHERS)
}
