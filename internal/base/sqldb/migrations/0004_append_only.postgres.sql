-- +goose Up

-- What is written here stays as it is.

-- +goose StatementBegin
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'append only';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON audit EXECUTE FUNCTION append_only();
CREATE TRIGGER ledger_transaction_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_transaction EXECUTE FUNCTION append_only();
CREATE TRIGGER ledger_entry_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entry EXECUTE FUNCTION append_only();
