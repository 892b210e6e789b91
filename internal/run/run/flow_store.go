package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"atelier/internal/base/sqldb"
)

// FlowEngine is the engine of the runs of flows. No worker claims these runs: a
// flow is running from its creation until its steps have ended.
const FlowEngine = "flow"

// IsFlow reports whether the run is the run of a flow.
func (r Run) IsFlow() bool { return r.Engine == FlowEngine }

// FlowStep is a run of a step of a flow.
type FlowStep struct {
	Step      string
	Otherwise bool // the run replaces a failed one
	Place     int64
	Reused    bool   // the run was started by an earlier run of the flow
	Delivered *int64 // place of its results among those of the flow; nil if they are intermediate
	Run       Run
}

// FlowTotals contains what an ended flow made and cost, with the flows in it.
// Steps that it took over from an earlier run cost nothing.
type FlowTotals struct {
	Started       time.Time // start of the first step; zero if none started
	Results       int64     // delivered results, also of steps that were taken over
	TokensCharged int64
	AllowanceUsed int64
}

// addFlow stores that the steps of a new flow must be decided now.
func addFlow(ctx context.Context, tx *sqldb.Tx, id, retryOf string) error {
	return tx.DeferExec(ctx, `INSERT INTO flow_run (run_id, retry_of, due) VALUES ($1, nullif($2, ''), $3)`, []any{id, retryOf, sqldb.At(tx.Now)}, nil)
}

// AddFlowStep stores that a run is a step of a flow.
func AddFlowStep(ctx context.Context, tx *sqldb.Tx, flowID string, s FlowStep) error {
	return tx.DeferExec(ctx, `INSERT INTO flow_step (flow_id, step, otherwise, place, run_id, reused) VALUES ($1, $2, $3, $4, $5, $6)`,
		[]any{flowID, s.Step, s.Otherwise, s.Place, s.Run.ID, s.Reused}, nil)
}

// ListDueFlows returns the ids of at most limit flows whose next steps must be
// decided, and when the first of all others is due. next is zero if there is
// none.
func ListDueFlows(ctx context.Context, tx *sqldb.Tx, limit int) (ids []string, next time.Time, err error) {
	err = tx.EachRow(ctx, `SELECT run_id, due FROM flow_run WHERE due IS NOT NULL ORDER BY due LIMIT $1`, []any{int64(limit)}, func(row sqldb.Scanner) error {
		var id string
		var due sqldb.Time
		if err := row.Scan(&id, &due); err != nil {
			return err
		}
		if due.After(tx.Now) {
			if next.IsZero() {
				next = due.Time
			}
			return nil
		}
		ids = append(ids, id)
		return nil
	})
	return ids, next, err
}

// DueFlow is a flow whose next steps must be decided.
type DueFlow struct {
	RetryOf  string // run of the same flow whose finished steps are taken over, or ""
	Failures int64  // how often deciding has failed in succession
}

// LockFlow locks a flow whose next steps must be decided. ok is false if they
// need not be decided now, or another node is deciding.
func LockFlow(ctx context.Context, tx *sqldb.Tx, id string) (f DueFlow, ok bool, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce(retry_of, ''), failures FROM flow_run WHERE run_id = $1 AND due <= $2`+tx.Dialect.SkipLocked, id, sqldb.At(tx.Now)).
		Scan(&f.RetryOf, &f.Failures)
	if errors.Is(err, sqldb.ErrNoRows) {
		return DueFlow{}, false, nil
	}
	return f, err == nil, err
}

// SetFlowDue sets when the next steps of a flow must be decided; zero if a step
// must end first.
func SetFlowDue(ctx context.Context, tx *sqldb.Tx, id string, due time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE flow_run SET due = $2, failures = 0 WHERE run_id = $1`, id, sqldb.At(due))
	return err
}

// endFlow stores the totals of a flow that ends. Its delivered steps must have
// been stored. The row is updated once, because an update of a row that the
// transaction has changed locks the rows that it refers to.
func endFlow(ctx context.Context, tx *sqldb.Tx, id string) (t FlowTotals, err error) {
	var started sqldb.Time
	err = tx.QueryRow(ctx, `
		UPDATE flow_run SET due = NULL, failures = 0, started = t.started, results = t.results, tokens_charged = t.tokens_charged, allowance_used = t.allowance_used
		FROM (SELECT `+flowTotals+` FROM `+flowParts+` WHERE s.flow_id = $1) AS t
		WHERE flow_run.run_id = $1 RETURNING flow_run.started, flow_run.results, flow_run.tokens_charged, flow_run.allowance_used`, id).
		Scan(&started, &t.Results, &t.TokensCharged, &t.AllowanceUsed)
	t.Started = started.Time
	return t, err
}

