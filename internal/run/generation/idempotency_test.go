package generation_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/person"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
)

// answer writes everything of a run that the answer to its create shows.
func answer(c generation.Created) string {
	r := c.Run
	return fmt.Sprint(r.ID, r.TeamID, r.Created.UTC(), r.Estimated, r.PollAfter)
}

func TestOneKeyIsOneRun(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
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
			answers[i] = answer(c)
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
		used, err := h.Runs.FindKey(h.Context(), anna, "key")
		if err != nil || used == nil {
			h.Fatalf("the key = %v, %v", used, err)
		}
		c, err := h.Runs.ReplayCreate(h.Context(), anna, *used, "print")
		if err != nil || answer(c) != answers[0] || !c.Replayed || fmt.Sprint(c.Rooms) != "[{9 1m0s} {99 1h0m0s}]" {
			h.Errorf("replay = %+v, %v", c, err)
		}

		other := d
		other.Fingerprint = "another"
		before := h.Rows()
		_, err = create(h, other)
		if f := refused(h, "another request", err, fault.IdempotencyKeyConflict); f.Details["reason"] != nil {
			h.Errorf("details = %v", f.Details)
		}
		_, err = h.Runs.ReplayCreate(h.Context(), anna, *used, "another")
		refused(h, "another request", err, fault.IdempotencyKeyConflict)
		if h.Rows() != before {
			h.Error("a conflict left a trace")
		}
		if k, err := h.Runs.FindKey(h.Context(), bert, "key"); k != nil || err != nil {
			h.Errorf("another's key: %v, %v", k, err)
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
	generationtest.EachInstallation(t, nil, func(h *installation) {
		anna := h.Person(0)
		d := h.Draft(own(anna), "free")
		d.Key = "key"
		hasty := h.Service(func(s *generation.Settings) { s.KeyWait = 50 * time.Millisecond })
		enough := errors.New("enough")
		err := h.DB.Write(h.Context(), func(tx *sqldb.Tx) error { // as the first create does
			if err := person.Lock(h.Context(), tx, anna); err != nil {
				return err
			}
			_, err := hasty.CreateRun(h.Context(), d)
			f := refused(h, "the second", err, fault.IdempotencyKeyConflict)
			if f.Details["reason"] != "in_flight" || f.RetryAfter <= 0 {
				h.Errorf("in flight = %#v", f)
			}
			return enough
		})
		if !errors.Is(err, enough) {
			h.Errorf("the first = %v", err)
		}
		if k, err := h.Runs.FindKey(h.Context(), anna, "key"); err != nil || k != nil {
			h.Errorf("the key = %v, %v", k, err)
		}
		h.Create(d)
	})
}
