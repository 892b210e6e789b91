package generation_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

func TestOneKeyIsOneRun(t *testing.T) {
	generationtest.Worlds(t, nil, func(h *house) {
		anna, bert := h.Person(100), h.Person(100)
		d := h.Draft(own(anna), "cost")
		d.Key, d.Fingerprint = "key", "print"
		answers := make([]string, 64)
		var fresh atomic.Int64
		dbtest.Together(64, func(i int) {
			c, err := create(h, d)
			if err != nil {
				h.Errorf("create: %v", err)
			}
			if !c.Replayed {
				fresh.Add(1)
			}
			answers[i] = fmt.Sprint(string(c.Response), c.PollAfter)
		})
		for _, a := range answers {
			if a != answers[0] || a == "" {
				h.Fatalf("answers %q and %q", a, answers[0])
			}
		}
		if n := h.Count(`SELECT count(*) FROM run`); n != 1 || fresh.Load() != 1 {
			h.Errorf("%d runs, %d fresh answers", n, fresh.Load())
		}
		if n := h.Count(`SELECT count(*) FROM rate_log`); n != 1 {
			h.Errorf("%d count, want 1", n)
		}
		c, found, err := h.Runs.Replay(h.Context(), anna, "key", "print")
		if err != nil || !found || fmt.Sprint(string(c.Response), c.PollAfter) != answers[0] || !c.Replayed || fmt.Sprint(c.Rooms) != "[{9 1m0s} {99 1h0m0s}]" {
			h.Errorf("replay = %+v, %v, %v", c, found, err)
		}
		if known, err := h.Runs.Known(h.Context(), anna, "key"); err != nil || !known {
			h.Errorf("known = %v, %v", known, err)
		}

		other := d
		other.Fingerprint = "another"
		before := h.Rows()
		_, err = create(h, other)
		if f := refused(h, "another request", err, fault.IdempotencyKeyConflict); f.Details["reason"] != nil {
			h.Errorf("details = %v", f.Details)
		}
		_, _, err = h.Runs.Replay(h.Context(), anna, "key", "another")
		refused(h, "another request", err, fault.IdempotencyKeyConflict)
		if h.Rows() != before {
			h.Error("a conflict left a trace")
		}
		if _, found, err := h.Runs.Replay(h.Context(), bert, "key", "print"); found || err != nil {
			h.Errorf("another's key: %v, %v", found, err)
		}
		his := d
		his.Principal = own(bert)
		if r := h.Create(his); r.PersonID != bert {
			h.Errorf("his run is %s's", r.PersonID)
		}
		h.Pass(24*time.Hour - time.Microsecond)
		if c, err := create(h, d); err != nil || !c.Replayed {
			h.Errorf("at the end of its life: %v, %v", c.Replayed, err)
		}
		h.Pass(time.Microsecond)
		if c, err := create(h, d); err != nil || c.Replayed {
			h.Errorf("a key that has lived: %v, %v", c.Replayed, err)
		}
	})
}

// TestAKeyInUse has a request wait for another that takes too long.
func TestAKeyInUse(t *testing.T) {
	generationtest.Worlds(t, nil, func(h *house) {
		anna := h.Person(0)
		d := h.Draft(own(anna), "free")
		d.Key = "key"
		hasty := h.Service(func(s *generation.Settings) { s.KeyWait = 50 * time.Millisecond })
		enough := errors.New("enough")
		_, err := h.Runs.Create(h.Context(), d, func(run.Run) ([]byte, error) {
			_, err := hasty.Create(h.Context(), d, generationtest.Render)
			f := refused(h, "the second", err, fault.IdempotencyKeyConflict)
			if f.Details["reason"] != "in_flight" || f.RetryAfter <= 0 {
				h.Errorf("in flight = %#v", f)
			}
			return nil, enough
		})
		if !errors.Is(err, enough) {
			h.Errorf("the first = %v", err)
		}
		if known, err := h.Runs.Known(h.Context(), anna, "key"); err != nil || known {
			h.Errorf("known = %v, %v", known, err)
		}
		h.Create(d)
	})
}
