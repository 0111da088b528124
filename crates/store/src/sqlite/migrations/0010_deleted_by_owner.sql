-- Keys of records that the owner deleted. What is imported under one of them is not taken unless it is to be revived. They are
-- kept as SHA-256, because a purge leaves no key behind.
CREATE TABLE deleted_by_owner (
    stream_id INTEGER NOT NULL,
    key_digest BLOB NOT NULL,
    PRIMARY KEY (stream_id, key_digest)
) WITHOUT ROWID;
