-- +goose Up

CREATE TABLE person (
    id             TEXT    PRIMARY KEY,
    email          TEXT    NOT NULL,
    email_key      TEXT    NOT NULL UNIQUE, -- the address as it is compared
    email_verified BOOLEAN NOT NULL,
    password_hash  TEXT    NOT NULL,
    created        BIGINT  NOT NULL
);

CREATE TABLE access_token (
    id        TEXT   PRIMARY KEY,
    person_id TEXT   NOT NULL REFERENCES person (id),
    name      TEXT   NOT NULL,
    hash      TEXT   NOT NULL UNIQUE, -- SHA-256 of the token; the token itself is not kept
    hint      TEXT   NOT NULL,
    created   BIGINT NOT NULL
);
CREATE INDEX access_token_person ON access_token (person_id);

-- Facts about this installation that every node must agree on.
CREATE TABLE deployment (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE tool (
    id         TEXT    PRIMARY KEY,
    slug       TEXT    NOT NULL UNIQUE,
    source     TEXT    NOT NULL CHECK (source IN ('builtin', 'directory')),
    definition TEXT    NOT NULL, -- canonical JSON, what the hash is made of
    hash       TEXT    NOT NULL,
    removed    BOOLEAN NOT NULL,
    average_ms BIGINT, -- for one result; NULL before the first run
    created    BIGINT  NOT NULL,
    updated    BIGINT  NOT NULL
);

CREATE TABLE tool_tag (
    id         TEXT    PRIMARY KEY,
    slug       TEXT    NOT NULL UNIQUE,
    source     TEXT    NOT NULL CHECK (source IN ('builtin', 'directory')),
    definition TEXT    NOT NULL,
    removed    BOOLEAN NOT NULL
);

CREATE TABLE kit (
    id         TEXT    PRIMARY KEY,
    slug       TEXT    NOT NULL UNIQUE,
    source     TEXT    NOT NULL CHECK (source IN ('builtin', 'directory')),
    definition TEXT    NOT NULL,
    removed    BOOLEAN NOT NULL
);

-- One row: goes up with every change of the three tables above.
CREATE TABLE catalog (
    id      BIGINT PRIMARY KEY CHECK (id = 1),
    version BIGINT NOT NULL
);
INSERT INTO catalog (id, version) VALUES (1, 0);

-- How long finished runs took, newest few per tool.
CREATE TABLE tool_duration (
    id            TEXT   PRIMARY KEY,
    tool_id       TEXT   NOT NULL REFERENCES tool (id),
    ms_per_result BIGINT NOT NULL CHECK (ms_per_result >= 0),
    finished      BIGINT NOT NULL
);
CREATE INDEX tool_duration_newest ON tool_duration (tool_id, finished, id);
