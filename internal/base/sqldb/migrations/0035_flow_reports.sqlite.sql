-- +goose Up

-- For reports of the flows of a part of a day.
CREATE INDEX run_flow ON run (company_id, finished) WHERE engine = 'flow' AND parent_id IS NULL;
