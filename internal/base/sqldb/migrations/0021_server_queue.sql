-- +goose Up

-- The position of a claimed run in the queue of its model server, 0 if the position is unknown. NULL while the run does
-- not wait there. Releases before this one ignore the column and show such a run as running.
ALTER TABLE run ADD COLUMN server_position BIGINT;
