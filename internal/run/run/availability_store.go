package run

import (
	"context"
	"maps"
	"slices"
	"time"

	"atelier/internal/base/sqldb"
)

// reportLifetime is how long a worker's report about the server of an engine is
// valid.
const reportLifetime = time.Minute

// ReportUnavailable records that a worker cannot reach the server of an engine.
// The worker must repeat the report within a minute. If another worker has
// already reported the server as unavailable, the time of the first report is
// kept.
func ReportUnavailable(ctx context.Context, tx *sqldb.Tx, engine, worker string) error {
	stale := tx.Now.Add(-reportLifetime)
	if _, err := tx.Exec(ctx, `DELETE FROM engine_away WHERE engine = $1 AND said < $2`, engine, sqldb.At(stale)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO engine_away (engine, worker, away, since, said)
		VALUES ($1, $2, TRUE, coalesce((SELECT min(since) FROM engine_away WHERE engine = $1 AND away), $3), $3)
		ON CONFLICT (engine, worker) DO UPDATE SET
			away = TRUE, said = excluded.said, since = CASE WHEN engine_away.away THEN engine_away.since ELSE excluded.since END`,
		engine, worker, sqldb.At(tx.Now))
	return err
}

// ReportAvailable records that a worker can reach the server of an engine. The
// record is needed only while other workers report the server as unavailable.
// During that time, the worker must repeat its report.
func ReportAvailable(ctx context.Context, tx *sqldb.Tx, engine, worker string) error {
	stale := tx.Now.Add(-reportLifetime)
	if _, err := tx.Exec(ctx, `DELETE FROM engine_away WHERE engine = $1 AND (worker = $2 OR said < $3)`, engine, worker, sqldb.At(stale)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO engine_away (engine, worker, away, since, said)
		SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), FALSE, CAST($3 AS BIGINT), CAST($3 AS BIGINT)
		WHERE EXISTS (SELECT 1 FROM engine_away WHERE engine = $1 AND away)`, engine, worker, sqldb.At(tx.Now))
	return err
}

