-- Records that were given an earlier date than they had. `latest` is never before any date they had, in microseconds.

CREATE TABLE redated (
    row_id    INTEGER PRIMARY KEY,
    stream_id INTEGER NOT NULL,
    latest    INTEGER NOT NULL
) STRICT;
CREATE INDEX redated_by_latest ON redated (stream_id, latest);

-- Of records before this format: a millisecond more than the date, since it is computed in days here.
INSERT INTO redated (row_id, stream_id, latest)
SELECT versions.row_id, versions.stream_id,
       max(coalesce(CAST((julianday(versions.emitted_at) - 2440587.5) * 86400000000 AS INTEGER) + 1000, 9223372036854775807))
FROM versions
LEFT JOIN versions AS superseded ON superseded.row_id = versions.row_id AND superseded.version = versions.next_version
LEFT JOIN records ON records.row_id = versions.row_id AND records.version = versions.next_version
WHERE (julianday(versions.emitted_at) <= julianday(coalesce(superseded.emitted_at, records.emitted_at))) IS NOT TRUE
GROUP BY versions.row_id, versions.stream_id;
