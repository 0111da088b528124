-- The fourth format: an approval that the application never comes for ends with its code.

-- Until when the first token must be issued. NULL once one was.
ALTER TABLE grants ADD COLUMN redeem_by INTEGER;

-- Of approvals before this format: those that nobody came for have ended. No way to come for one lasts longer than
-- fifteen minutes.
UPDATE grants SET redeem_by = issued_at + 900000000
WHERE NOT EXISTS (
    SELECT 1 FROM tokens
    WHERE tokens.grant_id = grants.id OR tokens.package_id = grants.package_id
);
