-- +goose Up

-- The time of an entry's transaction, so that the history of an account is read in order from one index.
ALTER TABLE ledger_entry ADD COLUMN created BIGINT NOT NULL DEFAULT 0;
DROP TRIGGER ledger_entry_fixed;
UPDATE ledger_entry SET created = (SELECT t.created FROM ledger_transaction t WHERE t.id = ledger_entry.transaction_id);
-- +goose StatementBegin
CREATE TRIGGER ledger_entry_fixed BEFORE UPDATE ON ledger_entry BEGIN SELECT RAISE(ABORT, 'append only'); END;
-- +goose StatementEnd
CREATE INDEX ledger_entry_time ON ledger_entry (account_id, created, transaction_id);

-- The sums of an account's entries by day in UTC, so that a chart costs as much as it has days. A trigger adds them, as on
-- PostgreSQL. Entries that move no tokens and system accounts, which all transactions share, have none.
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
CREATE TRIGGER ledger_entry_day AFTER INSERT ON ledger_entry WHEN NEW.amount <> 0 AND NEW.account_id NOT LIKE 'system:%' BEGIN
    INSERT INTO ledger_day (account_id, day, received, spent, entries)
    VALUES (NEW.account_id, NEW.created / 86400000000, max(NEW.amount, 0), max(-NEW.amount, 0), 1)
    ON CONFLICT (account_id, day) DO UPDATE SET
        received = received + excluded.received, spent = spent + excluded.spent, entries = entries + 1;
END;
-- +goose StatementEnd
