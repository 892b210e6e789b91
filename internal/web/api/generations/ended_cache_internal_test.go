package api

import (
	"fmt"
	"testing"
)

func TestEndedRunsAreKeptForASecond(t *testing.T) {
	t.Parallel()
	var e endedRuns
	anna := shownRun{"run", "account", "anna"}
	e.put(anna, 5, []byte("a"))
	for _, c := range []struct {
		name   string
		key    shownRun
		second int64
		want   string
	}{
		{"the same", anna, 5, "a"},
		{"another run", shownRun{"other", "account", "anna"}, 5, ""},
		{"another account", shownRun{"run", "other", "anna"}, 5, ""},
		{"another viewer", shownRun{"run", "account", "bert"}, 5, ""},
		{"a second later", anna, 6, ""},
		{"a second before", anna, 4, ""},
	} {
		if got := string(e.get(c.key, c.second)); got != c.want {
			t.Errorf("%s = %q, want %q", c.name, got, c.want)
		}
	}
	e.put(shownRun{"run", "account", "bert"}, 6, []byte("b"))
	if e.get(anna, 6) != nil {
		t.Error("what was shown a second ago is shown again")
	}
	e.forget()
	if e.get(shownRun{"run", "account", "bert"}, 6) != nil {
		t.Error("what was forgotten is shown")
	}
	for i := range maxEnded + 1 {
		e.put(shownRun{fmt.Sprint(i), "", ""}, 7, []byte("x"))
	}
	if len(e.bodies) > maxEnded {
		t.Errorf("%d are kept", len(e.bodies))
	}
}