// HasReports reports whether any worker has reported on the server of an engine.
func HasReports(ctx context.Context, tx *sqldb.Tx, engine string) (found bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM engine_away WHERE engine = $1)`, engine).Scan(&found)
	return found, err
}

// UnavailableEngines returns the engines whose server no worker can reach, with
// the time when each became unavailable.
func UnavailableEngines(ctx context.Context, tx *sqldb.Tx) (map[string]time.Time, error) {
	all := map[string]time.Time{}
	stale := tx.Now.Add(-reportLifetime)
	err := tx.EachRow(ctx, `
		SELECT engine, min(since) FROM engine_away a WHERE away AND said >= $1
			AND NOT EXISTS (SELECT 1 FROM engine_away b WHERE b.engine = a.engine AND NOT b.away AND b.said >= $1)
		GROUP BY engine`, []any{sqldb.At(stale)}, func(row sqldb.Scanner) error {
		var engine string
		var since sqldb.Time
		if err := row.Scan(&engine, &since); err != nil {
			return err
		}
		all[engine] = since.Time
		return nil
	})
	return all, err
}

// ReportServed records that a worker can run the engines with these names. The
// rows are written in alphabetical order, so that the transactions of workers
// do not deadlock.
func ReportServed(ctx context.Context, tx *sqldb.Tx, engines []string) error {
	for _, name := range slices.Sorted(slices.Values(engines)) {
		_, err := tx.Exec(ctx, `
			INSERT INTO engine_served (engine, seen) VALUES ($1, $2)
			ON CONFLICT (engine) DO UPDATE SET seen = CASE WHEN engine_served.seen > excluded.seen THEN engine_served.seen ELSE excluded.seen END`,
			name, sqldb.At(tx.Now))
		if err != nil {
			return err
		}
	}
	return nil
}

// DeclareEngines records the engines that the settings of a node name, with
// their pools. The node need not serve these pools. The rows are written in
// alphabetical order, so that the transactions of nodes do not deadlock.
func DeclareEngines(ctx context.Context, tx *sqldb.Tx, pools map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		_, err := tx.Exec(ctx, `
			INSERT INTO engine_declared (engine, pool, seen) VALUES ($1, $2, $3)
			ON CONFLICT (engine) DO UPDATE SET pool = excluded.pool,
				seen = CASE WHEN engine_declared.seen > excluded.seen THEN engine_declared.seen ELSE excluded.seen END`,
			name, pools[name], sqldb.At(tx.Now))
		if err != nil {
			return err
		}
	}
	return nil
}

// Declaration says that the settings of a node name an engine.
type Declaration struct {
	Engine string
	Pool   string
	Seen   time.Time // time when a node last declared the engine
}

// DeclaredEngines returns the engines that nodes have ever declared, ordered by
// name, but at most maxDeclared.
func DeclaredEngines(ctx context.Context, tx *sqldb.Tx) ([]Declaration, error) {
	return sqldb.All(ctx, tx, `SELECT engine, pool, seen FROM engine_declared WHERE pool <> '' ORDER BY engine LIMIT $1`,
		[]any{int64(maxDeclared)}, func(row sqldb.Scanner) (d Declaration, err error) {
			var seen sqldb.Time
			err = row.Scan(&d.Engine, &d.Pool, &seen)
			d.Seen = seen.Time
			return d, err
		})
}

const maxDeclared = 1_000

// UnservedEngines returns the engines that have queued runs but that no worker
// has served, and no node has declared, since the given time. For the zero time,
// it returns the engines that no node has ever served or declared. A worker
// serves an engine if it reports that it can run the engine, or claims a run of
// the engine. The runs of an engine that is declared and not served wait for a
// worker of its pool.
func UnservedEngines(ctx context.Context, tx *sqldb.Tx, since time.Time) ([]string, error) {
	waited, err := listWaitedFor(ctx, tx)
	if err != nil {
		return nil, err
	}

	var names []string
	for _, w := range waited {
		last := max(w.served, w.declared)
		if last == 0 || last < since.UnixMicro() {
			names = append(names, w.engine)
		}
	}
	return names, nil
}

// ListUnstaffed returns the engines that have queued runs and that a node has
// declared, but no worker has served since the given time, with their pools.
func ListUnstaffed(ctx context.Context, tx *sqldb.Tx, since time.Time) (map[string]string, error) {
	waited, err := listWaitedFor(ctx, tx)
	if err != nil {
		return nil, err
	}

	pools := map[string]string{}
	for _, w := range waited {
		if w.declared > 0 && w.served < since.UnixMicro() {
			pools[w.engine] = w.pool
		}
	}
	return pools, nil
}

// waitedFor is an engine that has queued runs. The times are in microseconds,
// and 0 if there is none.
type waitedFor struct {
	engine   string
	pool     string // empty if no node has declared the engine
	served   int64  // when a worker last reported that it can run the engine, or claimed a run of it
	declared int64  // when a node last declared the engine
}

// listWaitedFor returns the engines that have queued runs, ordered by name.
func listWaitedFor(ctx context.Context, tx *sqldb.Tx) ([]waitedFor, error) {
	return sqldb.All(ctx, tx, `
		SELECT w.engine, coalesce(d.pool, ''), coalesce(d.seen, 0), coalesce(s.seen, 0), (SELECT max(served) FROM run_turn t WHERE t.engine = w.engine)
		FROM (SELECT DISTINCT engine FROM run_turn WHERE waiting > 0) AS w
			LEFT JOIN engine_served s ON s.engine = w.engine LEFT JOIN engine_declared d ON d.engine = w.engine
		ORDER BY w.engine`, nil, func(row sqldb.Scanner) (w waitedFor, err error) {
		var claimed int64
		err = row.Scan(&w.engine, &w.pool, &w.declared, &w.served, &claimed)
		w.served = max(w.served, claimed)
		return w, err
	})
}