// flowParts is SQL for the steps of flows: s is the step, c its run, and n the
// totals of the run if it is a flow.
const flowParts = `flow_step s JOIN run c ON c.id = s.run_id LEFT JOIN flow_run n ON n.run_id = c.id`

// flowTotals are SQL expressions for FlowTotals over flowParts.
const flowTotals = `
	min(CASE WHEN NOT s.reused THEN coalesce(c.started, n.started) END) AS started,
	CAST(coalesce(sum(CASE WHEN s.delivered IS NOT NULL THEN c.results + coalesce(n.results, 0) END), 0) AS BIGINT) AS results,
	CAST(coalesce(sum(CASE WHEN NOT s.reused THEN coalesce(c.tokens_charged, 0) + coalesce(n.tokens_charged, 0) END), 0) AS BIGINT) AS tokens_charged,
	CAST(coalesce(sum(CASE WHEN NOT s.reused THEN coalesce(c.allowance_used, 0) + coalesce(n.allowance_used, 0) END), 0) AS BIGINT) AS allowance_used`

// retryFlow is how long a flow waits for each failure to decide about it.
const retryFlow = time.Second

// DelayFlow records that deciding about a flow has failed, and makes it due
// again later.
func DelayFlow(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `
		UPDATE flow_run SET failures = failures + 1, due = CAST($2 AS BIGINT) + (failures + 1) * CAST($3 AS BIGINT) WHERE run_id = $1 AND due IS NOT NULL`,
		id, sqldb.At(tx.Now), retryFlow.Microseconds())
	return err
}

// wakeFlow makes the next steps of a flow due, because one of its runs has
// ended or cancellation was requested.
func wakeFlow(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `UPDATE flow_run SET due = $2 WHERE run_id = $1`, id, sqldb.At(tx.Now))
	return err
}

// FlowSteps returns the runs of the steps of flows by the id of the flow, in the
// order in which they were created.
func FlowSteps(ctx context.Context, tx *sqldb.Tx, flowIDs ...string) (map[string][]FlowStep, error) {
	if len(flowIDs) == 0 {
		return nil, nil
	}
	in, args := sqldb.In(flowIDs)
	all := make(map[string][]FlowStep, len(flowIDs))
	err := tx.EachRow(ctx, `
		SELECT s.flow_id, s.step, s.otherwise, s.place, s.reused, s.delivered, `+columns+`
		FROM flow_step s JOIN run ON run.id = s.run_id WHERE s.flow_id IN `+in+` ORDER BY created, id`, args, func(row sqldb.Scanner) (err error) {
		var flowID string
		var s FlowStep
		s.Run, err = scanRun(columnScanner{row, []any{&flowID, &s.Step, &s.Otherwise, &s.Place, &s.Reused, &s.Delivered}})
		all[flowID] = append(all[flowID], s)
		return err
	})
	return all, err
}

// DeliveredSteps returns the steps whose results are the results of their flow,
// in the order of the results.
func DeliveredSteps(steps []FlowStep) []FlowStep {
	var all []FlowStep
	for _, s := range steps {
		if s.Delivered != nil {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b FlowStep) int { return cmp.Compare(*a.Delivered, *b.Delivered) })
	return all
}

// columnScanner scans the first columns of a row into first, and the others into
// what its caller names.
type columnScanner struct {
	row   sqldb.Scanner
	first []any
}

func (s columnScanner) Scan(dest ...any) error { return s.row.Scan(append(s.first, dest...)...) }

// FlowHold returns the part of the hold of a flow that has not been passed to
// the runs of its steps.
func FlowHold(ctx context.Context, tx *sqldb.Tx, r Run) (tokens, allowance int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT CAST(coalesce(sum(r.tokens_held), 0) AS BIGINT), CAST(coalesce(sum(r.allowance_held), 0) AS BIGINT)
		FROM flow_step s JOIN run r ON r.id = s.run_id WHERE s.flow_id = $1 AND NOT s.reused`, r.ID).Scan(&tokens, &allowance)
	return r.TokensHeld - tokens, r.AllowanceHeld - allowance, err
}

// deliverStep marks the results of a run of a step as results of the flow, at a
// place among them.
func deliverStep(ctx context.Context, tx *sqldb.Tx, flowID string, s FlowStep, place int64) error {
	if _, err := tx.Exec(ctx, `UPDATE flow_step SET delivered = $5 WHERE flow_id = $1 AND step = $2 AND otherwise = $3 AND place = $4`,
		flowID, s.Step, s.Otherwise, s.Place, place); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE result SET intermediate = FALSE WHERE run_id = $1 AND intermediate`, s.Run.ID)
	return err
}
