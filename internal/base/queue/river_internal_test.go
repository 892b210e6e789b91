package queue

import (
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// TestNextRetry also checks the last attempt: River calls NextRetry after it if
// the worker died, and the job must then end immediately.
func TestNextRetry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name    string
		retry   []time.Duration
		attempt int
		want    time.Duration
	}{
		{"first", []time.Duration{time.Second, 6 * time.Hour}, 1, time.Second},
		{"second", []time.Duration{time.Second, 6 * time.Hour}, 2, 6 * time.Hour},
		{"last", []time.Duration{time.Second, 6 * time.Hour}, 3, 0},
		{"only", nil, 1, 0},
	} {
		w := &worker{handler: &Handler{Retry: c.retry}, now: func() time.Time { return now }}
		got := w.NextRetry(&river.Job[payload]{JobRow: &rivertype.JobRow{Attempt: c.attempt}})
		if got != now.Add(c.want) {
			t.Errorf("%s attempt: next retry in %s, want %s", c.name, got.Sub(now), c.want)
		}
	}
}
