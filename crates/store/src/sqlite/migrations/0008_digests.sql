-- Format 8: records and their versions carry a digest of what they hold. Rows that were there before get theirs
-- later; the bookmarks say up to which row there may be some without.

ALTER TABLE records ADD COLUMN digest INTEGER;
ALTER TABLE versions ADD COLUMN digest INTEGER;
INSERT INTO meta SELECT 'undigested_records', max(row_id) FROM records HAVING count(*) > 0;
INSERT INTO meta SELECT 'undigested_versions', max(rowid) FROM versions HAVING count(*) > 0;
