-- The first format. `owner_id` leads every key: owners share the tables and nothing else. Moments are microseconds since 1970.
-- JSON is kept as written, so it is text. Keys are compared byte by byte, as the embedded store compares them.

-- One row per owner, the counter: whoever writes records locks it. `catalog` counts changes of declarations and connections,
-- so that a node knows when to read them again. `latest_at` is the latest time that any node has seen.
CREATE TABLE owners (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host              text COLLATE "C" NOT NULL UNIQUE,
    store_id          bytea NOT NULL,
    version           bigint NOT NULL DEFAULT 0,
    catalog           bigint NOT NULL DEFAULT 0,
    purged_to         bigint NOT NULL DEFAULT 0,
    erasures_begun    bigint NOT NULL DEFAULT 0,
    erasures_finished bigint NOT NULL DEFAULT 0,
    latest_at         bigint NOT NULL DEFAULT 0
);

-- The ends of the log of disclosures. A row of its own, so that a long batch does not hold up the log.
CREATE TABLE chains (
    owner_id         bigint PRIMARY KEY REFERENCES owners ON DELETE CASCADE,
    sequence         bigint NOT NULL DEFAULT 0,
    hash             bytea NOT NULL,
    dropped_sequence bigint NOT NULL DEFAULT 0,
    dropped_hash     bytea NOT NULL
);

-- One random mark per writing transaction: a bookmark whose mark is missing belongs to a history that was rewritten.
CREATE TABLE marks (
    owner_id bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    version  bigint NOT NULL,
    mark     bytea NOT NULL,
    PRIMARY KEY (owner_id, version)
);

CREATE TABLE declarations (
    owner_id      bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    connector_key text COLLATE "C" NOT NULL,
    declaration   text NOT NULL,
    declared_at   bigint NOT NULL,
    reading       bigint NOT NULL,
    PRIMARY KEY (owner_id, connector_key)
);

-- Every version of a declaration that was ever registered, so that none comes back with other content.
CREATE TABLE declared_versions (
    owner_id      bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    connector_key text COLLATE "C" NOT NULL,
    version       text COLLATE "C" NOT NULL,
    declaration   text NOT NULL,
    PRIMARY KEY (owner_id, connector_key, version)
);

-- Which place in the index each declared field has. Places are only ever added.
CREATE TABLE slots (
    owner_id      bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    connector_key text COLLATE "C" NOT NULL,
    stream        text COLLATE "C" NOT NULL,
    field         text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    slot          bigint NOT NULL,
    PRIMARY KEY (owner_id, connector_key, stream, field, kind)
);

CREATE TABLE connections (
    owner_id      bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    id            text COLLATE "C" NOT NULL,
    ordinal       bigint GENERATED ALWAYS AS IDENTITY,
    connector_key text COLLATE "C" NOT NULL,
    display_name  text NOT NULL,
    created_at    bigint NOT NULL,
    PRIMARY KEY (owner_id, id),
    FOREIGN KEY (owner_id, connector_key) REFERENCES declarations (owner_id, connector_key)
);

-- The index names streams by id, so an id never comes back.
CREATE TABLE streams (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner_id      bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    connection_id text COLLATE "C" NOT NULL,
    name          text COLLATE "C" NOT NULL,
    live_records  bigint NOT NULL DEFAULT 0,
    last_version  bigint NOT NULL DEFAULT 0,
    purged_to     bigint NOT NULL DEFAULT 0,
    UNIQUE (owner_id, connection_id, name),
    FOREIGN KEY (owner_id, connection_id) REFERENCES connections (owner_id, id) ON DELETE CASCADE
);

