-- The third format: what authorization remembers between requests, and tokens that know their audience and family.

CREATE TABLE registry (
    kind       TEXT NOT NULL,
    key        TEXT NOT NULL,
    document   TEXT NOT NULL,
    expires_at INTEGER,
    revision   INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX registry_by_end ON registry (expires_at) WHERE expires_at IS NOT NULL;

ALTER TABLE tokens ADD COLUMN audience TEXT;
ALTER TABLE tokens ADD COLUMN family TEXT;
CREATE INDEX tokens_by_family ON tokens (family) WHERE family IS NOT NULL;
