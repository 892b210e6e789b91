-- +goose Up

-- What is written here stays as it is.

-- +goose StatementBegin
CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'append only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_fixed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'append only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_transaction_kept BEFORE DELETE ON ledger_transaction BEGIN SELECT RAISE(ABORT, 'append only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_transaction_fixed BEFORE UPDATE ON ledger_transaction BEGIN SELECT RAISE(ABORT, 'append only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_entry_kept BEFORE DELETE ON ledger_entry BEGIN SELECT RAISE(ABORT, 'append only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_entry_fixed BEFORE UPDATE ON ledger_entry BEGIN SELECT RAISE(ABORT, 'append only'); END;
-- +goose StatementEnd
