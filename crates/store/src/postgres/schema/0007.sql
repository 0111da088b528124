-- The mark of an owner's last change, beside its version: every read asks for both. A node of an earlier release does not write them,
-- so the mark is of the version `marked`, and another one is in `marks`.
ALTER TABLE owners ADD COLUMN marked bigint NOT NULL DEFAULT -1;
ALTER TABLE owners ADD COLUMN last_mark bytea;

-- What statistics tell of the owners and streams that were there says nothing of one that came since. It would be taken for small, and
-- read as a whole for a single record. So each is taken for as large as the largest, and the index that fits best is used.
ALTER TABLE records ALTER COLUMN owner_id SET STATISTICS 1, ALTER COLUMN stream_id SET STATISTICS 1;
ALTER TABLE versions ALTER COLUMN owner_id SET STATISTICS 1, ALTER COLUMN stream_id SET STATISTICS 1;
ALTER TABLE records_0 ALTER COLUMN owner_id SET (n_distinct = 2), ALTER COLUMN stream_id SET (n_distinct = 2);
ALTER TABLE records_1 ALTER COLUMN owner_id SET (n_distinct = 2), ALTER COLUMN stream_id SET (n_distinct = 2);
ALTER TABLE records_2 ALTER COLUMN owner_id SET (n_distinct = 2), ALTER COLUMN stream_id SET (n_distinct = 2);
ALTER TABLE records_3 ALTER COLUMN owner_id SET (n_distinct = 2), ALTER COLUMN stream_id SET (n_distinct = 2);
ALTER TABLE records_4 ALTER COLUMN owner_id SET (n_distinct = 2), ALTER COLUMN stream_id SET (n_distinct = 2);
ALTER TABLE records_5 ALTER COLUMN owner_id SET (n_distinct = 2), ALTER COLUMN stream_id SET (n_distinct = 2);
ALTER TABLE records_6 ALTER COLUMN owner_id SET (n_distinct = 2), ALTER COLUMN stream_id SET (n_distinct = 2);
ALTER TABLE records_7 ALTER COLUMN owner_id SET (n_distinct = 2), ALTER COLUMN stream_id SET (n_distinct = 2);
ALTER TABLE versions ALTER COLUMN owner_id SET (n_distinct = 2), ALTER COLUMN stream_id SET (n_distinct = 2);
