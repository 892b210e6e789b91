-- +goose Up

-- Flows: several tools as one run. The run of a flow (engine 'flow') is executed by no worker: its steps are runs of their
-- own, in the same account and under the hold of the flow.

-- The run of the flow that started this run as a step, or NULL if a client started it. Releases before this one have no
-- flows.
ALTER TABLE run ADD COLUMN parent_id TEXT REFERENCES run (id);

CREATE TABLE flow_run (
    run_id   TEXT   PRIMARY KEY REFERENCES run (id),
    retry_of TEXT   REFERENCES run (id), -- the run of the same flow whose finished steps are taken over
    due      BIGINT,                     -- when its next steps must be decided; NULL: a step must end first, or the flow has ended
    failures BIGINT NOT NULL DEFAULT 0   -- how often deciding has failed since it last succeeded
);
CREATE INDEX flow_run_due ON flow_run (due) WHERE due IS NOT NULL;

-- The runs of the steps of a flow.
CREATE TABLE flow_step (
    flow_id   TEXT    NOT NULL REFERENCES run (id),
    step      TEXT    NOT NULL, -- id in the manifest
    otherwise BOOLEAN NOT NULL, -- the run replaces a failed one
    place     BIGINT  NOT NULL, -- of the item for which the step runs; 0 if it runs once
    run_id    TEXT    NOT NULL REFERENCES run (id),
    reused    BOOLEAN NOT NULL, -- the run was started by an earlier run of the flow
    delivered BIGINT,           -- place of its results among the results of the flow; NULL: they are intermediate
    PRIMARY KEY (flow_id, step, otherwise, place)
);
CREATE INDEX flow_step_run ON flow_step (run_id);

-- Whether a result is only an intermediate result of a flow.
ALTER TABLE result ADD COLUMN intermediate BOOLEAN NOT NULL DEFAULT FALSE;
