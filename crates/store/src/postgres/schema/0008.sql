-- Reads of a few records, which take less time than planning them. A session plans a statement of a function once, also behind a pooler,
-- where statements cannot have names. Such a plan is kept while a stream grows, so it uses nothing but indexes.

-- The date, content, cursor value, version, digest and row of the live record with a key, in this order. As an array it needs no columns
-- to be planned.
CREATE FUNCTION record_by_key(of_owner bigint, of_stream bigint, wanted text) RETURNS text[] LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $$ BEGIN
    RETURN (
        SELECT ARRAY[emitted_at, data, sort::text, version::text, digest::text, row_id::text] FROM records
        WHERE owner_id = of_owner AND stream_id = of_stream AND key = wanted COLLATE "C" AND data IS NOT NULL
    );
END $$;

-- The live records in some rows of some streams, in any order, without content of more bytes than `most`. A single stream is in one part
-- of the table.
CREATE FUNCTION records_by_row(of_owner bigint, of_streams bigint[], wanted bigint[], most bigint)
RETURNS TABLE (
    key text, emitted_at text, data text, sort bigint, version bigint, changed boolean, stream_id bigint, digest bigint, row_id bigint
) LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    alone bigint = of_streams[1];
BEGIN
    IF cardinality(of_streams) = 1 THEN
        RETURN QUERY SELECT found.* FROM unnest(wanted) AS place (place) CROSS JOIN LATERAL (
            SELECT key, emitted_at, CASE WHEN octet_length(data) <= most THEN data END, sort, version, version <> row_id, stream_id, digest, row_id
            FROM records WHERE owner_id = of_owner AND stream_id = alone AND row_id = place AND data IS NOT NULL OFFSET 0
        ) AS found;
    ELSE
        RETURN QUERY SELECT found.* FROM unnest(wanted) AS place (place) CROSS JOIN LATERAL (
            SELECT key, emitted_at, CASE WHEN octet_length(data) <= most THEN data END, sort, version, version <> row_id, stream_id, digest, row_id
            FROM records WHERE owner_id = of_owner AND stream_id = ANY(of_streams) AND row_id = place AND data IS NOT NULL OFFSET 0
        ) AS found;
    END IF;
END $$;

-- A page of changes after a version and up to another, in their order, with what each record was at the version that a reader knows. Of a
-- key it is the last change until then, which is the current row or the superseded one that was current then; or all of them. Each part
-- has its own limit, or all of its rows would be sorted for a page.
CREATE FUNCTION record_changes(
    of_owner bigint, of_stream bigint, later bigint, upto bigint, most_rows bigint, known bigint, every_version boolean, page_bytes bigint
) RETURNS TABLE (
    key text, version bigint, emitted_at text, data text, digest bigint, revised boolean, row_id bigint,
    earlier_version bigint, earlier_emitted_at text, earlier_data text, earlier_digest bigint
) LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT measured.key, measured.version, measured.emitted_at, measured.data, measured.digest, measured.revised, measured.row_id,
        earlier.version, earlier.emitted_at, earlier.data, earlier.digest
    FROM (
        SELECT *, sum(coalesce(octet_length(data), 0)) OVER (ORDER BY version) - coalesce(octet_length(data), 0) AS before,
            row_number() OVER (ORDER BY version) AS number
        FROM (
            -- A limit keeps the planner from reading the whole history of a stream for it.
            (SELECT key, version, emitted_at, data, digest, row_id, version <> row_id AND (
                 SELECT TRUE FROM versions WHERE versions.stream_id = of_stream AND versions.row_id = records.row_id LIMIT 1
             ) IS NOT NULL AS revised
             FROM records WHERE owner_id = of_owner AND stream_id = of_stream AND version > later AND version <= upto
             ORDER BY version LIMIT most_rows)
            UNION ALL
            (SELECT named.key, past.version, past.emitted_at, past.data, past.digest, past.row_id, TRUE
             FROM (
                 SELECT version, emitted_at, data, digest, row_id FROM versions
                 WHERE stream_id = of_stream AND version > later AND version <= upto AND (every_version OR next_version > upto)
                 ORDER BY version LIMIT most_rows
             ) AS past CROSS JOIN LATERAL (
                 SELECT key FROM records WHERE owner_id = of_owner AND stream_id = of_stream AND row_id = past.row_id OFFSET 0
             ) AS named)
            ORDER BY version LIMIT most_rows
        ) AS entries
    ) AS measured
    LEFT JOIN LATERAL (
        SELECT version, emitted_at, data, digest FROM versions
        WHERE known > 0 AND stream_id = of_stream AND row_id = measured.row_id AND version <= known AND next_version > known
    ) AS earlier ON TRUE
    WHERE before <= page_bytes OR number <= 2 ORDER BY measured.version;
END $$;

-- The records of a stream by their keys, deleted ones too. Each is looked up by itself: joined, all records of the stream would be read
-- for a large batch.
CREATE FUNCTION records_by_key(of_owner bigint, of_stream bigint, wanted text[])
RETURNS TABLE (key text, row_id bigint, version bigint, emitted_at text, data text, sort bigint, digest bigint) LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT found.* FROM unnest(wanted) AS place (place) CROSS JOIN LATERAL (
        SELECT key, row_id, version, emitted_at, data, sort, digest FROM records
        WHERE owner_id = of_owner AND stream_id = of_stream AND key = place COLLATE "C" OFFSET 0
    ) AS found;
END $$;
