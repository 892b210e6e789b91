-- +goose Up

-- When each credential was last told about a run that has not ended. What was noted per person is dropped: whoever asks
-- next counts as somebody who waited.
DROP TABLE run_poll;
CREATE TABLE run_poll (
    run_id        TEXT   NOT NULL REFERENCES run (id),
    credential    TEXT   NOT NULL, -- its kind, as in run
    credential_id TEXT   NOT NULL,
    person_id     TEXT   NOT NULL REFERENCES person (id),
    answered      BIGINT NOT NULL,
    early         BIGINT NOT NULL, -- how many of its polls came sooner than it was told to
    PRIMARY KEY (run_id, credential, credential_id)
);

-- How long one result took in the middle one of the tool's newest runs.
ALTER TABLE tool ADD COLUMN recent_ms BIGINT;
