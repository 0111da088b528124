-- The second format: grants, packages, tokens, and the log of what was disclosed.

CREATE TABLE packages (
    ordinal        INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    client_id      TEXT NOT NULL,
    issued_at      INTEGER NOT NULL,
    revoked_at     INTEGER,
    revoked_reason TEXT,
    CHECK ((revoked_at IS NULL) = (revoked_reason IS NULL))
) STRICT;

-- `document` is the grant as JSON. It only ever loses rows, when a connection is removed.
CREATE TABLE grants (
    ordinal        INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    package_id     TEXT REFERENCES packages (id),
    client_id      TEXT NOT NULL,
    document       TEXT NOT NULL,
    issued_at      INTEGER NOT NULL,
    expires_at     INTEGER,
    revoked_at     INTEGER,
    revoked_reason TEXT,
    narrowed_at    INTEGER,
    last_used_at   INTEGER,
    CHECK ((revoked_at IS NULL) = (revoked_reason IS NULL))
) STRICT;
CREATE INDEX grants_by_package ON grants (package_id);

-- A token of neither a grant nor a package is the owner's. Of the secret only its SHA-256 is kept; the first eight bytes
-- of it find the row, and the whole is compared in constant time.
CREATE TABLE tokens (
    ordinal      INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    selector     BLOB NOT NULL,
    hash         BLOB NOT NULL,
    grant_id     TEXT REFERENCES grants (id),
    package_id   TEXT REFERENCES packages (id),
    issued_at    INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    revoked_at   INTEGER,
    last_used_at INTEGER,
    CHECK (grant_id IS NULL OR package_id IS NULL)
) STRICT;
CREATE INDEX tokens_by_selector ON tokens (selector);
CREATE INDEX tokens_by_grant ON tokens (grant_id);
CREATE INDEX tokens_by_package ON tokens (package_id);

-- Numbered from 1 without gaps. Each hash covers the one before it, the number and the entry; the last of them also stands
-- in `meta` as 'disclosures', so that a cut end shows.
CREATE TABLE disclosures (
    sequence INTEGER PRIMARY KEY,
    entry    TEXT NOT NULL,
    hash     BLOB NOT NULL
) STRICT;

-- Derived from the entries: which of them concern a grant.
CREATE TABLE disclosures_by_grant (
    grant_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (grant_id, sequence)
) STRICT, WITHOUT ROWID;
