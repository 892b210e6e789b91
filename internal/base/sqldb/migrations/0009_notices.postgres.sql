-- +goose Up

-- Events that are not about a run: their body is made when they happen.
ALTER TABLE webhook_event ALTER COLUMN run_id DROP NOT NULL;
ALTER TABLE webhook_event ADD COLUMN body TEXT NOT NULL DEFAULT '';
ALTER TABLE webhook_event ADD CONSTRAINT webhook_event_about CHECK ((run_id IS NULL) = (body <> ''));

-- What a person wrote with their runs can be erased with them, and not be changed otherwise.
DROP TRIGGER run_final ON run;
CREATE TRIGGER run_final BEFORE UPDATE OF status, tokens_charged, allowance_used, error_code, error_message, started, finished, num_results, results, seed, company_id ON run
    FOR EACH ROW WHEN (OLD.status <> 'pending') EXECUTE FUNCTION run_is_final();
CREATE TRIGGER run_metadata_final BEFORE UPDATE OF metadata ON run
    FOR EACH ROW WHEN (OLD.status <> 'pending' AND NEW.metadata <> '') EXECUTE FUNCTION run_is_final();
