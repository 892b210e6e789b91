-- +goose Up

-- What a tool says about a result to those who see it. It goes when the result is deleted.
ALTER TABLE result ADD COLUMN note TEXT NOT NULL DEFAULT '';
