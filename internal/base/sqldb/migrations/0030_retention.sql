-- +goose Up

-- Whether the retention of runs has erased the contents of an ended run. The row stays, because the ledger and the reports
-- count it.
ALTER TABLE run ADD COLUMN pruned BOOLEAN NOT NULL DEFAULT FALSE;

-- Whether the sweep has looked at an input file since its run ended. Files that were sent with a run belong to nothing else,
-- so the sweep finds them by the inputs that it has not looked at.
ALTER TABLE run_input ADD COLUMN swept BOOLEAN NOT NULL DEFAULT FALSE;
