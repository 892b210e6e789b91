-- +goose Up

-- Boards: what accounts pin down and arrange.

CREATE TABLE board (
    id         TEXT   PRIMARY KEY,
    account_id TEXT   NOT NULL, -- a person's or a team's id
    person_id  TEXT   NOT NULL REFERENCES person (id), -- who made it
    name       TEXT   NOT NULL,
    revision   BIGINT NOT NULL CHECK (revision >= 1), -- grows with every change of the board and of its nodes
    nodes      BIGINT NOT NULL CHECK (nodes BETWEEN 0 AND 5000),
    forgotten  BIGINT NOT NULL, -- which nodes were deleted at this revision or before is no longer known
    created    BIGINT NOT NULL,
    updated    BIGINT NOT NULL,
    deleted    BIGINT
);
CREATE INDEX board_newest ON board (account_id, created, id) WHERE deleted IS NULL;
CREATE INDEX board_deleted ON board (account_id, created, id) WHERE deleted IS NOT NULL;
CREATE INDEX board_age ON board (deleted) WHERE deleted IS NOT NULL;
CREATE INDEX board_account ON board (account_id, id); -- for who erases all of them

CREATE TABLE board_node (
    board_id TEXT   NOT NULL REFERENCES board (id),
    id       TEXT   NOT NULL,
    kind     TEXT   NOT NULL CHECK (kind IN ('LIBRARY_REF', 'UPLOAD_REF', 'TEXT', 'GENERATION')),
    ref      TEXT   NOT NULL, -- empty for texts
    text     TEXT   NOT NULL,
    x        DOUBLE PRECISION NOT NULL,
    y        DOUBLE PRECISION NOT NULL,
    width    DOUBLE PRECISION NOT NULL,
    height   DOUBLE PRECISION NOT NULL,
    z        BIGINT NOT NULL,
    revision BIGINT NOT NULL, -- the board's, when the node was last changed
    created  BIGINT NOT NULL,
    deleted  BIGINT, -- such rows stay for a while, for those who follow the board
    PRIMARY KEY (board_id, id)
);
CREATE INDEX board_node_order ON board_node (board_id, created, id) WHERE deleted IS NULL;
CREATE INDEX board_node_changed ON board_node (board_id, revision);
CREATE INDEX board_node_top ON board_node (board_id, z) WHERE deleted IS NULL;
CREATE INDEX board_node_age ON board_node (deleted) WHERE deleted IS NOT NULL;
CREATE INDEX board_node_gone ON board_node (board_id, revision) WHERE deleted IS NOT NULL;

-- What companies use.

-- It does not refer to the company: a run that begins would wait for whoever changes the company, who may wait for the clock
-- below, as do those who end runs.
ALTER TABLE run ADD COLUMN company_id TEXT; -- of the team; NULL: a personal account
ALTER TABLE run ADD COLUMN results BIGINT NOT NULL DEFAULT 0; -- how many it made
UPDATE run SET company_id = (SELECT t.company_id FROM team t WHERE t.id = run.team_id), results = (SELECT count(*) FROM result s WHERE s.run_id = run.id)
WHERE team_id IS NOT NULL OR status = 'succeeded'; -- at once: every row is written anew
CREATE INDEX run_company ON run (company_id, finished, id) WHERE company_id IS NOT NULL AND finished IS NOT NULL;

-- By which clock a company counts its days. Whoever adds to the sums below holds this row. Neither table refers to the
-- company: a run that ends would wait for whoever changes the company, who may wait for the clock.
CREATE TABLE report_zone (
    company_id TEXT PRIMARY KEY,
    zone       TEXT NOT NULL -- as in Europe/Paris
);

-- Sums over runs that have ended, kept in the transactions that end them. Every run is counted once in each grain: with
-- all that the rows can tell, with one thing beside the day, with the day alone, and by the quarter of an hour.
CREATE TABLE report_sum (
    company_id     TEXT   NOT NULL,
    grain          TEXT   NOT NULL CHECK (grain IN ('all', 'team', 'person', 'tool', 'plugin', 'credential', 'day', 'quarter')),
    slot           BIGINT NOT NULL, -- days since 1970 by the company's clock; of the grain quarter, quarters of an hour
    team_id        TEXT   NOT NULL, -- this and the next five are empty where the grain does not tell
    person_id      TEXT   NOT NULL,
    tool_id        TEXT   NOT NULL,
    plugin         TEXT   NOT NULL,
    credential     TEXT   NOT NULL, -- its kind
    credential_id  TEXT   NOT NULL,
    runs           BIGINT NOT NULL,
    succeeded      BIGINT NOT NULL,
    failed         BIGINT NOT NULL,
    cancelled      BIGINT NOT NULL,
    results        BIGINT NOT NULL,
    tokens_charged BIGINT NOT NULL,
    allowance_used BIGINT NOT NULL,
    took_ms        BIGINT NOT NULL, -- from the start of runs to their end
    PRIMARY KEY (company_id, grain, slot, team_id, person_id, tool_id, plugin, credential, credential_id)
);

INSERT INTO report_zone (company_id, zone) SELECT id, 'UTC' FROM company;

INSERT INTO report_sum
SELECT company_id, 'all', finished / 86400000000, team_id, person_id, tool_id, plugin, credential, credential_id,
    count(*), sum(CASE status WHEN 'succeeded' THEN 1 ELSE 0 END), sum(CASE status WHEN 'failed' THEN 1 ELSE 0 END), sum(CASE status WHEN 'cancelled' THEN 1 ELSE 0 END),
    sum(results), sum(tokens_charged), sum(allowance_used), sum((finished - coalesce(started, finished)) / 1000)
