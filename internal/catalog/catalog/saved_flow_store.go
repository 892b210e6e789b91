package catalog

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/sqldb"
)

const flowColumns = `f.id, f.account_id, coalesce(f.company_id, ''), f.person_id, f.name, f.version, f.created, f.updated, t.slug, t.hash, t.definition`

func scanFlow(r sqldb.Scanner) (f SavedFlow, err error) {
	var created, updated sqldb.Time
	err = r.Scan(&f.ID, &f.AccountID, &f.CompanyID, &f.PersonID, &f.Name, &f.Version, &created, &updated, &f.Slug, &f.Hash, &f.pinned)
	f.Created = created.Time
	f.Updated = updated.Time
	f.Definition = withoutPins(f.pinned)
	return f, err
}

// readFlowTools returns the tools of the flows that an account can use, without
// their definitions. companyID is "" if the account belongs to no company.
func readFlowTools(ctx context.Context, db *sqldb.DB, accountID, companyID string) (all []row, err error) {
	err = db.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(ctx, tx, `
			SELECT t.id, t.slug, t.hash, coalesce(t.average_ms, 0), coalesce(t.recent_ms, 0), f.created, f.updated FROM saved_flow f JOIN tool t ON t.id = f.id
			WHERE f.deleted IS NULL AND (f.account_id = $1 OR f.company_id = $2) ORDER BY f.id`, []any{accountID, companyID},
			func(s sqldb.Scanner) (r row, err error) {
				var average, recent int64
				var created, updated sqldb.Time
				err = s.Scan(&r.id, &r.slug, &r.hash, &average, &recent, &created, &updated)
				r.average = time.Duration(average) * time.Millisecond
				r.recent = time.Duration(recent) * time.Millisecond
				r.created = created.Time
				r.updated = updated.Time
				return r, err
			})
		return err
	})
	return all, err
}

// ListFlows returns the flows that were saved for an account, and those that
// are shared with its company, oldest first. companyID is "" if the account
// belongs to no company.
func ListFlows(ctx context.Context, tx *sqldb.Tx, accountID, companyID string) ([]SavedFlow, error) {
	const from = `SELECT ` + flowColumns + ` FROM saved_flow f JOIN tool t ON t.id = f.id WHERE f.deleted IS NULL AND `
	own, err := sqldb.All(ctx, tx, from+`f.account_id = $1 ORDER BY f.created, f.id`, []any{accountID}, scanFlow)
	if err != nil || companyID == "" {
		return own, err
	}
	shared, err := sqldb.All(ctx, tx, from+`f.company_id = $1 AND f.account_id <> $2 ORDER BY f.created, f.id`, []any{companyID, accountID}, scanFlow)
	return append(own, shared...), err
}

// CountFlows returns how many other flows were saved for the account of a flow,
// and how many are shared with its company.
func CountFlows(ctx context.Context, tx *sqldb.Tx, f SavedFlow) (own, shared int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM saved_flow WHERE account_id = $1 AND id <> $3 AND deleted IS NULL),
			(SELECT count(*) FROM saved_flow WHERE company_id = $2 AND id <> $3 AND deleted IS NULL)`, f.AccountID, f.CompanyID, f.ID).Scan(&own, &shared)
	return own, shared, err
}

// FlowByID returns a saved flow of any account. ok is false if there is none.
func FlowByID(ctx context.Context, tx *sqldb.Tx, id string) (f SavedFlow, ok bool, err error) {
	f, err = scanFlow(tx.QueryRow(ctx, `SELECT `+flowColumns+` FROM saved_flow f JOIN tool t ON t.id = f.id WHERE f.id = $1 AND f.deleted IS NULL`, id))
	if errors.Is(err, sqldb.ErrNoRows) {
		return SavedFlow{}, false, nil
	}
	return f, err == nil, err
}

// FlowVersions returns the saved versions of a flow, newest first.
func FlowVersions(ctx context.Context, tx *sqldb.Tx, id string) ([]FlowVersion, error) {
	return sqldb.All(ctx, tx, `SELECT number, definition, person_id, created FROM saved_flow_version WHERE flow_id = $1 ORDER BY number DESC`, []any{id},
		func(r sqldb.Scanner) (v FlowVersion, err error) {
			var created sqldb.Time
			err = r.Scan(&v.Number, &v.Definition, &v.PersonID, &created)
			v.Created = created.Time
			return v, err
		})
}

// FlowNames returns the names of saved flows by id, also of deleted ones.
func FlowNames(ctx context.Context, tx *sqldb.Tx, toolIDs []string) (map[string]string, error) {
	if len(toolIDs) == 0 {
		return nil, nil
	}
	in, args := sqldb.In(toolIDs)
	return sqldb.Map[string, string](ctx, tx, `SELECT id, name FROM saved_flow WHERE id IN `+in, args)
}

func insertFlow(ctx context.Context, tx *sqldb.Tx, f SavedFlow) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO saved_flow (id, account_id, company_id, person_id, name, version, created, updated) VALUES ($1, $2, nullif($3, ''), $4, $5, $6, $7, $7)`,
		f.ID, f.AccountID, f.CompanyID, f.PersonID, f.Name, f.Version, sqldb.At(tx.Now))
	return err
}

