-- +goose Up

-- River keeps the jobs on PostgreSQL, by its own migrations.
SELECT 1;
