package run

import (
	"strconv"
	"time"

	"atelier/internal/base/sqldb"
)

// Checks are SQL queries that find violated invariants of runs.
var Checks = []sqldb.Check{
	{Name: "the number of queued runs in a scheduling row is correct", Query: `
		SELECT 'run_turn ' || t.engine || ' ' || t.person_id FROM run_turn t WHERE t.waiting <>
			(SELECT count(*) FROM run r WHERE r.engine = t.engine AND r.person_id = t.person_id AND r.stage = 'queued')`},
	{Name: "every queued run has a scheduling row", Query: `
		SELECT 'run ' || r.id FROM run r WHERE r.stage = 'queued'
			AND NOT EXISTS (SELECT 1 FROM run_turn t WHERE t.engine = r.engine AND t.person_id = r.person_id)`},
	{Name: "every running run, and no other, has a lease", Query: `
		SELECT 'run ' || id FROM run WHERE (coalesce(stage, '') = 'running' AND engine <> 'flow') <> (lease_until IS NOT NULL)`},
	{Name: "only the newest attempt of a running run is open", Query: `
		SELECT 'run ' || r.id FROM run r WHERE (coalesce(r.stage, '') = 'running' AND r.engine <> 'flow') <>
			EXISTS (SELECT 1 FROM run_attempt a WHERE a.run_id = r.id AND a.ended IS NULL AND a.attempt = r.attempt)`},
	{Name: "all older attempts of a run have ended", Query: `
		SELECT 'run ' || a.run_id || ' attempt ' || CAST(a.attempt AS TEXT) FROM run_attempt a JOIN run r ON r.id = a.run_id
		WHERE a.attempt > r.attempt OR a.ended IS NULL AND (a.attempt < r.attempt OR r.stage IS NULL)`},
	{Name: "the last attempt of a run has the final state of the run", Query: `
		SELECT 'run ' || a.run_id || ' attempt ' || CAST(a.attempt AS TEXT) FROM run_attempt a JOIN run r ON r.id = a.run_id
		WHERE a.outcome IN ('succeeded', 'failed', 'cancelled') AND (r.status <> a.outcome OR r.attempt <> a.attempt)`},
	{Name: "a successful run has a successful attempt", Query: `
		SELECT 'run ' || r.id FROM run r WHERE r.status = 'succeeded' AND r.engine <> 'flow'
			AND NOT EXISTS (SELECT 1 FROM run_attempt a WHERE a.run_id = r.id AND a.outcome = 'succeeded')`},
	{Name: "a run's times are in order", Query: `
		SELECT 'run ' || id FROM run WHERE started < created OR finished < created OR finished < started`},
	{Name: "an idempotency key and its run belong to the same person", Query: `
		SELECT 'idempotency ' || i.person_id || ' ' || i.key FROM idempotency i JOIN run r ON r.id = i.run_id WHERE r.person_id <> i.person_id`},
	{Name: "the number of results of a run is correct", Query: `
		SELECT 'run ' || r.id FROM run r WHERE r.results <> (SELECT count(*) FROM result s WHERE s.run_id = r.id)`},
	{Name: "the account of a run is its team, or the person if there is no team", Query: `
		SELECT 'run ' || id FROM run WHERE account_id <> coalesce(team_id, person_id)`},
}

