package main

import (
	"slices"
	"testing"

	"atelier/internal/testkit/watch"
)

func TestAgainCommand(t *testing.T) {
	failed := failedTest{
		command: []string{"go", "test", "-timeout", "60m", "-p", "1", "-race", "-gcflags=modernc.org/...=-race=false", "atelier", "atelier/test/e2e", "./web"},
		pkg:     "atelier/test/e2e",
		name:    "TestPages",
	}
	want := []string{"go", "test", "-timeout", "60m", "-p", "1", "-race", "-gcflags=modernc.org/...=-race=false", "-count=1", "-parallel=1", "-run", "^TestPages$", "atelier/test/e2e"}
	if got := failed.againCommand(); !slices.Equal(got, want) {
		t.Errorf("command = %q, want %q", got, want)
	}
}

// TestStolenShare reads the first lines of two moments.
func TestStolenShare(t *testing.T) {
	before := parseProcessorTimes("cpu  100 0 100 700 0 0 0 100 0 0\ncpu0 1 1 1 1\n")
	after := parseProcessorTimes("cpu  200 0 200 700 0 0 0 300 7 7\n")
	if got := after.stolenSince(before); got != 0.5 {
		t.Errorf("share = %v, want 0.5", got)
	}
	if got := parseProcessorTimes("").stolenSince(before); got != 0 {
		t.Errorf("share without times = %v, want 0", got)
	}
}

// TestOutcomes reads what "go test" reports of a failed test, of a package that
// was not built, and of a data race.
func TestOutcomes(t *testing.T) {
	const pkg = "atelier/x"
	late := event{Action: "attr", Package: pkg, Test: "TestA/sqlite", Key: watch.LateAttribute}
	for name, c := range map[string]struct {
		events                []event
		failed                int
		again, againIfStarved bool // whether it may run again
	}{
		"failed test":    {[]event{{Action: "fail", Package: pkg, Test: "TestA/sqlite"}, {Action: "fail", Package: pkg, Test: "TestA"}, {Action: "fail", Package: pkg}}, 1, false, true},
		"late test":      {[]event{late, {Action: "fail", Package: pkg, Test: "TestA"}, {Action: "fail", Package: pkg}}, 1, true, true},
		"late and other": {[]event{late, {Action: "fail", Package: pkg, Test: "TestA"}, {Action: "fail", Package: pkg, Test: "TestB"}, {Action: "fail", Package: pkg}}, 2, false, true},
		"not built":      {[]event{{Action: "fail", Package: pkg}}, 0, false, false},
		"data race":      {[]event{late, {Action: "output", Package: pkg, Test: "TestA", Output: "WARNING: DATA RACE\n"}, {Action: "fail", Package: pkg, Test: "TestA"}, {Action: "fail", Package: pkg}}, 1, false, false},
		"panic":          {[]event{late, {Action: "output", Package: pkg, Test: "TestA", Output: "panic: no\n"}, {Action: "fail", Package: pkg, Test: "TestA"}, {Action: "fail", Package: pkg}}, 1, false, false},
		"passed":         {[]event{{Action: "pass", Package: pkg, Test: "TestA"}, {Action: "pass", Package: pkg}}, 0, false, false},
	} {
		r := newReader()
		for _, e := range c.events {
			r.take(e, []string{"go", "test"})
		}
		if len(r.failed) != c.failed || r.mayRunAgain(false) != c.again || r.mayRunAgain(true) != c.againIfStarved {
			t.Errorf("%s: %d failed, again %t, on a starved machine %t, want %d, %t and %t",
				name, len(r.failed), r.mayRunAgain(false), r.mayRunAgain(true), c.failed, c.again, c.againIfStarved)
		}
	}
}
