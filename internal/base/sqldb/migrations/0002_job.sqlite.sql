-- +goose Up

-- The queue of the embedded database. On PostgreSQL River keeps the jobs.
CREATE TABLE job (
    id          TEXT   PRIMARY KEY,
    kind        TEXT   NOT NULL,
    args        TEXT   NOT NULL, -- JSON or empty
    unique_key  TEXT,            -- NULL: any number of equal jobs
    state       TEXT   NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'failed', 'cancelled')),
    attempt     BIGINT NOT NULL, -- how often it was started; fences late workers
    run_at      BIGINT NOT NULL,
    lease_until BIGINT,          -- while running
    cancel      BOOLEAN NOT NULL,
    error       TEXT   NOT NULL,
    created     BIGINT NOT NULL,
    finished    BIGINT
);
CREATE INDEX job_waiting ON job (kind, run_at) WHERE state = 'waiting';
CREATE INDEX job_running ON job (lease_until) WHERE state = 'running';
CREATE INDEX job_finished ON job (finished) WHERE finished IS NOT NULL;
CREATE UNIQUE INDEX job_unique ON job (kind, unique_key) WHERE state IN ('waiting', 'running');

-- The kinds of job that the queue adds by itself, and when next.
CREATE TABLE job_every (
    kind TEXT   PRIMARY KEY,
    next BIGINT NOT NULL
);
