-- The index keeps for itself which of its documents are laid out as an earlier declaration had it.
DROP TABLE reindexing;
