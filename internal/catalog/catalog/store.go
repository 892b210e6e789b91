package catalog

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// row is a tool, tag or kit in the database.
type row struct {
	id, slug   string
	source     Source
	definition string
	removed    bool

	// The following fields are set only for tools.
	hash             string
	saved            bool // a flow that people saved
	average, recent  time.Duration
	created, updated time.Time
}

const versionQuery = `SELECT version FROM catalog WHERE id = 1`

// Lock locks the catalog, so that one transaction at a time changes it.
func Lock(ctx context.Context, tx *sqldb.Tx) error {
	var version int64
	return tx.QueryRow(ctx, versionQuery+tx.Dialect.ForUpdate).Scan(&version)
}

func incrementVersion(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE catalog SET version = version + 1 WHERE id = 1`)
	return err
}

// readRows returns all tools, tags or kits in the database by slug, including
// removed ones. It leaves out the flows that people saved.
func readRows(ctx context.Context, tx *sqldb.Tx, k kind) (map[string]row, error) {
	columns := `id, slug, source, definition, removed`
	where := ``
	if k == toolKind {
		where = ` WHERE NOT saved`
		columns += `, hash, coalesce(average_ms, 0), coalesce(recent_ms, 0), created, updated`
	}

	all := map[string]row{}
	err := tx.EachRow(ctx, `SELECT `+columns+` FROM `+string(k)+where, nil, func(s sqldb.Scanner) error {
		var r row
		var average, recent int64
		var created, updated sqldb.Time
		dest := []any{&r.id, &r.slug, &r.source, &r.definition, &r.removed}
		if k == toolKind {
			dest = append(dest, &r.hash, &average, &recent, &created, &updated)
		}
		if err := s.Scan(dest...); err != nil {
			return err
		}

		r.average = time.Duration(average) * time.Millisecond
		r.recent = time.Duration(recent) * time.Millisecond
		r.created = created.Time
		r.updated = updated.Time
		all[r.slug] = r
		return nil
	})
	return all, err
}

// upsertRow inserts or updates a tool, tag or kit. For a tool, it also inserts
// the version of the tool, which is never deleted.
func upsertRow(ctx context.Context, tx *sqldb.Tx, k kind, r row) error {
	if k == toolKind {
		hash := hashOf(r.definition)
		flowID := ""
		if r.saved {
			flowID = r.id
		}
		if _, err := tx.Exec(ctx, `INSERT INTO tool_version (hash, definition, saved_flow_id) VALUES ($1, $2, nullif($3, '')) ON CONFLICT (hash) DO NOTHING`,
			hash, r.definition, flowID); err != nil {
			return err
		}

		_, err := tx.Exec(ctx, `
			INSERT INTO tool (id, slug, source, definition, hash, removed, saved, created, updated)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
			ON CONFLICT (id) DO UPDATE SET source = excluded.source, definition = excluded.definition,
				hash = excluded.hash, removed = excluded.removed, updated = excluded.updated`,
			r.id, r.slug, string(r.source), r.definition, hash, r.removed, r.saved, sqldb.At(tx.Now))
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO `+string(k)+` (id, slug, source, definition, removed)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET source = excluded.source, definition = excluded.definition, removed = excluded.removed`,
		r.id, r.slug, string(r.source), r.definition, r.removed)
	return err
}

// versionDefinition returns the definition of the tool version with the given
// hash.
func versionDefinition(ctx context.Context, db *sqldb.DB, hash string) (definition string, err error) {
	err = db.QueryRow(ctx, `SELECT definition FROM tool_version WHERE hash = $1`, hash).Scan(&definition)
	return definition, err
}

// DeferLiveHash calls check with the current hash of a tool in the database,
// which may be newer than the hash in the snapshot in memory. ok is false if the
// tool was removed. The hash is read together with the next statement of tx (see
// sqldb.Tx.DeferQueryRow).
func DeferLiveHash(ctx context.Context, tx *sqldb.Tx, toolID string, check func(hash string, ok bool) error) error {
	return tx.DeferQueryRow(ctx, `SELECT hash FROM tool WHERE id = $1 AND NOT removed`, []any{toolID}, func(row sqldb.Row) error {
		var hash string
		err := row.Scan(&hash)
		if errors.Is(err, sqldb.ErrNoRows) {
			return check("", false)
		}
		if err != nil {
			return err
		}
		return check(hash, true)
	})
}

