package company_test

import (
	"testing"
	"time"

	"atelier/internal/people/company"
)

// TestSpendCovers compares limits with what somebody can spend who keeps to
// them: everything at the beginning of each window, minute by minute.
func TestSpendCovers(t *testing.T) {
	t.Parallel()
	role := func(s *company.Spend) company.TeamRole { return company.TeamRole{Spend: s} }
	limits := []*company.Spend{nil}
	for _, tokens := range []int64{0, 1, 2, 3, 5, 6, 10} {
		for _, minutes := range []time.Duration{1, 2, 3, 4, 7} {
			limits = append(limits, &company.Spend{Tokens: tokens, Window: minutes * time.Minute})
		}
	}
	// most is the most that o lets somebody spend in one window of s.
	most := func(s, o *company.Spend) (tokens int64) {
		for at := time.Duration(0); at < s.Window; at += o.Window {
			tokens += o.Tokens
		}
		return tokens
	}
	for _, s := range limits {
		for _, o := range limits {
			want := s == nil || o != nil && most(s, o) <= s.Tokens
			if got := role(s).CoversRole(role(o)); got != want {
				t.Errorf("%+v covers %+v: %v", s, o, got)
			}
		}
	}
	// The largest that can be set: the product would overflow.
	year := &company.Spend{Tokens: 1e15, Window: 366 * 24 * time.Hour}
	if role(year).CoversRole(role(&company.Spend{Tokens: 1e15, Window: time.Second})) {
		t.Error("a second's limit is within a year's")
	}
}
