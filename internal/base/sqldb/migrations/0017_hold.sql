-- +goose Up

-- Whoever copies the files of an installation keeps them from being swept until then.
CREATE TABLE sweep_hold (
    id    TEXT   PRIMARY KEY,
    until BIGINT NOT NULL
);

-- When a node last said that it has an engine of this name.
CREATE TABLE engine_served (
    engine TEXT   PRIMARY KEY,
    seen   BIGINT NOT NULL
);
