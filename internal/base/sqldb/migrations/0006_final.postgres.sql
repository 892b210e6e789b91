-- +goose Up

-- What has ended stays as it ended, and what was answered is answered again alike.

-- +goose StatementBegin
CREATE FUNCTION run_is_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'run is final';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER run_final BEFORE UPDATE OF status, tokens_charged, allowance_used, error_code, error_message, started, finished, num_results, seed, metadata ON run
    FOR EACH ROW WHEN (OLD.status <> 'pending') EXECUTE FUNCTION run_is_final();
CREATE TRIGGER idempotency_fixed BEFORE UPDATE ON idempotency EXECUTE FUNCTION append_only();
