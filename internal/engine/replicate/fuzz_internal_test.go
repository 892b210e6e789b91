package replicate

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzTextOutput proves that the text of an output is the string or the strings
// in it, in their order, and that any other output has none.
func FuzzTextOutput(f *testing.F) {
	for _, output := range []string{`"a fox"`, `["a ", "fox"]`, `["https://a/b.txt"]`, `[]`, `null`, `7`, `{"text": "a"}`, `["a", 7]`, `[null]`, `"\ud800"`, `[`} {
		f.Add([]byte(output), 0)
	}
	f.Add([]byte(`["https://a/b.txt"]`), 1)
	f.Fuzz(func(t *testing.T, output []byte, files int) {
		got := textOutput(output, files)
		var decoded any
		if json.Unmarshal(output, &decoded) != nil {
			if got != "" {
				t.Errorf("%q = %q", output, got)
			}
			return
		}
		want := ""
		switch v := decoded.(type) {
		case string:
			want = v
			if files == 1 {
				want = ""
			}
		case []any:
			var parts []string
			for _, one := range v {
				text, ok := one.(string)
				if !ok && one != nil {
					parts = nil
					v = nil
					break
				}
				parts = append(parts, text)
			}
			want = strings.Join(parts, "")
			if len(v) == 1 && files == 1 {
				want = ""
			}
		}
		if got != want {
			t.Errorf("%q with %d files = %q, want %q", output, files, got, want)
		}
	})
}
