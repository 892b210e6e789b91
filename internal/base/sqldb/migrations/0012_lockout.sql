-- +goose Up

-- Browsers that a person signed in with before: limits on guessing treat them by themselves.
CREATE TABLE known_browser (
    id        TEXT   PRIMARY KEY,
    person_id TEXT   NOT NULL REFERENCES person (id),
    hash      TEXT   NOT NULL UNIQUE, -- SHA-256 of the secret in the browser's cookie
    expires   BIGINT NOT NULL
);
CREATE INDEX known_browser_person ON known_browser (person_id, expires);
CREATE INDEX known_browser_expires ON known_browser (expires);

-- What a grant counts by: the address, or its /64 where that is IPv6.
ALTER TABLE device_grant ADD COLUMN network TEXT NOT NULL DEFAULT '';
UPDATE device_grant SET network = address;
CREATE INDEX device_grant_live ON device_grant (expires, network) WHERE state IN ('pending', 'approved');
CREATE INDEX device_grant_network ON device_grant (network, expires) WHERE state IN ('pending', 'approved');
