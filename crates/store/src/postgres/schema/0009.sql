-- The file of a table when something was erased from it last. Until the table is written anew (`VACUUM FULL`), old pages may hold it.
CREATE TABLE erased_from (
    owner_id  bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    name      text COLLATE "C" NOT NULL,
    file      bigint NOT NULL,
    erased_at bigint NOT NULL,
    PRIMARY KEY (owner_id, name)
);