func updateFlow(ctx context.Context, tx *sqldb.Tx, f SavedFlow) (bool, error) {
	return sqldb.Changed(ctx, tx, `
		UPDATE saved_flow SET name = $3, company_id = nullif($4, ''), version = version + 1, updated = $5 WHERE id = $1 AND version = $2 AND deleted IS NULL`,
		f.ID, f.Version, f.Name, f.CompanyID, sqldb.At(tx.Now))
}

func deleteFlow(ctx context.Context, tx *sqldb.Tx, id string) (bool, error) {
	return sqldb.Changed(ctx, tx, `UPDATE saved_flow SET deleted = $2 WHERE id = $1 AND deleted IS NULL`, id, sqldb.At(tx.Now))
}

// insertFlowVersion adds a version, and deletes the oldest if there are more
// than MaxFlowVersions.
func insertFlowVersion(ctx context.Context, tx *sqldb.Tx, id string, v FlowVersion) error {
	_, err := tx.Exec(ctx, `INSERT INTO saved_flow_version (flow_id, number, definition, person_id, created) VALUES ($1, $2, $3, $4, $5)`,
		id, v.Number, v.Definition, v.PersonID, sqldb.At(tx.Now))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM saved_flow_version WHERE flow_id = $1 AND number <= $2`, id, v.Number-MaxFlowVersions)
	return err
}

// erasedFlow replaces the definitions of erased flows.
const erasedFlow = `{"engine":{"name":"flow","with":{"steps":[{"id":"erased","tool":"erased"}]}},"fields":[],"name":"Deleted flow","output":{"mime_types":["image/png"],"type":"IMG"}}`

// EraseFlows deletes the flows of an account and everything that people wrote in
// them. It locks the catalog like RemoveFlow.
func EraseFlows(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	if err := Lock(ctx, tx); err != nil {
		return err
	}
	const ofAccount = `(SELECT id FROM saved_flow WHERE account_id = $1)`
	if _, err := tx.Exec(ctx, `UPDATE tool_version SET definition = $2 WHERE saved_flow_id IN `+ofAccount, accountID, erasedFlow); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE tool SET definition = $2, removed = TRUE WHERE id IN `+ofAccount, accountID, erasedFlow); err != nil {
		return err
	}
	for _, table := range []string{"saved_flow_version", "saved_flow_tool"} {
		if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE flow_id IN `+ofAccount, accountID); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `UPDATE saved_flow SET name = 'Deleted flow', deleted = coalesce(deleted, $2) WHERE account_id = $1`, accountID, sqldb.At(tx.Now))
	return err
}

// readRowsBySlug returns the tools with the given slugs, without removed ones.
func readRowsBySlug(ctx context.Context, tx *sqldb.Tx, slugs []string) (map[string]row, error) {
	in, args := sqldb.In(slugs)
	all := map[string]row{}
	err := tx.EachRow(ctx, `SELECT id, slug, source, definition, hash, saved FROM tool WHERE NOT removed AND slug IN `+in, args, func(s sqldb.Scanner) error {
		r, err := scanSavedTool(s)
		all[r.slug] = r
		return err
	})
	return all, err
}

// readFlowsUsing returns the saved flows that name one of the tools.
func readFlowsUsing(ctx context.Context, tx *sqldb.Tx, slugs []string) ([]row, error) {
	in, args := sqldb.In(slugs)
	return sqldb.All(ctx, tx, `
		SELECT DISTINCT t.id, t.slug, t.source, t.definition, t.hash, t.saved FROM saved_flow_tool u JOIN tool t ON t.id = u.flow_id
		WHERE NOT t.removed AND u.slug IN `+in+` ORDER BY t.slug`, args, scanSavedTool)
}

func scanSavedTool(s sqldb.Scanner) (r row, err error) {
	err = s.Scan(&r.id, &r.slug, &r.source, &r.definition, &r.hash, &r.saved)
	return r, err
}

// replaceFlowTools stores which tools a saved flow names.
func replaceFlowTools(ctx context.Context, tx *sqldb.Tx, id string, slugs []string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM saved_flow_tool WHERE flow_id = $1`, id); err != nil {
		return err
	}
	for _, slug := range slugs {
		if _, err := tx.Exec(ctx, `INSERT INTO saved_flow_tool (slug, flow_id) VALUES ($1, $2)`, slug, id); err != nil {
			return err
		}
	}
	return nil
}

// findToolID returns the id of the tool with a slug, or "" if there is none.
func findToolID(ctx context.Context, db *sqldb.DB, slug string) (id string, err error) {
	err = db.QueryRow(ctx, `SELECT id FROM tool WHERE slug = $1`, slug).Scan(&id)
	if errors.Is(err, sqldb.ErrNoRows) {
		return "", nil
	}
	return id, err
}
