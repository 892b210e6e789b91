-- +goose Up

-- What has ended stays as it ended, and what was answered is answered again alike.

-- +goose StatementBegin
CREATE TRIGGER run_final BEFORE UPDATE OF status, tokens_charged, allowance_used, error_code, error_message, started, finished, num_results, seed, metadata ON run
WHEN OLD.status <> 'pending' BEGIN SELECT RAISE(ABORT, 'run is final'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER idempotency_fixed BEFORE UPDATE ON idempotency BEGIN SELECT RAISE(ABORT, 'append only'); END;
-- +goose StatementEnd
