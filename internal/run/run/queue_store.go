package run

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

// These queries read a limited number of rows, regardless of the number of
// runs. The recursive query finds the engines one by one in the index of
// run_turn. Runs of flows do not count: they need no engine, and their steps are
// runs of their own.

const (
	waitingEnginesQuery = `
		WITH RECURSIVE engines (engine) AS (
			SELECT * FROM (SELECT engine FROM run_turn WHERE waiting > 0 ORDER BY engine LIMIT 1) AS first
			UNION ALL
			SELECT (SELECT t.engine FROM run_turn t WHERE t.waiting > 0 AND t.engine > engines.engine ORDER BY t.engine LIMIT 1)
			FROM engines WHERE engines.engine IS NOT NULL
		) SELECT engine FROM engines WHERE engine IS NOT NULL LIMIT $1`
	countWaitingQuery = `
		SELECT CAST(coalesce(sum(waiting), 0) AS BIGINT) FROM (SELECT waiting FROM run_turn WHERE engine = $1 AND waiting > 0 LIMIT $2) AS counted`
	oldestWaitingQuery = `
		SELECT min(created) FROM (
			SELECT (SELECT r.created FROM run r WHERE r.engine = t.engine AND r.person_id = t.person_id AND r.stage = 'queued'
				ORDER BY r.created, r.id LIMIT 1) AS created
			FROM (SELECT engine, person_id FROM run_turn WHERE engine = $1 AND waiting > 0 ORDER BY since - head_start, person_id LIMIT $2) AS t
		) AS firsts`
	countActiveQuery = `
		SELECT engine, count(*) FROM (SELECT engine FROM run WHERE stage = 'running' AND engine <> 'flow' LIMIT $1) AS counted GROUP BY engine`
)

// estimatesQuery reads the estimated durations of a limited number of runs of an
// engine that have not ended.
const estimatesQuery = `
	SELECT CAST(coalesce(sum(estimated_s), 0) AS BIGINT), count(estimated_s) FROM (
		SELECT estimated_s FROM (SELECT estimated_s FROM run WHERE engine = $1 AND stage = 'queued' LIMIT $2) AS waiting
		UNION ALL
		SELECT estimated_s FROM (SELECT estimated_s FROM run WHERE engine = $1 AND stage = 'running' LIMIT $2) AS active) AS estimates`

// MeanEstimate returns the mean of the estimated durations of the runs of an
// engine that have not ended, of which it reads at most a thousand queued and a
// thousand running ones. It returns 0 if no run has an estimate.
func MeanEstimate(ctx context.Context, tx *sqldb.Tx, engine string) (time.Duration, error) {
	var seconds, n int64
	if err := tx.QueryRow(ctx, estimatesQuery, engine, int64(maxSample)).Scan(&seconds, &n); err != nil || n == 0 {
		return 0, err
	}
	return time.Duration(seconds) * time.Second / time.Duration(n), nil
}

func listWaitingEngines(ctx context.Context, tx *sqldb.Tx) ([]string, error) {
	return sqldb.All(ctx, tx, waitingEnginesQuery, []any{int64(queueEngines)}, func(row sqldb.Scanner) (engine string, err error) {
		err = row.Scan(&engine)
		return engine, err
	})
}

func countWaiting(ctx context.Context, tx *sqldb.Tx, engine string) (n int64, err error) {
	err = tx.QueryRow(ctx, countWaitingQuery, engine, int64(countedPeople)).Scan(&n)
	return n, err
}

func oldestWaiting(ctx context.Context, tx *sqldb.Tx, engine string) (time.Time, error) {
	var at sqldb.Time
	err := tx.QueryRow(ctx, oldestWaitingQuery, engine, int64(oldestPeople)).Scan(&at)
	return at.Time, err
}

func countActiveByEngine(ctx context.Context, tx *sqldb.Tx) (map[string]int64, error) {
	all := map[string]int64{}
	err := tx.EachRow(ctx, countActiveQuery, []any{int64(countedActive)}, func(row sqldb.Scanner) error {
		var engine string
		var n int64
		if err := row.Scan(&engine, &n); err != nil {
			return err
		}
		all[engine] = n
		return nil
	})
	return all, err
}
