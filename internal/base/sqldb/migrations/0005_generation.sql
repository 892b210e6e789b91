-- +goose Up

-- Tools as they were when runs began with them.
CREATE TABLE tool_version (
    hash       TEXT PRIMARY KEY,
    definition TEXT NOT NULL
);
INSERT INTO tool_version (hash, definition) SELECT hash, min(definition) FROM tool GROUP BY hash;

-- Files: what people brought and what tools made.

CREATE TABLE asset (
    id          TEXT   PRIMARY KEY,
    account_id  TEXT   NOT NULL, -- a person's or a team's id
    type        TEXT   NOT NULL CHECK (type IN ('IMG', 'VID', 'AUDIO', 'ASSET_3D', 'TEXT')),
    mime_type   TEXT   NOT NULL,
    size_bytes  BIGINT NOT NULL CHECK (size_bytes >= 0),
    sha256      TEXT   NOT NULL, -- in hex
    width       BIGINT,
    height      BIGINT,
    duration_ms BIGINT,
    blurhash    TEXT   NOT NULL, -- empty: none
    blob        TEXT   NOT NULL UNIQUE, -- key of the bytes
    thumb       TEXT   NOT NULL, -- key of a small picture of it, empty: none
    preview     TEXT   NOT NULL, -- key of a video's first frame, empty: none
    created     BIGINT NOT NULL,
    gone        BIGINT -- when the bytes were removed
);

CREATE TABLE upload (
    id         TEXT   PRIMARY KEY,
    account_id TEXT   NOT NULL,
    person_id  TEXT   NOT NULL REFERENCES person (id),
    asset_id   TEXT   NOT NULL UNIQUE REFERENCES asset (id),
    name       TEXT   NOT NULL,
    created    BIGINT NOT NULL,
    deleted    BIGINT
);
CREATE INDEX upload_newest ON upload (account_id, created, id) WHERE deleted IS NULL;
CREATE INDEX upload_age ON upload (created) WHERE deleted IS NULL;

-- Runs. The row is the state machine.

CREATE TABLE run (
    id              TEXT    PRIMARY KEY, -- a UUID, the request_id
    library_id      TEXT    NOT NULL UNIQUE, -- the library_run_id
    person_id       TEXT    NOT NULL REFERENCES person (id),
    account_id      TEXT    NOT NULL, -- who pays: the person's or the team's id
    team_id         TEXT    REFERENCES team (id), -- NULL: the personal account
    credential      TEXT    NOT NULL, -- which kind it was
    credential_id   TEXT    NOT NULL, -- the device's or the token's id
    plugin          TEXT    NOT NULL,
    tool_id         TEXT    NOT NULL REFERENCES tool (id),
    tool_hash       TEXT    NOT NULL REFERENCES tool_version (hash),
    engine          TEXT    NOT NULL,
    inputs          TEXT    NOT NULL, -- JSON object, defaults filled in
    prompt          TEXT    NOT NULL,
    seed            BIGINT  NOT NULL,
    num_results     BIGINT  NOT NULL CHECK (num_results >= 1),
    metadata        TEXT    NOT NULL, -- JSON as it came, empty: none
    webhook_url     TEXT    NOT NULL,
    estimated_s     BIGINT,
    poll_s          BIGINT  NOT NULL,

    unit_tokens     BIGINT  NOT NULL CHECK (unit_tokens >= 0), -- of one result
    tokens_held     BIGINT  NOT NULL CHECK (tokens_held >= 0),
    allowance_held  BIGINT  NOT NULL CHECK (allowance_held >= 0),
    allowance_month TEXT    NOT NULL, -- whose allowance that is
    tokens_charged  BIGINT,
    allowance_used  BIGINT,

    status          TEXT    NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed', 'cancelled')),
    stage           TEXT    CHECK (stage IN ('queued', 'running')),
    attempt         BIGINT  NOT NULL, -- who comes with an older one changes nothing
    worker          TEXT    NOT NULL,
    lease_until     BIGINT,
    cancel          BOOLEAN NOT NULL, -- asked for
    progress        BIGINT, -- thousandths
    preview         TEXT    NOT NULL, -- key of the newest, empty: none
    revision        BIGINT  NOT NULL, -- grows with everything that happens to it until it has ended
    error_code      TEXT    NOT NULL,
    error_message   TEXT    NOT NULL,

    created         BIGINT  NOT NULL,
    started         BIGINT,
    finished        BIGINT,

    CHECK ((status = 'pending') = (stage IS NOT NULL)),
    CHECK ((status = 'pending') = (finished IS NULL)),
    CHECK ((status = 'pending') = (tokens_charged IS NULL)),
    CHECK ((status = 'pending') = (allowance_used IS NULL)),
    CHECK ((status = 'failed') = (error_code <> '')),
    CHECK (tokens_charged IS NULL OR tokens_charged BETWEEN 0 AND tokens_held),
    CHECK (allowance_used IS NULL OR allowance_used BETWEEN 0 AND allowance_held),
    CHECK (status = 'succeeded' OR coalesce(tokens_charged, 0) + coalesce(allowance_used, 0) = 0)
);
CREATE INDEX run_person ON run (person_id, created);
CREATE INDEX run_active ON run (person_id) WHERE status = 'pending';
CREATE INDEX run_waiting ON run (engine, person_id, created, id) WHERE stage = 'queued';
CREATE INDEX run_leased ON run (lease_until) WHERE stage = 'running';
CREATE INDEX run_newest ON run (account_id, created, id);
CREATE INDEX run_status ON run (account_id, status, created, id);
CREATE INDEX run_tool ON run (account_id, tool_id, created, id);

