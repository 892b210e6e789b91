-- +goose Up

-- What an engine noted about work that goes on elsewhere, for the worker that
-- takes the run over.
ALTER TABLE run ADD COLUMN note TEXT NOT NULL DEFAULT '';

-- Work that goes on although its run is over.
CREATE INDEX run_noted ON run (engine) WHERE note <> '' AND status <> 'pending';

-- What workers find about engines whose server is away. Those who find it so say
-- it again and again; where others reach it all the same, they say that. What
-- was not said for a while counts for nothing.
CREATE TABLE engine_away (
    engine TEXT    NOT NULL,
    worker TEXT    NOT NULL,
    away   BOOLEAN NOT NULL,
    since  BIGINT  NOT NULL,
    said   BIGINT  NOT NULL,
    PRIMARY KEY (engine, worker)
);
