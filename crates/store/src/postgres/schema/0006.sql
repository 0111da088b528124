-- Every node asks each second whether blobs are marked.
CREATE INDEX blobs_marked ON blobs (owner_id, id) WHERE state = 'deleting';
