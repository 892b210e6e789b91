package generations

import (
	"fmt"
	"testing"
)

func TestEndedRunsAreKeptForASecond(t *testing.T) {
	t.Parallel()
	var e EndedCache
	anna := cacheKey{"run", "account", "anna", false}
	e.keepBody(anna, 5, []byte("a"))
	for _, c := range []struct {
		name   string
		key    cacheKey
		second int64
		want   string
	}{
		{"the same", anna, 5, "a"},
		{"another run", cacheKey{"other", "account", "anna", false}, 5, ""},
		{"another account", cacheKey{"run", "other", "anna", false}, 5, ""},
		{"another viewer", cacheKey{"run", "account", "bert", false}, 5, ""},
		{"with inputs", cacheKey{"run", "account", "anna", true}, 5, ""},
		{"a second later", anna, 6, ""},
		{"a second before", anna, 4, ""},
	} {
		if got := string(e.findBody(c.key, c.second)); got != c.want {
			t.Errorf("%s = %q, want %q", c.name, got, c.want)
		}
	}
	e.keepBody(cacheKey{"run", "account", "bert", false}, 6, []byte("b"))
	if e.findBody(anna, 6) != nil {
		t.Error("what was shown a second ago is shown again")
	}
	e.DropAll()
	if e.findBody(cacheKey{"run", "account", "bert", false}, 6) != nil {
		t.Error("what was forgotten is shown")
	}
	for i := range maxEnded + 1 {
		e.keepBody(cacheKey{fmt.Sprint(i), "", "", false}, 7, []byte("x"))
	}
	if len(e.bodies) > maxEnded {
		t.Errorf("%d are kept", len(e.bodies))
	}
}
