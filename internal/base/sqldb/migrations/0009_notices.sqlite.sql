-- +goose Up

-- Events that are not about a run: their body is made when they happen. SQLite
-- cannot take a NOT NULL away, so both tables are made anew.
CREATE TABLE webhook_event_new (
    id          TEXT   PRIMARY KEY, -- the webhook-id
    run_id      TEXT   UNIQUE REFERENCES run (id), -- NULL: not about a run
    body        TEXT   NOT NULL DEFAULT '', -- of events that are not
    account_id  TEXT   NOT NULL,
    url         TEXT   NOT NULL,
    host        TEXT   NOT NULL,
    state       TEXT   NOT NULL CHECK (state IN ('waiting', 'delivered', 'exhausted', 'gone')),
    attempts    BIGINT NOT NULL, -- those of the schedule that were made
    next_at     BIGINT, -- NULL: nothing more is sent by itself
    lease_until BIGINT, -- somebody is sending
    created     BIGINT NOT NULL,
    CHECK ((state = 'waiting') = (next_at IS NOT NULL)),
    CHECK ((run_id IS NULL) = (body <> ''))
);
INSERT INTO webhook_event_new (id, run_id, account_id, url, host, state, attempts, next_at, lease_until, created)
SELECT id, run_id, account_id, url, host, state, attempts, next_at, lease_until, created FROM webhook_event;

CREATE TABLE webhook_attempt_new (
    id          TEXT   PRIMARY KEY,
    event_id    TEXT   NOT NULL REFERENCES webhook_event_new (id),
    at          BIGINT NOT NULL,
    status_code BIGINT,
    duration_ms BIGINT NOT NULL,
    error       TEXT   NOT NULL -- a word of ours, empty: none
);
INSERT INTO webhook_attempt_new (id, event_id, at, status_code, duration_ms, error)
SELECT id, event_id, at, status_code, duration_ms, error FROM webhook_attempt;

DROP TABLE webhook_attempt;
DROP TABLE webhook_event;
ALTER TABLE webhook_event_new RENAME TO webhook_event;
ALTER TABLE webhook_attempt_new RENAME TO webhook_attempt;
CREATE INDEX webhook_event_due ON webhook_event (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX webhook_attempt_event ON webhook_attempt (event_id, at, id);

-- What a person wrote with their runs can be erased with them, and not be changed otherwise.
DROP TRIGGER run_final;
-- +goose StatementBegin
CREATE TRIGGER run_final BEFORE UPDATE OF status, tokens_charged, allowance_used, error_code, error_message, started, finished, num_results, results, seed, company_id ON run
WHEN OLD.status <> 'pending' BEGIN SELECT RAISE(ABORT, 'run is final'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER run_metadata_final BEFORE UPDATE OF metadata ON run
WHEN OLD.status <> 'pending' AND NEW.metadata <> '' BEGIN SELECT RAISE(ABORT, 'run is final'); END;
-- +goose StatementEnd
