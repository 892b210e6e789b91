-- +goose Up

-- The nodes of the installation, each with its newest report.
CREATE TABLE node (
    id      TEXT   NOT NULL PRIMARY KEY,
    version TEXT   NOT NULL,
    roles   TEXT   NOT NULL, -- separated by commas
    engines TEXT   NOT NULL, -- JSON list of the engines of the node and their state
    started BIGINT NOT NULL,
    seen    BIGINT NOT NULL  -- time of the newest report
);

-- The idempotency keys of grants by operators, so that no grant happens twice.
CREATE TABLE grant_key (
    person_id      TEXT   NOT NULL REFERENCES person (id), -- the operator
    key            TEXT   NOT NULL,
    fingerprint    TEXT   NOT NULL, -- hash of the request
    transaction_id TEXT   NOT NULL REFERENCES ledger_transaction (id),
    balance        BIGINT NOT NULL, -- of the account, after the grant
    PRIMARY KEY (person_id, key)
);

-- The runs of all accounts that have not ended, for lists in order of their creation.
CREATE INDEX run_stage ON run (stage, created, id) WHERE stage IS NOT NULL;
