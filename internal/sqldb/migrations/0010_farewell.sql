-- +goose Up

-- What is kept about a person is found by its account or its person, whatever its state.
CREATE INDEX upload_account ON upload (account_id, id);
CREATE INDEX audit_actor ON audit (actor_id, seq);
DROP INDEX ledger_entry_account;
CREATE INDEX ledger_entry_account ON ledger_entry (account_id, transaction_id);