FROM run WHERE company_id IS NOT NULL AND finished IS NOT NULL
GROUP BY company_id, finished / 86400000000, team_id, person_id, tool_id, plugin, credential, credential_id;

INSERT INTO report_sum
SELECT company_id, 'quarter', finished / 900000000, '', '', '', '', '', '',
    count(*), sum(CASE status WHEN 'succeeded' THEN 1 ELSE 0 END), sum(CASE status WHEN 'failed' THEN 1 ELSE 0 END), sum(CASE status WHEN 'cancelled' THEN 1 ELSE 0 END),
    sum(results), sum(tokens_charged), sum(allowance_used), sum((finished - coalesce(started, finished)) / 1000)
FROM run WHERE company_id IS NOT NULL AND finished IS NOT NULL
GROUP BY company_id, finished / 900000000;

-- The other grains are coarser views of the first.
CREATE TABLE report_coarse (grain TEXT NOT NULL);
INSERT INTO report_coarse (grain) VALUES ('team'), ('person'), ('tool'), ('plugin'), ('credential'), ('day');
INSERT INTO report_sum
SELECT company_id, g, slot, team_id, person_id, tool_id, plugin, credential, credential_id,
    sum(runs), sum(succeeded), sum(failed), sum(cancelled), sum(results), sum(tokens_charged), sum(allowance_used), sum(took_ms)
FROM (
    SELECT s.company_id, c.grain AS g, s.slot,
        CASE c.grain WHEN 'team' THEN s.team_id ELSE '' END AS team_id,
        CASE c.grain WHEN 'person' THEN s.person_id ELSE '' END AS person_id,
        CASE c.grain WHEN 'tool' THEN s.tool_id ELSE '' END AS tool_id,
        CASE c.grain WHEN 'plugin' THEN s.plugin ELSE '' END AS plugin,
        CASE c.grain WHEN 'credential' THEN s.credential ELSE '' END AS credential,
        CASE c.grain WHEN 'credential' THEN s.credential_id ELSE '' END AS credential_id,
        s.runs, s.succeeded, s.failed, s.cancelled, s.results, s.tokens_charged, s.allowance_used, s.took_ms
    FROM report_sum s CROSS JOIN report_coarse c WHERE s.grain = 'all') AS coarse
GROUP BY company_id, g, slot, team_id, person_id, tool_id, plugin, credential, credential_id;
DROP TABLE report_coarse;

-- What teams plan to spend in a month.
CREATE TABLE budget (
    team_id     TEXT    PRIMARY KEY REFERENCES team (id),
    tokens      BIGINT  NOT NULL CHECK (tokens > 0), -- in a calendar month by the company's clock
    hard        BOOLEAN NOT NULL, -- what goes beyond is refused
    webhook_url TEXT    NOT NULL, -- hears of alerts, empty: nobody
    month       TEXT    NOT NULL, -- 2026-11: which one told speaks of
    told        BIGINT  NOT NULL CHECK (told IN (0, 50, 80, 100)), -- the highest part, in percent, that people were told of
    created     BIGINT  NOT NULL,
    updated     BIGINT  NOT NULL
);

-- People who are no more. The row stays for what refers to it, and says nothing else.
ALTER TABLE person ADD COLUMN deleted BIGINT;

-- What is kept about a person is found by its account or its person, whatever its state.
CREATE INDEX upload_account ON upload (account_id, id);
CREATE INDEX audit_actor ON audit (actor_id, seq);
DROP INDEX ledger_entry_account;
CREATE INDEX ledger_entry_account ON ledger_entry (account_id, transaction_id);

-- People and teams that a company's own directory manages (SCIM).

CREATE TABLE scim_token (
    company_id TEXT   PRIMARY KEY REFERENCES company (id),
    hash       TEXT   NOT NULL UNIQUE, -- SHA-256 of the token
    hint       TEXT   NOT NULL,
    made_by    TEXT   NOT NULL, -- a person's id, empty for the operator
    created    BIGINT NOT NULL,
    last_used  BIGINT
);

CREATE TABLE scim_user (
    company_id  TEXT    NOT NULL REFERENCES company (id),
    person_id   TEXT    NOT NULL REFERENCES person (id),
    external_id TEXT    NOT NULL, -- empty: none
    active      BOOLEAN NOT NULL, -- who is not is no member, and comes back as they were
    role        TEXT    NOT NULL, -- which role somebody comes back to who is not active; empty: none
    attributes  TEXT    NOT NULL, -- JSON: what the directory says about them and we only keep
    created     BIGINT  NOT NULL,
    updated     BIGINT  NOT NULL,
    PRIMARY KEY (company_id, person_id)
);
CREATE INDEX scim_user_person ON scim_user (person_id);
CREATE INDEX scim_user_external ON scim_user (company_id, external_id) WHERE external_id <> '';

-- The places in teams of people who are not active, for when they come back.
CREATE TABLE scim_seat (
    team_id   TEXT NOT NULL REFERENCES team (id),
    person_id TEXT NOT NULL REFERENCES person (id),
    role      TEXT NOT NULL, -- may be gone by then
    PRIMARY KEY (team_id, person_id)
);
CREATE INDEX scim_seat_person ON scim_seat (person_id);

CREATE TABLE scim_group (
    team_id     TEXT   PRIMARY KEY REFERENCES team (id),
    company_id  TEXT   NOT NULL REFERENCES company (id), -- the team's
    external_id TEXT   NOT NULL, -- empty: none
    updated     BIGINT NOT NULL
);
CREATE INDEX scim_group_external ON scim_group (company_id, external_id) WHERE external_id <> '';