const (
	// durationsKept is the number of latest finished runs from which the
	// average duration of a tool is computed.
	durationsKept = 100
	// durationsRecent is the number of latest finished runs from which the
	// recent duration of a tool is computed. It is small, so that the recent
	// duration changes within minutes after a server has become faster.
	durationsRecent = 15
)

// RecordDuration records how long a finished run of a tool took per result. At
// least one millisecond is recorded, because zero means that no duration is
// known.
func RecordDuration(ctx context.Context, tx *sqldb.Tx, toolID string, perResult time.Duration) error {
	_, err := tx.Exec(ctx, `INSERT INTO tool_duration (id, tool_id, ms_per_result, finished) VALUES ($1, $2, $3, $4)`,
		ids.New(), toolID, max(perResult.Milliseconds(), 1), sqldb.At(tx.Now))
	return err
}

// UpdateAverages recomputes the average and recent durations of all tools, and
// deletes durations that are no longer needed. It increments the catalog's
// version only if a value has changed.
func UpdateAverages(ctx context.Context, db *sqldb.DB) error {
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		if err := Lock(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			DELETE FROM tool_duration WHERE id IN (
				SELECT id FROM (
					SELECT id, row_number() OVER (PARTITION BY tool_id ORDER BY finished DESC, id) AS place FROM tool_duration
				) AS ranked WHERE place > $1)`, int64(durationsKept)); err != nil {
			return err
		}

		changed, err := tx.Exec(ctx, `
			WITH average AS (
				SELECT tool_id, CAST(avg(ms_per_result) AS BIGINT) AS ms FROM tool_duration GROUP BY tool_id),
			newest AS (
				SELECT tool_id, ms_per_result AS ms, row_number() OVER (PARTITION BY tool_id ORDER BY finished DESC, id) AS age FROM tool_duration),
			ranked AS (
				SELECT tool_id, ms, row_number() OVER (PARTITION BY tool_id ORDER BY ms) AS place, count(*) OVER (PARTITION BY tool_id) AS n
				FROM newest WHERE age <= $1),
			middle AS (
				SELECT tool_id, ms FROM ranked WHERE place = (n + 1) / 2)
			UPDATE tool SET average_ms = average.ms, recent_ms = middle.ms FROM average JOIN middle ON middle.tool_id = average.tool_id
			WHERE tool.id = average.tool_id AND (coalesce(average_ms, -1) <> average.ms OR coalesce(recent_ms, -1) <> middle.ms)`,
			int64(durationsRecent))
		if err != nil || changed == 0 {
			return err
		}
		return incrementVersion(ctx, tx)
	})
}

// Checks are SQL queries for violated invariants of the catalog.
var Checks = []sqldb.Check{
	{Name: "the catalog has one version", Query: `
		SELECT 'catalog has ' || CAST(count(*) AS TEXT) || ' rows' FROM catalog HAVING count(*) <> 1`},
	{Name: "every tool has a definition and the hash of the definition", Query: `
		SELECT 'tool ' || id FROM tool WHERE definition = '' OR hash NOT LIKE 'v1:%' OR length(hash) <> 46`},
	{Name: "the current definition of every tool is stored as a version", Query: `
		SELECT 'tool ' || id FROM tool
		WHERE NOT EXISTS (SELECT 1 FROM tool_version v WHERE v.hash = tool.hash AND v.definition = tool.definition)`},
	{Name: "every saved flow has a tool, which is removed when the flow is deleted", Query: `
		SELECT 'flow ' || f.id FROM saved_flow f JOIN tool t ON t.id = f.id WHERE NOT t.saved OR t.removed <> (f.deleted IS NOT NULL)
		UNION ALL SELECT 'tool ' || id FROM tool WHERE saved AND NOT EXISTS (SELECT 1 FROM saved_flow f WHERE f.id = tool.id)`},
	{Name: "the current version of every saved flow is stored", Query: `
		SELECT 'flow ' || id FROM saved_flow f
		WHERE deleted IS NULL AND NOT EXISTS (SELECT 1 FROM saved_flow_version v WHERE v.flow_id = f.id AND v.number = f.version)`},
	{Name: "a tool was not updated before it was created", Query: `
		SELECT 'tool ' || id FROM tool WHERE updated < created`},
}
