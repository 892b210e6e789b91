-- +goose Up

-- The person who added a node or changed it last, empty for changes by releases before this one.
ALTER TABLE board_node ADD COLUMN person_id TEXT NOT NULL DEFAULT '';

-- Runs of an account that ended since a time, for the clients that follow the account.
CREATE INDEX run_ended ON run (account_id, finished, id) WHERE finished IS NOT NULL;

-- People who look at boards: one row for each open event stream, and one (with an empty stream) with the cursor and the
-- selection that the person last sent. Rows refer to no other table, because they are written several times a second and
-- expire by themselves. The time is not indexed, so that PostgreSQL can extend it in place.
CREATE TABLE board_presence (
    board_id  TEXT   NOT NULL,
    person_id TEXT   NOT NULL,
    stream    TEXT   NOT NULL,
    node      TEXT   NOT NULL, -- the process that serves the stream, empty without a stream
    x         DOUBLE PRECISION, -- of the cursor, NULL if it is not on the board
    y         DOUBLE PRECISION,
    selected  TEXT   NOT NULL, -- the ids of the selected nodes, separated by commas
    until     BIGINT NOT NULL,
    PRIMARY KEY (board_id, person_id, stream)
);
