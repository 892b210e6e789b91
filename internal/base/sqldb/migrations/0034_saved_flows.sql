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
