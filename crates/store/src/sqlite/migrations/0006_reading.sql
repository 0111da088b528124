-- The sixth format: how a declaration was read when it was registered, for records and index follow that reading.

-- 1: a field has only the types it names itself. 2: references and combinations of schemas are followed.
ALTER TABLE connectors ADD COLUMN reading INTEGER NOT NULL DEFAULT 1;

-- What has neither means the same either way.
UPDATE connectors SET reading = 2
WHERE instr(declaration, '$ref') = 0 AND instr(declaration, 'Of"') = 0 AND instr(declaration, '"pattern"') = 0
  AND instr(declaration, '\') = 0;
