-- +goose Up

-- Certificates obtained by ACME, the account key, and challenges that are going on.
CREATE TABLE certificate (
    name    TEXT   PRIMARY KEY, -- the authority's directory and what autocert calls it
    sealed  TEXT   NOT NULL,
    changed BIGINT NOT NULL
);

-- Which certificates a node is obtaining right now.
CREATE TABLE certificate_claim (
    name  TEXT   PRIMARY KEY,
    until BIGINT NOT NULL
);
