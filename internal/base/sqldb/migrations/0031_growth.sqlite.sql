-- +goose Up

-- Indexes with which a call costs the same, however many old rows there are.

-- The running runs of an engine, for the claims that count them.
CREATE INDEX IF NOT EXISTS run_running ON run (engine) WHERE stage = 'running';

CREATE INDEX run_unpruned ON run (finished) WHERE finished IS NOT NULL AND NOT pruned;
CREATE INDEX run_input_unswept ON run_input (run_id, field, place) WHERE NOT swept;
CREATE INDEX asset_leaving ON asset (id) WHERE released IS NOT NULL AND gone IS NULL;
CREATE INDEX webhook_event_ended ON webhook_event (created) WHERE next_at IS NULL;

-- For the filters of the library.
CREATE INDEX result_shape ON result (account_id, shape, created, id) WHERE deleted IS NULL AND type <> 'TEXT';
CREATE INDEX result_resolution ON result (account_id, resolution, created, id) WHERE deleted IS NULL AND type <> 'TEXT';

-- The history of an account leaves out entries that moved no tokens.
CREATE INDEX ledger_entry_moved ON ledger_entry (account_id, created, transaction_id) WHERE amount <> 0;
DROP INDEX ledger_entry_time;

CREATE INDEX audit_act ON audit (act, seq);
