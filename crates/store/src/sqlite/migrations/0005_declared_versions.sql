-- The fifth format: every version of a declaration that was ever registered, so that none comes back with other content.

CREATE TABLE declared_versions (
    connector_key TEXT NOT NULL,
    version       TEXT NOT NULL,
    declaration   TEXT NOT NULL,
    PRIMARY KEY (connector_key, version)
) STRICT, WITHOUT ROWID;

-- Of what was registered before this format only the last version is known.
INSERT INTO declared_versions
SELECT connector_key, declaration ->> '$.declaration_version', declaration FROM connectors
WHERE json_valid(declaration) AND json_type(declaration, '$.declaration_version') = 'text';
