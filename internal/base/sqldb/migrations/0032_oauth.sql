-- +goose Up

-- Apps of third parties, which sign people in with the authorization code flow of
-- OAuth. They have no secrets: PKCE proves that who presents a code has requested it.
CREATE TABLE oauth_client (
    id            TEXT   PRIMARY KEY,
    name          TEXT   NOT NULL, -- as the app calls itself
    uri           TEXT   NOT NULL, -- of its web site, or empty
    redirect_uris TEXT   NOT NULL, -- where people may be sent back, as a list in JSON
    network       TEXT   NOT NULL, -- from which it was registered
    created       BIGINT NOT NULL,
    approved      BIGINT           -- when a person first allowed it; NULL if nobody has
);
CREATE INDEX oauth_client_unused ON oauth_client (network, created, id) WHERE approved IS NULL;

-- An authorization code is a grant that its person has approved in advance. It
-- belongs to an app. Releases before this one have no such grants.
ALTER TABLE device_grant ADD COLUMN client_id TEXT REFERENCES oauth_client (id);
ALTER TABLE device_grant ADD COLUMN redirect_uri TEXT NOT NULL DEFAULT '';
ALTER TABLE device_grant ADD COLUMN challenge TEXT NOT NULL DEFAULT ''; -- SHA-256 of the code verifier (RFC 7636), in base64url

-- The app that is signed in, or NULL for a device that signed in with the device
-- flow. Releases before this one ignore it.
ALTER TABLE device ADD COLUMN client_id TEXT REFERENCES oauth_client (id);
CREATE INDEX device_client ON device (client_id) WHERE client_id IS NOT NULL;
CREATE INDEX device_grant_client ON device_grant (client_id) WHERE client_id IS NOT NULL;
