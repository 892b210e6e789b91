package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	h := &Handler{Retry: []time.Duration{time.Second, time.Minute}}
	bad := errors.New("bad")
	for _, c := range []struct {
		name    string
		attempt int
		err     error
		cause   error
		want    outcome
	}{
		{"done", 1, nil, nil, outcome{state: done}},
		{"done is done, whatever the cause", 1, nil, errStopping, outcome{state: done}},
		{"done without a lease", 1, nil, errLost, outcome{state: done}},
		{"first failure", 1, bad, nil, outcome{state: waiting, wait: time.Second}},
		{"second failure", 2, bad, nil, outcome{state: waiting, wait: time.Minute}},
		{"last failure", 3, bad, nil, outcome{state: failed}},
		{"timeout", 1, context.DeadlineExceeded, context.DeadlineExceeded, outcome{state: waiting, wait: time.Second}},
		{"give up", 1, fmt.Errorf("never: %w", GiveUp(bad)), nil, outcome{state: failed}},
		{"stopping on the last attempt", 3, bad, errStopping, outcome{state: waiting, free: true}},
		{"stopping, given up", 1, GiveUp(bad), errStopping, outcome{state: failed}},
		{"lost", 3, bad, errLost, outcome{state: running}},
	} {
		got := h.decideOutcome(c.attempt, c.err, c.cause)
		got.err = nil
		if got != c.want {
			t.Errorf("%s: outcome = %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestHandlersAreChecked(t *testing.T) {
	t.Parallel()
	do := func(context.Context, Work) error { return nil }
	good := Handler{Kind: "note", Do: do, Timeout: time.Second}
	for name, hs := range map[string][]Handler{
		"no handlers":      nil,
		"no kind":          {{Do: do, Timeout: time.Second}},
		"a kind with dots": {{Kind: "a.b", Do: do, Timeout: time.Second}},
		"a long kind":      {{Kind: strings.Repeat("x", 65), Do: do, Timeout: time.Second}},
		"nothing to do":    {{Kind: "note", Timeout: time.Second}},
		"no timeout":       {{Kind: "note", Do: do}},
		"negative wait":    {{Kind: "note", Do: do, Timeout: time.Second, Retry: []time.Duration{1, -1}}},
		"two of a kind":    {good, good},
	} {
		if _, err := prepareHandlers(hs); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	hs, err := prepareHandlers([]Handler{good, {Kind: "memo-2_x", Do: do, Timeout: time.Second, Parallel: 3}})
	if err != nil || hs[0].Parallel != 1 || hs[1].Parallel != 3 {
		t.Errorf("prepare = %+v, %v", hs, err)
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	o := outcome{err: errors.New("a\x00b\xff" + strings.Repeat("é", maxErrorText))}
	got := o.errorText()
	if !strings.HasPrefix(got, "abé") || len(got) > maxErrorText || strings.ToValidUTF8(got, "?") != got {
		t.Errorf("text = %.20q… of %d bytes", got, len(got))
	}
}

func TestRiverIsQuiet(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	log := slog.New(quiet{slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelInfo})}).With("a", 1).WithGroup("g")
	log.Info("news")
	log.Debug("more news")
	if b.Len() > 0 {
		t.Errorf("logged %s", b.String())
	}
	log.Warn("trouble")
	if !strings.Contains(b.String(), "level=WARN msg=trouble a=1") {
		t.Errorf("logged %q, want the warning", b.String())
	}
}
