-- +goose Up

-- How many bytes accounts keep, counted in the transactions that store and delete.

ALTER TABLE asset ADD COLUMN stored_bytes BIGINT NOT NULL DEFAULT 0; -- of the file, its thumbnail and its first frame
ALTER TABLE asset ADD COLUMN released BIGINT; -- when it was deleted and no longer counted as used by its account

-- The sizes of thumbnails and first frames were not kept before, so older files count without them.
UPDATE asset SET stored_bytes = size_bytes, released = coalesce(gone,
    (SELECT u.deleted FROM upload u WHERE u.asset_id = asset.id),
    (SELECT r.deleted FROM result r WHERE r.asset_id = asset.id));

CREATE TABLE storage_account (
    account_id    TEXT   PRIMARY KEY, -- a person's or a team's id
    used_bytes    BIGINT NOT NULL CHECK (used_bytes >= 0), -- of files that are not deleted
    leaving_bytes BIGINT NOT NULL CHECK (leaving_bytes >= 0), -- of deleted files whose bytes are still stored
    limit_bytes   BIGINT CHECK (limit_bytes >= 0) -- the account's own limit; NULL: the setting's, 0: no limit
);
INSERT INTO storage_account (account_id, used_bytes, leaving_bytes)
SELECT account_id, sum(CASE WHEN released IS NULL THEN stored_bytes ELSE 0 END), sum(CASE WHEN released IS NULL THEN 0 ELSE stored_bytes END)
FROM asset WHERE gone IS NULL GROUP BY account_id;

-- All stored bytes, as a counter in 16 rows, so that transactions of different accounts seldom wait for each other. One row
-- alone means nothing and can be below zero; their sum is the count.
CREATE TABLE storage_shard (
    shard BIGINT PRIMARY KEY,
    bytes BIGINT NOT NULL
);
INSERT INTO storage_shard (shard, bytes)
VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0), (10, 0), (11, 0), (12, 0), (13, 0), (14, 0), (15, 0);
INSERT INTO storage_shard (shard, bytes) SELECT 0, coalesce(sum(stored_bytes), 0) FROM asset WHERE gone IS NULL;
