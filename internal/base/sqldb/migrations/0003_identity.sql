-- +goose Up

-- People.

ALTER TABLE person ADD COLUMN suspended BOOLEAN NOT NULL DEFAULT FALSE;
-- Newest sign-in on a device, and the one before it: what was joined since then is new.
ALTER TABLE person ADD COLUMN signed_in BIGINT NOT NULL DEFAULT 0;
ALTER TABLE person ADD COLUMN signed_in_before BIGINT NOT NULL DEFAULT 0;

-- Who a person is at an OpenID provider.
CREATE TABLE person_identity (
    issuer    TEXT   NOT NULL,
    subject   TEXT   NOT NULL,
    person_id TEXT   NOT NULL REFERENCES person (id),
    provider  TEXT   NOT NULL, -- its name in the settings at that time
    refresh   TEXT   NOT NULL, -- the provider's refresh token, sealed; empty where it gave none
    checked   BIGINT NOT NULL, -- when the provider last stood by the person
    asking    BIGINT,          -- until when one node asks it
    created   BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE UNIQUE INDEX person_identity_person ON person_identity (person_id, issuer);

-- Links that work once: verify an address, choose a new password, drop a device.
CREATE TABLE person_link (
    hash      TEXT   PRIMARY KEY, -- SHA-256 of the link's secret
    kind      TEXT   NOT NULL,
    person_id TEXT   NOT NULL REFERENCES person (id),
    target    TEXT   NOT NULL, -- the address to verify, the device to drop
    created   BIGINT NOT NULL,
    expires   BIGINT NOT NULL
);
CREATE INDEX person_link_person ON person_link (person_id, kind);
CREATE INDEX person_link_expires ON person_link (expires);

-- What a person was told about their account.
CREATE TABLE person_notice (
    id        TEXT   PRIMARY KEY,
    person_id TEXT   NOT NULL REFERENCES person (id),
    kind      TEXT   NOT NULL,
    text      TEXT   NOT NULL,
    created   BIGINT NOT NULL
);
CREATE INDEX person_notice_newest ON person_notice (person_id, created, id);

-- Browsers that are signed in.
CREATE TABLE web_session (
    id        TEXT   PRIMARY KEY,
    hash      TEXT   NOT NULL UNIQUE, -- SHA-256 of the cookie
    person_id TEXT   NOT NULL REFERENCES person (id),
    provider  TEXT   NOT NULL, -- how the person signed in: password or the provider's name
    agent     TEXT   NOT NULL,
    address   TEXT   NOT NULL,
    created   BIGINT NOT NULL,
    last_used BIGINT NOT NULL,
    expires   BIGINT NOT NULL
);
CREATE INDEX web_session_person ON web_session (person_id);
CREATE INDEX web_session_expires ON web_session (expires);

-- Companies and teams.

CREATE TABLE company (
    id      TEXT   PRIMARY KEY,
    name    TEXT   NOT NULL,
    plan    TEXT   NOT NULL CHECK (plan IN ('TEAM', 'ENTERPRISE')),
    created BIGINT NOT NULL
);

CREATE TABLE company_role (
    company_id  TEXT NOT NULL REFERENCES company (id),
    name        TEXT NOT NULL,
    permissions TEXT NOT NULL, -- JSON list of names, sorted
    PRIMARY KEY (company_id, name)
);

CREATE TABLE company_member (
    company_id TEXT   NOT NULL,
    person_id  TEXT   NOT NULL REFERENCES person (id),
    role       TEXT   NOT NULL,
    created    BIGINT NOT NULL,
    PRIMARY KEY (company_id, person_id),
    FOREIGN KEY (company_id, role) REFERENCES company_role (company_id, name)
);
CREATE INDEX company_member_person ON company_member (person_id);
CREATE INDEX company_member_role ON company_member (company_id, role);

CREATE TABLE team (
    id         TEXT    PRIMARY KEY,
    company_id TEXT    NOT NULL REFERENCES company (id),
    name       TEXT    NOT NULL,
    removed    BOOLEAN NOT NULL,
    created    BIGINT  NOT NULL
);
CREATE INDEX team_company ON team (company_id, name, id);

CREATE TABLE team_role (
    team_id        TEXT   NOT NULL REFERENCES team (id),
    name           TEXT   NOT NULL,
    permissions    TEXT   NOT NULL, -- JSON list of names, sorted
    tools_allowed  TEXT   NOT NULL, -- JSON list of tool ids; empty list: all
    tools_blocked  TEXT   NOT NULL, -- JSON list of tool ids
    plugin_kinds   TEXT   NOT NULL, -- JSON list; ["*"]: all
    spend_tokens   BIGINT,          -- at most so many in any window; NULL: no limit
    spend_seconds  BIGINT,
    PRIMARY KEY (team_id, name)
);

CREATE TABLE team_member (
    team_id   TEXT   NOT NULL,
    person_id TEXT   NOT NULL REFERENCES person (id),
    role      TEXT   NOT NULL,
    how       TEXT   NOT NULL CHECK (how IN ('added', 'invitation', 'domain')),
    joined    BIGINT NOT NULL,
    PRIMARY KEY (team_id, person_id),
    FOREIGN KEY (team_id, role) REFERENCES team_role (team_id, name)
);
CREATE INDEX team_member_person ON team_member (person_id);
CREATE INDEX team_member_role ON team_member (team_id, role);

CREATE TABLE invitation (
    id           TEXT   PRIMARY KEY,
    hash         TEXT   NOT NULL UNIQUE, -- SHA-256 of the link's secret
    company_id   TEXT   NOT NULL REFERENCES company (id),
    company_role TEXT   NOT NULL,
    team_id      TEXT   REFERENCES team (id), -- NULL: the company only
    team_role    TEXT   NOT NULL,
    email        TEXT   NOT NULL, -- empty: whoever has the link
    email_key    TEXT   NOT NULL,
    uses_left    BIGINT NOT NULL CHECK (uses_left >= 0),
    invited_by   TEXT   NOT NULL, -- a person's id, empty for the operator
    created      BIGINT NOT NULL,
    expires      BIGINT NOT NULL
);
CREATE INDEX invitation_company ON invitation (company_id, created, id);
CREATE INDEX invitation_email ON invitation (email_key);
CREATE INDEX invitation_expires ON invitation (expires);

-- Mail domains whose people join by themselves once the company proved that it owns them.
CREATE TABLE company_domain (
    company_id TEXT   NOT NULL REFERENCES company (id),
    domain     TEXT   NOT NULL,
    proof      TEXT   NOT NULL, -- what the DNS record must say
    verified   BIGINT,
    team_id    TEXT   REFERENCES team (id), -- NULL: the company only
    team_role  TEXT   NOT NULL,
    created    BIGINT NOT NULL,
    PRIMARY KEY (company_id, domain)
);
CREATE UNIQUE INDEX company_domain_owner ON company_domain (domain) WHERE verified IS NOT NULL;

-- Credentials.

ALTER TABLE access_token ADD COLUMN company_id TEXT REFERENCES company (id); -- NULL: personal
ALTER TABLE access_token ADD COLUMN minted_by TEXT NOT NULL DEFAULT ''; -- a person's id, empty for the operator
ALTER TABLE access_token ADD COLUMN last_used BIGINT;
CREATE INDEX access_token_company ON access_token (company_id, created, id);

CREATE TABLE signing_key (
    id       TEXT   PRIMARY KEY, -- the kid
    public   TEXT   NOT NULL,    -- JWK
    private  TEXT   NOT NULL,    -- sealed
    created  BIGINT NOT NULL,
    replaced BIGINT              -- NULL: the one that signs
);
CREATE UNIQUE INDEX signing_key_current ON signing_key ((1)) WHERE replaced IS NULL;

CREATE TABLE device (
    id           TEXT   PRIMARY KEY,
    person_id    TEXT   NOT NULL REFERENCES person (id),
    plugin_kind  TEXT   NOT NULL, -- empty where it did not say
    agent        TEXT   NOT NULL,
    address      TEXT   NOT NULL, -- where it was last seen
    provider     TEXT   NOT NULL, -- how the person who approved it had signed in
    created      BIGINT NOT NULL,
    last_used    BIGINT NOT NULL,
    revoked      BIGINT,
    revoked_why  TEXT   NOT NULL
);
CREATE INDEX device_person ON device (person_id, created, id);

CREATE TABLE device_grant (
    id          TEXT    PRIMARY KEY,
    device_hash TEXT    NOT NULL UNIQUE, -- SHA-256 of the device code
    user_hash   TEXT    NOT NULL,        -- keyed: the user code alone could be guessed
    state       TEXT    NOT NULL CHECK (state IN ('pending', 'approved', 'claimed', 'gone')),
    plugin_kind TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    address     TEXT    NOT NULL,
    person_id   TEXT    REFERENCES person (id), -- who approved
    provider    TEXT    NOT NULL,
    seen_by     TEXT    NOT NULL, -- the first person who opened it
    locked      BOOLEAN NOT NULL, -- a second person opened it: nobody may approve
    wrong       BIGINT  NOT NULL, -- failed confirmations
    wait_ms     BIGINT  NOT NULL, -- what the server enforces between polls
    told_s      BIGINT  NOT NULL, -- what the client was told
    polled      BIGINT,
    device_id   TEXT    REFERENCES device (id),
    claimed     BIGINT,
    created     BIGINT  NOT NULL,
    expires     BIGINT  NOT NULL
);
CREATE UNIQUE INDEX device_grant_user ON device_grant (user_hash) WHERE state IN ('pending', 'approved');
CREATE INDEX device_grant_expires ON device_grant (expires);
CREATE INDEX device_grant_person ON device_grant (person_id) WHERE person_id IS NOT NULL;
CREATE UNIQUE INDEX device_grant_device ON device_grant (device_id) WHERE device_id IS NOT NULL;

CREATE TABLE refresh_token (
    hash       TEXT   PRIMARY KEY, -- SHA-256 of the token
    device_id  TEXT   NOT NULL REFERENCES device (id),
    generation BIGINT NOT NULL,
    created    BIGINT NOT NULL,
    replaced   BIGINT, -- NULL: the live one
    UNIQUE (device_id, generation)
);
CREATE UNIQUE INDEX refresh_token_live ON refresh_token (device_id) WHERE replaced IS NULL;

-- What happened how often lately, for limits that hold on all nodes together.

CREATE TABLE rate_key (
    key  TEXT   PRIMARY KEY,
    last BIGINT NOT NULL
);
CREATE INDEX rate_key_last ON rate_key (last);

CREATE TABLE rate_log (
    id  TEXT   PRIMARY KEY,
    key TEXT   NOT NULL,
    at  BIGINT NOT NULL
);
CREATE INDEX rate_log_key ON rate_log (key, at);
CREATE INDEX rate_log_at ON rate_log (at);

-- Money: every transaction has two sides that sum to zero.

CREATE TABLE ledger_account (
    id              TEXT   PRIMARY KEY, -- a person's or a team's id, or system:NAME
    posted          BIGINT NOT NULL,
    held            BIGINT NOT NULL CHECK (held >= 0),
    allowance_month TEXT   NOT NULL, -- 2026-11
    allowance_used  BIGINT NOT NULL CHECK (allowance_used >= 0), -- in that month
    topped_up       BIGINT, -- newest free top-up
    CHECK (id LIKE 'system:%' OR posted - held >= 0)
);

CREATE TABLE ledger_transaction (
    id      TEXT   PRIMARY KEY,
    kind    TEXT   NOT NULL,
    note    TEXT   NOT NULL,
    created BIGINT NOT NULL
);

CREATE TABLE ledger_entry (
    transaction_id TEXT   NOT NULL REFERENCES ledger_transaction (id),
    account_id     TEXT   NOT NULL REFERENCES ledger_account (id),
    amount         BIGINT NOT NULL,
    PRIMARY KEY (transaction_id, account_id)
);
CREATE INDEX ledger_entry_account ON ledger_entry (account_id);

-- What was done that matters for security, each row sealed to the one before.

CREATE TABLE audit (
    seq        BIGINT PRIMARY KEY,
    at         BIGINT NOT NULL,
    act        TEXT   NOT NULL,
    actor_id   TEXT   NOT NULL, -- a person's id, empty for the operator and for strangers
    person_id  TEXT   NOT NULL, -- whom it concerns, empty for nobody
    company_id TEXT   NOT NULL, -- whose admins may read it, empty for the operator only
    address    TEXT   NOT NULL,
    details    TEXT   NOT NULL, -- JSON object of texts
    hash       TEXT   NOT NULL
);
CREATE INDEX audit_company ON audit (company_id, seq);
CREATE INDEX audit_person ON audit (person_id, seq);

-- One row: the newest seal.
CREATE TABLE audit_head (
    id   BIGINT PRIMARY KEY CHECK (id = 1),
    seq  BIGINT NOT NULL,
    hash TEXT   NOT NULL
);
INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, '');
