-- +goose Up

-- What an engine noted about work that goes on elsewhere, for the worker that
-- takes the run over.
ALTER TABLE run ADD COLUMN note TEXT NOT NULL DEFAULT '';

-- Engines whose server is away. Whoever finds out says so again and again:
-- what nobody has said for a while counts for nothing.
CREATE TABLE engine_away (
    engine TEXT PRIMARY KEY,
    since  BIGINT NOT NULL,
    said   BIGINT NOT NULL
);
