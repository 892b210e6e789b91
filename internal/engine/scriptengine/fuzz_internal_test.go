package scriptengine

import (
	"encoding/json"
	"testing"
)

// FuzzParseScript proves that a script has as many steps as its list, each with
// exactly one key.
func FuzzParseScript(f *testing.F) {
	for _, text := range []string{`[]`, `[{"progress": 0.5}]`, `[{"sleep": "1s"}, {"fail": {"code": "FAILED", "message": "no"}}]`, `[{"hang": false}]`, `[{"preview": true, "hang": true}]`, `[null]`, `[{"x": 1}]`, `[] []`, `{`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := parseScript(text)
		if err != nil {
			return
		}
		var list []map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != len(steps) {
			t.Fatalf("%q has %d steps, want %d: %v", text, len(steps), len(list), err)
		}
		for i, s := range steps {
			if len(list[i]) != 1 || s.validate() != nil {
				t.Errorf("step %d of %q passes", i, text)
			}
		}
	})
}
