-- Copies of an index that new nodes start from. `id` names the files of one; `erased_to` says which erasures it holds nothing of.
-- One that is being written or removed is nobody's to use; `epoch` is that of the lease under which it is written.
ALTER TABLE snapshots DROP CONSTRAINT snapshots_pkey;
ALTER TABLE snapshots ADD COLUMN id text COLLATE "C" NOT NULL;
ALTER TABLE snapshots ADD PRIMARY KEY (owner_id, id);
ALTER TABLE snapshots ADD COLUMN state text NOT NULL DEFAULT 'writing' CHECK (state IN ('writing', 'kept', 'removing'));
ALTER TABLE snapshots ADD COLUMN erased_to bigint NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
