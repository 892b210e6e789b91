-- +goose Up

-- Uploads that arrive in parts, by the tus protocol. A row stays until it expires, also after the upload is finished.
CREATE TABLE resumable_upload (
    id           TEXT   PRIMARY KEY,
    account_id   TEXT   NOT NULL, -- a person's or a team's id
    person_id    TEXT   NOT NULL REFERENCES person (id),
    name         TEXT   NOT NULL, -- of the file
    metadata     TEXT   NOT NULL, -- the header Upload-Metadata as it came
    length_bytes BIGINT NOT NULL CHECK (length_bytes >= 1), -- of the file; counted as used by the account until the upload is finished
    offset_bytes BIGINT NOT NULL CHECK (offset_bytes >= 0 AND offset_bytes <= length_bytes), -- how many have arrived
    part_count   BIGINT NOT NULL CHECK (part_count >= 0), -- rows of resumable_part, so that no request has to count them
    key          TEXT, -- the idempotency key of the creation
    upload_id    TEXT   REFERENCES upload (id), -- of the finished upload
    created      BIGINT NOT NULL,
    expires      BIGINT NOT NULL,
    CHECK ((upload_id IS NULL) = (offset_bytes < length_bytes))
);
CREATE UNIQUE INDEX resumable_upload_key ON resumable_upload (person_id, key) WHERE key IS NOT NULL;
CREATE INDEX resumable_upload_person ON resumable_upload (person_id);
CREATE INDEX resumable_upload_expires ON resumable_upload (expires);

-- The bytes of unfinished uploads that have arrived.
CREATE TABLE resumable_part (
    resumable_id TEXT   NOT NULL REFERENCES resumable_upload (id),
    start_bytes  BIGINT NOT NULL CHECK (start_bytes >= 0), -- place of the first byte in the file
    size_bytes   BIGINT NOT NULL CHECK (size_bytes >= 1),
    sha256       TEXT   NOT NULL, -- in hex
    blob         TEXT   NOT NULL UNIQUE, -- key of the bytes
    PRIMARY KEY (resumable_id, start_bytes)
);