-- One row per key. `data` is NULL for a tombstone. `row_id` is the version that created the record. `sort` is the cursor value:
-- an integer, or the bits of a float that order like it.
CREATE TABLE records (
    owner_id   bigint NOT NULL,
    stream_id  bigint NOT NULL,
    row_id     bigint NOT NULL,
    key        text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    sort       bigint,
    digest     bigint NOT NULL,
    emitted_at text NOT NULL,
    data       text COMPRESSION lz4,
    PRIMARY KEY (owner_id, stream_id, key)
) PARTITION BY HASH (stream_id);
CREATE TABLE records_0 PARTITION OF records FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE records_1 PARTITION OF records FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE records_2 PARTITION OF records FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE records_3 PARTITION OF records FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE records_4 PARTITION OF records FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE records_5 PARTITION OF records FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE records_6 PARTITION OF records FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE records_7 PARTITION OF records FOR VALUES WITH (MODULUS 8, REMAINDER 7);
CREATE INDEX records_by_row ON records (owner_id, row_id);
CREATE INDEX records_by_version ON records (stream_id, version);
CREATE INDEX records_by_sort ON records (stream_id, sort, key) WHERE data IS NOT NULL;

-- What a record was from `version` until just before `next_version`.
CREATE TABLE versions (
    owner_id     bigint NOT NULL,
    stream_id    bigint NOT NULL,
    row_id       bigint NOT NULL,
    version      bigint NOT NULL,
    next_version bigint NOT NULL,
    digest       bigint NOT NULL,
    emitted_at   text NOT NULL,
    data         text COMPRESSION lz4,
    PRIMARY KEY (stream_id, row_id, version)
);
CREATE INDEX versions_by_version ON versions (stream_id, version);
CREATE INDEX versions_by_owner ON versions (owner_id, row_id);

-- Records that were given an earlier date than they had. `latest` is never before any date they had.
CREATE TABLE redated (
    owner_id  bigint NOT NULL,
    stream_id bigint NOT NULL,
    row_id    bigint NOT NULL,
    latest    bigint NOT NULL,
    PRIMARY KEY (stream_id, row_id)
);
CREATE INDEX redated_by_latest ON redated (stream_id, latest);

-- Keys of records that the owner deleted, as SHA-256, because a purge leaves no key behind.
CREATE TABLE deleted_by_owner (
    owner_id   bigint NOT NULL,
    stream_id  bigint NOT NULL,
    key_digest bytea NOT NULL,
    PRIMARY KEY (stream_id, key_digest)
);

-- Streams that were erased: an index drops them when it reaches the version.
CREATE TABLE erasures (
    owner_id  bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    version   bigint NOT NULL,
    stream_id bigint NOT NULL,
    PRIMARY KEY (owner_id, version, stream_id)
);

-- A blob that is being deleted takes no new binding; its bytes go before its row does.
CREATE TABLE blobs (
    owner_id   bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    id         text COLLATE "C" NOT NULL,
    size_bytes bigint NOT NULL,
    mime_type  text NOT NULL,
    state      text NOT NULL DEFAULT 'kept' CHECK (state IN ('kept', 'deleting')),
    PRIMARY KEY (owner_id, id)
);
CREATE TABLE blob_bindings (
    owner_id  bigint NOT NULL,
    blob_id   text COLLATE "C" NOT NULL,
    stream_id bigint NOT NULL,
    key       text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner_id, blob_id, stream_id, key),
    FOREIGN KEY (owner_id, blob_id) REFERENCES blobs (owner_id, id)
);
CREATE INDEX blob_bindings_by_record ON blob_bindings (stream_id, key);

CREATE TABLE packages (
    owner_id       bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    id             text COLLATE "C" NOT NULL,
    ordinal        bigint GENERATED ALWAYS AS IDENTITY,
    client_id      text NOT NULL,
    issued_at      bigint NOT NULL,
    revoked_at     bigint,
    revoked_reason text,
    PRIMARY KEY (owner_id, id),
    CHECK ((revoked_at IS NULL) = (revoked_reason IS NULL))
);