// FlowChecks are SQL queries that find violated invariants of flows.
var FlowChecks = []sqldb.Check{
	{Name: "every flow, and no other run, has a row that says when its steps are decided", Query: `
		SELECT 'run ' || r.id FROM run r LEFT JOIN flow_run f ON f.run_id = r.id WHERE (r.engine = 'flow') <> (f.run_id IS NOT NULL)`},
	{Name: "a pending flow is due or waits for a step, and an ended one is not due", Query: `
		SELECT 'run ' || f.run_id FROM flow_run f JOIN run r ON r.id = f.run_id
		WHERE r.status <> 'pending' AND f.due IS NOT NULL OR r.status = 'pending' AND f.due IS NULL AND NOT EXISTS (
			SELECT 1 FROM flow_step s JOIN run c ON c.id = s.run_id WHERE s.flow_id = f.run_id AND c.status = 'pending')`},
	{Name: "all steps of a flow that has ended have ended", Query: `
		SELECT 'run ' || c.id FROM run c JOIN run r ON r.id = c.parent_id WHERE c.status = 'pending' AND r.status <> 'pending'`},
	{Name: "a run of a step belongs to one flow, with its account and person", Query: `
		SELECT 'run ' || c.id FROM run c LEFT JOIN run r ON r.id = c.parent_id LEFT JOIN flow_step s ON s.run_id = c.id AND s.flow_id = c.parent_id AND NOT s.reused
		WHERE c.parent_id IS NOT NULL AND (s.run_id IS NULL OR r.engine <> 'flow' OR r.account_id <> c.account_id OR r.person_id <> c.person_id)`},
	{Name: "a step of a flow is a run of the flow, or a finished run that it took over", Query: `
		SELECT 'flow_step ' || s.flow_id || ' ' || s.step FROM flow_step s JOIN run r ON r.id = s.flow_id JOIN run c ON c.id = s.run_id
		WHERE s.reused = (coalesce(c.parent_id, '') = s.flow_id) OR s.reused AND (c.status <> 'succeeded' OR c.account_id <> r.account_id)`},
	{Name: "the steps of a flow hold no more than the flow", Query: `
		SELECT 'run ' || r.id FROM run r JOIN flow_step s ON s.flow_id = r.id AND NOT s.reused JOIN run c ON c.id = s.run_id
		GROUP BY r.id, r.tokens_held, r.allowance_held HAVING sum(c.tokens_held) > r.tokens_held OR sum(c.allowance_held) > r.allowance_held`},
	{Name: "the totals of an ended flow are those of its steps, and a pending flow has none", Query: `
		SELECT 'run ' || f.run_id FROM flow_run f JOIN run r ON r.id = f.run_id
			LEFT JOIN (SELECT s.flow_id, ` + flowTotals + ` FROM ` + flowParts + ` GROUP BY s.flow_id) AS t ON t.flow_id = f.run_id AND r.status <> 'pending'
		WHERE coalesce(f.started, 0) <> coalesce(t.started, 0) OR f.results <> coalesce(t.results, 0) OR f.tokens_charged <> coalesce(t.tokens_charged, 0)
			OR f.allowance_used <> coalesce(t.allowance_used, 0)`},
	{Name: "a flow that succeeded has results, and no other flow", Query: `
		SELECT 'run ' || r.id FROM run r WHERE r.engine = 'flow' AND (r.status = 'succeeded') <>
			EXISTS (SELECT 1 FROM flow_step s WHERE s.flow_id = r.id AND s.delivered IS NOT NULL)`},
}

// Limits are the limits per person that LimitChecks compares runs with: runs
// started per minute and per hour, and active runs.
type Limits struct{ PerMinute, PerHour, Active int }

// clockSkew is the maximum difference between the clocks of two nodes, in
// microseconds. By the clock of one node, a run may have ended slightly earlier
// than by the clock of another node.
const clockSkew = "100000"

// LimitChecks returns SQL queries that find violations of invariants that
// depend on the current time and on settings. The limits are checked for the
// last two hours only, because an operator may have lowered them since. The
// invariants about leases are valid only while workers run.
func LimitChecks(d sqldb.Dialect, l Limits) []sqldb.Check {
	recent := d.Clock + ` - 7200000000`
	rate := func(name string, limit int, span time.Duration) sqldb.Check {
		return sqldb.Check{Name: name, Query: `
			SELECT 'person ' || person_id || ' began ' || CAST(max(n) AS TEXT) FROM (
				SELECT person_id, count(*) OVER (PARTITION BY person_id ORDER BY created
					RANGE BETWEEN ` + strconv.FormatInt(span.Microseconds()-1, 10) + ` PRECEDING AND CURRENT ROW) AS n
				FROM run WHERE parent_id IS NULL AND created > ` + recent + `) AS windows
			WHERE n > ` + strconv.Itoa(limit) + ` GROUP BY person_id`}
	}
	return []sqldb.Check{
		rate("no person starts more runs in a minute than allowed", l.PerMinute, time.Minute),
		rate("no person starts more runs in an hour than allowed", l.PerHour, time.Hour),
		{Name: "no person has more active runs than allowed", Query: `
			SELECT 'person ' || person_id || ' had ' || CAST(max(n) AS TEXT) FROM (
				SELECT person_id, sum(d) OVER (PARTITION BY person_id ORDER BY t, d ROWS UNBOUNDED PRECEDING) AS n FROM (
					SELECT person_id, created AS t, 1 AS d FROM run WHERE parent_id IS NULL AND (finished IS NULL OR finished > ` + recent + `)
					UNION ALL
					SELECT person_id, CASE WHEN finished - created > ` + clockSkew + ` THEN finished - ` + clockSkew + ` ELSE finished END, -1 FROM run WHERE parent_id IS NULL AND finished > ` + recent + `) AS steps) AS counts
			WHERE n > ` + strconv.Itoa(l.Active) + ` GROUP BY person_id`},
		{Name: "no running run has an expired lease", Query: `
			SELECT 'run ' || id FROM run WHERE stage = 'running' AND lease_until < ` + d.Clock + ` - 60000000`},
		{Name: "every run ends within two days", Query: `
			SELECT 'run ' || id FROM run WHERE status = 'pending' AND created < ` + d.Clock + ` - 172800000000`},
	}
}
