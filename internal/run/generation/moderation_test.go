package generation_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/policy"
)

// moderator gives the installation a moderator that takes a moment and flags what is
// bad, and counts how often it is asked.
func moderator(h *installation) *atomic.Int64 {
	h.Helper()
	asked := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		question, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller left
		}
		time.Sleep(20 * time.Millisecond)
		fmt.Fprintf(w, `{"results": [{"flagged": %v}]}`, bytes.Contains(question, []byte("bad")))
	}))
	h.Cleanup(server.Close)
	m, err := policy.NewModerator(policy.Options{URL: server.URL})
	h.OK(err)
	h.Runs.Policy = &policy.Checker{Rules: policy.Default(), Moderator: m}
	return asked
}

func asking(h *installation, who principal.Principal, slug, prompt string) generation.Draft {
	h.Helper()
	d := h.Draft(who, slug)
	d.Inputs = map[string]any{"prompt": prompt}
	return d
}

// TestModeratorIsAskedLast has far more creates at once than there is room for:
// the moderator is asked about those that are accepted and no others.
func TestModeratorIsAskedLast(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*generation.Settings)
		tokens  int64
		creates int
		want    fault.Code // of those that are refused
	}{
		"rate":    {func(s *generation.Settings) { s.ActiveRuns = 1000 }, 10_000, 240, fault.RateLimited},
		"cap":     {func(s *generation.Settings) { s.CreatePerMinute, s.CreatePerHour = 1000, 1000 }, 10_000, 60, fault.ActiveRunCap},
		"balance": {generationtest.Unlimited, 10*3 + 2, 60, fault.InsufficientBalance},
	} {
		t.Run(name, func(t *testing.T) {
			generationtest.EachInstallation(t, c.change, func(h *installation) {
				asked := moderator(h)
				who := generationtest.Own(h.Person(c.tokens))
				var accepted atomic.Int64
				dbtest.Together(c.creates, func(i int) {
					_, err := h.Runs.CreateRun(h.Context(), asking(h, who, "cost", "a fox"))
					switch {
					case err == nil:
						accepted.Add(1)
					case !fault.Is(err, c.want):
						h.Errorf("create = %v, want %s", err, c.want)
					}
				})
				if accepted.Load() != 10 || asked.Load() != 10 {
					h.Errorf("%d were accepted and the moderator was asked %d times, want 10 and 10", accepted.Load(), asked.Load())
				}
			})
		})
	}
}

// TestModeratorRefuses lets others in for those that the moderator refuses.
func TestModeratorRefuses(t *testing.T) {
	generationtest.EachInstallation(t, func(s *generation.Settings) { s.ActiveRuns = 1000 }, func(h *installation) {
		asked := moderator(h)
		who := generationtest.Own(h.Person(10_000))
		var accepted, refused, late atomic.Int64
		dbtest.Together(40, func(i int) {
			prompt := "a fox"
			if i%2 == 0 {
				prompt = "bad"
			}
			_, err := h.Runs.CreateRun(h.Context(), asking(h, who, "cost", prompt))
			switch {
			case err == nil:
				accepted.Add(1)
			case fault.Is(err, fault.ContentPolicyViolation):
				refused.Add(1)
			case fault.Is(err, fault.RateLimited):
				late.Add(1)
			default:
				h.Errorf("create = %v", err)
			}
		})
		if accepted.Load() != 10 || asked.Load() != accepted.Load()+refused.Load() || accepted.Load()+refused.Load()+late.Load() != 40 {
			h.Errorf("%d accepted, %d refused, %d too late, asked %d times", accepted.Load(), refused.Load(), late.Load(), asked.Load())
		}
	})
}

// TestReplayAsksNobody has one key many times, at once and again.
func TestReplayAsksNobody(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		asked := moderator(h)
		d := asking(h, generationtest.Own(h.Person(10_000)), "cost", "a fox")
		d.Key, d.Fingerprint = "key", "print"
		var replayed atomic.Int64
		create := func(int) {
			c, err := h.Runs.CreateRun(h.Context(), d)
			if err != nil {
				h.Errorf("create = %v", err)
			}
			if c.Replayed {
				replayed.Add(1)
			}
		}
		dbtest.Together(20, create)
		create(0)
		if asked.Load() != 1 || replayed.Load() != 20 {
			h.Errorf("asked %d times, %d replays, want 1 and 20", asked.Load(), replayed.Load())
		}
		if _, err := h.Runs.PriceDraft(h.Context(), d); err != nil || asked.Load() != 1 {
			h.Errorf("a price = %v, asked %d times, want 1", err, asked.Load())
		}
	})
}

// TestCallerLeavesModerator has callers leave while others of theirs are asked
// about: nothing of them stays.
func TestCallerLeavesModerator(t *testing.T) {
	generationtest.EachInstallation(t, func(s *generation.Settings) { s.ActiveRuns = 1 }, func(h *installation) {
		asked := moderator(h)
		who := generationtest.Own(h.Person(10_000))
		dbtest.Together(20, func(i int) {
			ctx, leave := context.WithTimeout(h.Context(), time.Duration(i)*time.Millisecond)
			defer leave()
			_, _ = h.Runs.CreateRun(ctx, asking(h, who, "cost", "a fox"))
		})
		if asked.Load() > 20 {
			h.Errorf("asked %d times", asked.Load())
		}
		_, err := h.Runs.CreateRun(h.Context(), asking(h, who, "cost", "a fox"))
		if n := h.Count(`SELECT count(*) FROM run`); n != 1 || err != nil && !fault.Is(err, fault.ActiveRunCap) {
			h.Errorf("create after that = %v with %d runs, want one run", err, n)
		}
	})
}