-- `document` is the grant as JSON. It only ever loses rows, when a connection is removed. `redeem_by` is until when the first
-- token must be issued, and NULL once one was.
CREATE TABLE grants (
    owner_id       bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    id             text COLLATE "C" NOT NULL,
    ordinal        bigint GENERATED ALWAYS AS IDENTITY,
    package_id     text COLLATE "C",
    client_id      text NOT NULL,
    document       text NOT NULL,
    issued_at      bigint NOT NULL,
    expires_at     bigint,
    redeem_by      bigint,
    revoked_at     bigint,
    revoked_reason text,
    narrowed_at    bigint,
    last_used_at   bigint,
    PRIMARY KEY (owner_id, id),
    FOREIGN KEY (owner_id, package_id) REFERENCES packages (owner_id, id),
    CHECK ((revoked_at IS NULL) = (revoked_reason IS NULL))
);
CREATE INDEX grants_by_package ON grants (owner_id, package_id);

-- A token of neither a grant nor a package is the owner's. Of the secret only its SHA-256 is kept.
CREATE TABLE tokens (
    owner_id     bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    id           text COLLATE "C" NOT NULL,
    ordinal      bigint GENERATED ALWAYS AS IDENTITY,
    selector     bytea NOT NULL,
    hash         bytea NOT NULL,
    grant_id     text COLLATE "C",
    package_id   text COLLATE "C",
    issued_at    bigint NOT NULL,
    expires_at   bigint NOT NULL,
    revoked_at   bigint,
    last_used_at bigint,
    audience     text,
    family       text COLLATE "C",
    PRIMARY KEY (owner_id, id),
    FOREIGN KEY (owner_id, grant_id) REFERENCES grants (owner_id, id),
    FOREIGN KEY (owner_id, package_id) REFERENCES packages (owner_id, id),
    CHECK (grant_id IS NULL OR package_id IS NULL)
);
CREATE INDEX tokens_by_selector ON tokens (owner_id, selector);
CREATE INDEX tokens_by_grant ON tokens (owner_id, grant_id);
CREATE INDEX tokens_by_package ON tokens (owner_id, package_id);
CREATE INDEX tokens_by_family ON tokens (owner_id, family) WHERE family IS NOT NULL;

CREATE TABLE registry (
    owner_id   bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    kind       text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    document   text NOT NULL,
    expires_at bigint,
    revision   bigint NOT NULL,
    PRIMARY KEY (owner_id, kind, key)
);
CREATE INDEX registry_by_end ON registry (owner_id, expires_at) WHERE expires_at IS NOT NULL;

-- Numbered from 1 without gaps. Each hash covers the one before it, the number and the entry.
CREATE TABLE disclosures (
    owner_id bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    sequence bigint NOT NULL,
    entry    text NOT NULL,
    hash     bytea NOT NULL,
    PRIMARY KEY (owner_id, sequence)
);
CREATE TABLE disclosures_by_grant (
    owner_id bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    grant_id text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    PRIMARY KEY (owner_id, grant_id, sequence)
);

CREATE TABLE nodes (
    id      text COLLATE "C" PRIMARY KEY,
    build   text NOT NULL,
    format  bigint NOT NULL,
    seen_at bigint NOT NULL
);
CREATE TABLE node_indexes (
    node      text COLLATE "C" NOT NULL REFERENCES nodes ON DELETE CASCADE,
    owner_id  bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    version   bigint NOT NULL,
    erased_to bigint NOT NULL,
    PRIMARY KEY (node, owner_id)
);
CREATE TABLE leases (
    name   text COLLATE "C" PRIMARY KEY,
    holder text NOT NULL,
    until  bigint NOT NULL,
    epoch  bigint NOT NULL
);
CREATE TABLE snapshots (
    owner_id bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    format   bigint NOT NULL,
    version  bigint NOT NULL,
    mark     bytea NOT NULL,
    manifest text NOT NULL,
    PRIMARY KEY (owner_id, format, version)
);
