-- +goose Up

-- The time of an entry's transaction, so that the history of an account is read in order from one index. The default is for
-- nodes of the previous release, which do not write the column.
ALTER TABLE ledger_entry ADD COLUMN created BIGINT;
ALTER TABLE ledger_entry ALTER COLUMN created SET DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
ALTER TABLE ledger_entry DISABLE TRIGGER ledger_entry_fixed;
UPDATE ledger_entry SET created = t.created FROM ledger_transaction t WHERE t.id = ledger_entry.transaction_id;
ALTER TABLE ledger_entry ENABLE TRIGGER ledger_entry_fixed;
ALTER TABLE ledger_entry ALTER COLUMN created SET NOT NULL;
CREATE INDEX ledger_entry_time ON ledger_entry (account_id, created, transaction_id);

-- The sums of an account's entries by day in UTC, so that a chart costs as much as it has days. A trigger adds them, because
-- nodes of the previous release do not. Entries that move no tokens and system accounts, which all transactions share, have
-- none.
CREATE TABLE ledger_day (
    account_id TEXT   NOT NULL REFERENCES ledger_account (id),
    day        BIGINT NOT NULL, -- days since 1970
    received   BIGINT NOT NULL,
    spent      BIGINT NOT NULL,
    entries    BIGINT NOT NULL,
    PRIMARY KEY (account_id, day)
);
INSERT INTO ledger_day (account_id, day, received, spent, entries)
SELECT account_id, created / 86400000000, sum(CASE WHEN amount > 0 THEN amount ELSE 0 END), sum(CASE WHEN amount < 0 THEN -amount ELSE 0 END), count(*)
FROM ledger_entry WHERE amount <> 0 AND account_id NOT LIKE 'system:%' GROUP BY account_id, created / 86400000000;
-- +goose StatementBegin
CREATE FUNCTION add_to_ledger_day() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ledger_day (account_id, day, received, spent, entries)
    VALUES (NEW.account_id, NEW.created / 86400000000, greatest(NEW.amount, 0), greatest(-NEW.amount, 0), 1)
    ON CONFLICT (account_id, day) DO UPDATE SET
        received = ledger_day.received + excluded.received, spent = ledger_day.spent + excluded.spent, entries = ledger_day.entries + 1;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER ledger_entry_day AFTER INSERT ON ledger_entry FOR EACH ROW
    WHEN (NEW.amount <> 0 AND NEW.account_id NOT LIKE 'system:%') EXECUTE FUNCTION add_to_ledger_day();
