-- Calls as each node has counted them, by who made them. Others subtract them from what is left. Nothing is lost with them.
CREATE UNLOGGED TABLE calls (
    owner_id bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    node     text COLLATE "C" NOT NULL,
    caller   text COLLATE "C" NOT NULL,
    made     bigint NOT NULL,
    at       bigint NOT NULL,
    PRIMARY KEY (owner_id, node, caller)
);
