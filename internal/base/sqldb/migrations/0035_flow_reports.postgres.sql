-- +goose NO TRANSACTION
-- +goose Up

-- For reports of the flows of a part of a day. It is built without a lock on the table (see prepareIndexes in migrate.go).
CREATE INDEX CONCURRENTLY IF NOT EXISTS run_flow ON run (company_id, finished) WHERE engine = 'flow' AND parent_id IS NULL;
