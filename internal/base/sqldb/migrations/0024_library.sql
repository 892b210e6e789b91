-- +goose Up

-- A result that a person deleted can be restored until this time. NULL: it is not deleted, or cannot be restored.
ALTER TABLE result ADD COLUMN restorable_until BIGINT;
CREATE INDEX result_restorable ON result (restorable_until) WHERE restorable_until IS NOT NULL;

-- The prompt of the run in lower case, for searching. NULL: written by a release without this column; a background job sets it.
ALTER TABLE result ADD COLUMN search_text TEXT;
CREATE INDEX result_unsearchable ON result (id) WHERE search_text IS NULL;

-- With type and deleted in it, SQLite counts and numbers the results of an account from the index alone.
DROP INDEX result_newest;
CREATE INDEX result_newest ON result (account_id, created, id, type, deleted) WHERE deleted IS NULL AND type <> 'TEXT';
CREATE INDEX result_type ON result (account_id, type, created, id) WHERE deleted IS NULL AND type <> 'TEXT';

CREATE INDEX webhook_event_newest ON webhook_event (account_id, created, id) WHERE run_id IS NOT NULL;
CREATE INDEX webhook_event_state ON webhook_event (account_id, state, created, id) WHERE run_id IS NOT NULL;
