-- +goose Up

-- The engines that the settings of worker nodes name, whether or not a worker
-- serves their pool. A claim of a run of an engine whose runs are limited on all
-- nodes together locks the row of the engine.
CREATE TABLE engine_declared (
    engine TEXT   NOT NULL PRIMARY KEY,
    pool   TEXT   NOT NULL, -- empty if no node has declared the engine yet
    seen   BIGINT NOT NULL  -- time when a node last declared the engine
);

-- The running runs of an engine, for the claims that count them.
CREATE INDEX run_running ON run (engine) WHERE stage = 'running';
