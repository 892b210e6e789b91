package api_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/generation"
	"atelier/internal/web/access"
)

// TestGuardCost measures what the second authorization adds to a create: creates
// with and without it, in turn, for a personal account and for a team.
// ATELIER_TEST_GUARD_COST is how many of each.
func TestGuardCost(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("ATELIER_TEST_GUARD_COST"))
	if err != nil {
		t.Skip("a measurement: set ATELIER_TEST_GUARD_COST to a number of creates")
	}
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, func(s *generation.Settings) {
			setHighLimits(s)
			s.CreatePerMinute, s.CreatePerHour, s.ActiveRuns = 1<<20, 1<<20, 1<<20
		})
		team, tokens := m.team("X", annasEmail)
		m.grant(annasEmail, "", 1<<30)
		m.grant("", team, 1<<30)
		for name, presented := range map[string]access.Presented{
			"personal": {Authorization: []string{"Bearer " + m.token}, Address: "192.0.2.1"},
			"team":     {Authorization: []string{"Bearer " + tokens[0]}, TeamID: []string{team}, Address: "192.0.2.1"},
		} {
			bare, guarded := m.timeCreates(count, presented)
			t.Logf("%s: %v without, %v with, %+.1f %%", name, bare, guarded, 100*(float64(guarded)/float64(bare)-1))
		}
	})
}

// timeCreates gives the median time of a create without and with the guard.
func (m *runFixture) timeCreates(count int, p access.Presented) (bare, guarded time.Duration) {
	m.t.Helper()
	ctx := m.t.Context()
	who, err := m.site.Gate.Admit(ctx, access.Generating, p)
	if err != nil {
		m.t.Fatal(err)
	}
	checked := sqldb.WithGuard(ctx, m.site.Gate.Guard(access.Admitted{Rule: access.Generating, Presented: p, Principal: who, HasBody: true}))
	tool := m.made["one"]
	draft := generation.Draft{
		ToolID:    tool.ID,
		ToolHash:  tool.ToolFieldsHash,
		Principal: who,
	}
	times := map[context.Context][]time.Duration{}
	for i := range 2 * count {
		with := ctx
		if i%2 == 1 {
			with = checked
		}
		begun := time.Now()
		_, err := m.parts.Runs.CreateRun(with, draft)
		if err != nil {
			m.t.Fatal(err)
		}
		times[with] = append(times[with], time.Since(begun))
	}
	return median(times[ctx]), median(times[checked])
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
