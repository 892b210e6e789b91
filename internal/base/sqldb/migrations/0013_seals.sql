-- +goose Up

-- Keyed hashes of rows, by which "atelier check" and "atelier admin audit verify" notice changes that the program did not
-- make. Empty: written before there were seals, and sealed at the next start.
ALTER TABLE audit ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_head ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE ledger_transaction ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE result ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE asset ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE upload ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE person ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE access_token ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE scim_token ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE device ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE refresh_token ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE signing_key ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE webhook_secret ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE company ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE company_role ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE company_member ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE company_domain ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE invitation ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE team_role ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE team_member ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE budget ADD COLUMN seal TEXT NOT NULL DEFAULT '';
