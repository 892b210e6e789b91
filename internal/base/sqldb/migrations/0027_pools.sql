-- +goose Up

-- The engines that the settings of worker nodes name, whether or not a worker
-- serves their pool. A claim of a run of an engine whose runs are limited on all
-- nodes together locks the row of the engine.
CREATE TABLE engine_declared (
    engine TEXT   NOT NULL PRIMARY KEY,
    pool   TEXT   NOT NULL, -- empty if no node has declared the engine yet
    seen   BIGINT NOT NULL  -- time when a node last declared the engine
);

-- How long before its creation a run counts as created when its person's runs
-- are ordered, in microseconds, by the priorities of its tool and of the
-- person's role. Releases before this one ignore it.
ALTER TABLE run ADD COLUMN head_start BIGINT NOT NULL DEFAULT 0;

-- Whose turn it is: among the people with queued runs, the one with the lowest
-- since - head_start comes next. since is the time of the last claim; for a person
-- who was not served lately, it follows from the arrival of the oldest queued run.
ALTER TABLE run_turn ADD COLUMN since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE run_turn ADD COLUMN head_start BIGINT NOT NULL DEFAULT 0;
UPDATE run_turn SET since = served WHERE waiting > 0;
DROP INDEX run_turn_next;
CREATE INDEX run_turn_order ON run_turn (engine, (since - head_start), person_id) WHERE waiting > 0;
