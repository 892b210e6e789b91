-- +goose Up

-- Flows that people have saved for their account or team. Each is a tool that no other account sees, unless it is shared with the
-- company.
ALTER TABLE tool ADD COLUMN saved BOOLEAN NOT NULL DEFAULT FALSE; -- has a row in saved_flow
ALTER TABLE tool_version ADD COLUMN saved_flow_id TEXT; -- of which saved flow it is a version
CREATE INDEX tool_version_flow ON tool_version (saved_flow_id) WHERE saved_flow_id IS NOT NULL;
CREATE TABLE saved_flow (
    id         TEXT   PRIMARY KEY REFERENCES tool (id),
    account_id TEXT   NOT NULL, -- the person's or the team's id
    company_id TEXT   REFERENCES company (id), -- whose teams may use it; NULL: only the account
    person_id  TEXT   NOT NULL REFERENCES person (id), -- who created it
    name       TEXT   NOT NULL,
    version    BIGINT NOT NULL CHECK (version >= 1), -- counts the saved versions
    created    BIGINT NOT NULL,
    updated    BIGINT NOT NULL,
    deleted    BIGINT
);
CREATE INDEX saved_flow_account ON saved_flow (account_id, created, id) WHERE deleted IS NULL;
CREATE INDEX saved_flow_company ON saved_flow (company_id) WHERE deleted IS NULL AND company_id IS NOT NULL;

-- The tools that saved flows name, to find the flows that a changed tool concerns.
CREATE TABLE saved_flow_tool (
    slug    TEXT NOT NULL,
    flow_id TEXT NOT NULL REFERENCES saved_flow (id),
    PRIMARY KEY (slug, flow_id)
);
CREATE INDEX saved_flow_tool_flow ON saved_flow_tool (flow_id);

CREATE TABLE saved_flow_version (
    flow_id    TEXT   NOT NULL REFERENCES saved_flow (id),
    number     BIGINT NOT NULL,
    definition TEXT   NOT NULL, -- as it was saved
    person_id  TEXT   NOT NULL REFERENCES person (id), -- who saved it
    created    BIGINT NOT NULL,
    PRIMARY KEY (flow_id, number)
);

-- What the run of a flow made and cost, written once when it ends. Only the steps that it started itself count, not those that it took
-- over from an earlier run.
ALTER TABLE flow_run ADD COLUMN started BIGINT;                             -- when the first of its steps started
ALTER TABLE flow_run ADD COLUMN results BIGINT NOT NULL DEFAULT 0;          -- results that it delivered, also of steps that it took over
ALTER TABLE flow_run ADD COLUMN tokens_charged BIGINT NOT NULL DEFAULT 0;
ALTER TABLE flow_run ADD COLUMN allowance_used BIGINT NOT NULL DEFAULT 0;

-- Sums over the flows that clients started and that have ended, kept in the transactions that end them. Tokens and times are those of
-- their steps, so a row of report_sum must not be added to a row of this table. Like report_sum, the table does not refer to the company.
CREATE TABLE report_flow (
    company_id     TEXT   NOT NULL,
    slot           BIGINT NOT NULL, -- days since 1970 by the company's clock
    tool_id        TEXT   NOT NULL, -- the flow
    team_id        TEXT   NOT NULL,
    person_id      TEXT   NOT NULL,
    runs           BIGINT NOT NULL,
    succeeded      BIGINT NOT NULL,
    failed         BIGINT NOT NULL,
    cancelled      BIGINT NOT NULL,
    results        BIGINT NOT NULL,
    tokens_charged BIGINT NOT NULL,
    allowance_used BIGINT NOT NULL,
    took_ms        BIGINT NOT NULL, -- from the start of the first step to the end of the flow
    PRIMARY KEY (company_id, slot, tool_id, team_id, person_id)
);
