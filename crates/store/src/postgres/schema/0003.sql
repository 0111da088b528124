-- What tells a node from another of its name: the folder it keeps its index in, and the process that uses it now.
ALTER TABLE nodes ADD COLUMN folder text NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN session text NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN left_at bigint;
