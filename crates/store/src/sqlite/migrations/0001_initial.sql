-- The first format: catalog, records with history, index bookkeeping, blobs.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE connectors (
    connector_key TEXT PRIMARY KEY,
    declaration   TEXT NOT NULL,
    declared_at   INTEGER NOT NULL
) STRICT;

CREATE TABLE connections (
    ordinal       INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    connector_key TEXT NOT NULL REFERENCES connectors (connector_key),
    display_name  TEXT NOT NULL,
    created_at    INTEGER NOT NULL
) STRICT;

-- AUTOINCREMENT: the index names streams by id, so an id must never come back.
CREATE TABLE streams (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    name          TEXT NOT NULL,
    live_records  INTEGER NOT NULL DEFAULT 0,
    last_version  INTEGER NOT NULL DEFAULT 0,
    purged_to     INTEGER NOT NULL DEFAULT 0,
    UNIQUE (connection_id, name)
) STRICT;

-- One row per key. `data` is NULL for a tombstone. `key` is the ordering form, so that byte order is tuple order.
-- `version` numbers all changes of the store in the order they were acknowledged.
CREATE TABLE records (
    row_id     INTEGER PRIMARY KEY,
    stream_id  INTEGER NOT NULL,
    key        TEXT NOT NULL,
    version    INTEGER NOT NULL,
    sort       ANY,
    emitted_at TEXT NOT NULL,
    data       TEXT
) STRICT;
CREATE UNIQUE INDEX records_by_key ON records (stream_id, key);
CREATE INDEX records_by_version ON records (stream_id, version);
CREATE INDEX records_by_sort ON records (stream_id, sort, key) WHERE data IS NOT NULL;

-- What a record was from `version` until just before `next_version`.
CREATE TABLE versions (
    row_id       INTEGER NOT NULL,
    stream_id    INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    next_version INTEGER NOT NULL,
    emitted_at   TEXT NOT NULL,
    data         TEXT
) STRICT;
CREATE INDEX versions_by_version ON versions (stream_id, version);
CREATE INDEX versions_by_row ON versions (row_id, version);

-- Which place in the index each declared field has. Places are only ever added.
CREATE TABLE slots (
    connector_key TEXT NOT NULL,
    stream        TEXT NOT NULL,
    field         TEXT NOT NULL,
    kind          TEXT NOT NULL,
    slot          INTEGER NOT NULL,
    PRIMARY KEY (connector_key, stream, field, kind)
) STRICT, WITHOUT ROWID;

-- Streams that were erased: the index drops them when it reaches the version.
CREATE TABLE erasures (
    version   INTEGER NOT NULL,
    stream_id INTEGER NOT NULL,
    PRIMARY KEY (version, stream_id)
) STRICT, WITHOUT ROWID;

-- Streams whose records up to `last_row` must be indexed again, and how far that is.
CREATE TABLE reindexing (
    stream_id INTEGER PRIMARY KEY,
    next_row  INTEGER NOT NULL,
    last_row  INTEGER NOT NULL
) STRICT;

CREATE TABLE blobs (
    id         TEXT PRIMARY KEY,
    size_bytes INTEGER NOT NULL,
    mime_type  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE blob_bindings (
    blob_id   TEXT NOT NULL REFERENCES blobs (id),
    stream_id INTEGER NOT NULL,
    key       TEXT NOT NULL,
    PRIMARY KEY (blob_id, stream_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_bindings_by_record ON blob_bindings (stream_id, key);
