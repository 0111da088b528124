-- The key that sealed the cursors of a data directory before it moved here, hidden by the secret of the nodes.
ALTER TABLE owners ADD COLUMN sealing_key bytea;