-- Whose turn it is: the person served longest ago comes next.
CREATE TABLE run_turn (
    engine    TEXT   NOT NULL,
    person_id TEXT   NOT NULL REFERENCES person (id),
    served    BIGINT NOT NULL,
    waiting   BIGINT NOT NULL CHECK (waiting >= 0), -- queued runs
    PRIMARY KEY (engine, person_id)
);
CREATE INDEX run_turn_next ON run_turn (engine, served, person_id) WHERE waiting > 0;

CREATE TABLE run_attempt (
    run_id  TEXT   NOT NULL REFERENCES run (id),
    attempt BIGINT NOT NULL,
    worker  TEXT   NOT NULL,
    started BIGINT NOT NULL,
    ended   BIGINT,
    outcome TEXT   CHECK (outcome IN ('succeeded', 'failed', 'cancelled', 'lost', 'returned')),
    PRIMARY KEY (run_id, attempt),
    CHECK ((ended IS NULL) = (outcome IS NULL))
);
CREATE UNIQUE INDEX run_attempt_end ON run_attempt (run_id) WHERE outcome IN ('succeeded', 'failed', 'cancelled');

-- Which files a run works on.
CREATE TABLE run_input (
    run_id   TEXT   NOT NULL REFERENCES run (id),
    field    TEXT   NOT NULL,
    place    BIGINT NOT NULL,
    asset_id TEXT   NOT NULL REFERENCES asset (id),
    PRIMARY KEY (run_id, field, place)
);
CREATE INDEX run_input_asset ON run_input (asset_id);

-- When somebody was last told about a pending run.
CREATE TABLE run_poll (
    run_id    TEXT   NOT NULL REFERENCES run (id),
    person_id TEXT   NOT NULL REFERENCES person (id),
    answered  BIGINT NOT NULL,
    PRIMARY KEY (run_id, person_id)
);

CREATE TABLE result (
    id         TEXT   PRIMARY KEY, -- a UUID
    run_id     TEXT   NOT NULL REFERENCES run (id),
    place      BIGINT NOT NULL,
    asset_id   TEXT   NOT NULL UNIQUE REFERENCES asset (id),
    account_id TEXT   NOT NULL,
    tool_id    TEXT   NOT NULL REFERENCES tool (id),
    type       TEXT   NOT NULL,
    shape      TEXT   NOT NULL, -- the nearest common aspect ratio, empty: has none
    resolution TEXT   NOT NULL, -- 1K, 2K or 4K+, empty: has none
    created    BIGINT NOT NULL,
    deleted    BIGINT,
    UNIQUE (run_id, place)
);
CREATE INDEX result_newest ON result (account_id, created, id) WHERE deleted IS NULL AND type <> 'TEXT';
CREATE INDEX result_tool ON result (account_id, tool_id, created, id) WHERE deleted IS NULL AND type <> 'TEXT';
CREATE INDEX result_age ON result (created) WHERE deleted IS NULL;

CREATE TABLE favorite (
    person_id TEXT   NOT NULL REFERENCES person (id),
    result_id TEXT   NOT NULL REFERENCES result (id),
    created   BIGINT NOT NULL,
    PRIMARY KEY (person_id, result_id)
);
CREATE INDEX favorite_result ON favorite (result_id);

-- Answers to creates that came with a key.
CREATE TABLE idempotency (
    person_id   TEXT   NOT NULL REFERENCES person (id),
    key         TEXT   NOT NULL,
    fingerprint TEXT   NOT NULL, -- SHA-256 of the request
    run_id      TEXT   NOT NULL UNIQUE REFERENCES run (id),
    response    TEXT   NOT NULL, -- the body, byte for byte
    created     BIGINT NOT NULL,
    PRIMARY KEY (person_id, key)
);
CREATE INDEX idempotency_age ON idempotency (created);

-- Money.

ALTER TABLE ledger_transaction ADD COLUMN run_id TEXT; -- of a settlement
CREATE UNIQUE INDEX ledger_transaction_run ON ledger_transaction (run_id) WHERE run_id IS NOT NULL;

-- Events.

CREATE TABLE webhook_secret (
    account_id     TEXT   PRIMARY KEY,
    secret         TEXT   NOT NULL, -- sealed
    created        BIGINT NOT NULL,
    previous       TEXT   NOT NULL, -- sealed, empty: none
    previous_until BIGINT
);

CREATE TABLE webhook_event (
    id          TEXT   PRIMARY KEY, -- the webhook-id
    run_id      TEXT   NOT NULL UNIQUE REFERENCES run (id),
    account_id  TEXT   NOT NULL,
    url         TEXT   NOT NULL,
    host        TEXT   NOT NULL,
    state       TEXT   NOT NULL CHECK (state IN ('waiting', 'delivered', 'exhausted', 'gone')),
    attempts    BIGINT NOT NULL, -- those of the schedule that were made
    next_at     BIGINT, -- NULL: nothing more is sent by itself
    lease_until BIGINT, -- somebody is sending
    created     BIGINT NOT NULL,
    CHECK ((state = 'waiting') = (next_at IS NOT NULL))
);
CREATE INDEX webhook_event_due ON webhook_event (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE webhook_attempt (
    id          TEXT   PRIMARY KEY,
    event_id    TEXT   NOT NULL REFERENCES webhook_event (id),
    at          BIGINT NOT NULL,
    status_code BIGINT,
    duration_ms BIGINT NOT NULL,
    error       TEXT   NOT NULL -- a word of ours, empty: none
);
CREATE INDEX webhook_attempt_event ON webhook_attempt (event_id, at, id);

-- Receivers that fail again and again are left alone for a while.
CREATE TABLE webhook_host (
    host       TEXT   PRIMARY KEY,
    failures   BIGINT NOT NULL, -- since the last success
    open_until BIGINT
);
