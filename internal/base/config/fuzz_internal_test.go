package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzNewSources proves that a settings file is refused with the name of the
// file, or read, each time in the same way.
func FuzzNewSources(f *testing.F) {
	for _, text := range []string{"", "limits: {active_runs: 5}\n", "operators: [a@example.com]\n", "a: *b", "a: &a [*a]", "- 1", "limits.active_runs: 1\nlimits: {active_runs: 2}", "a: !!binary x", "? [a]\n: b", "a: [[1]]", "\t", "a: ~"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "settings.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"--config", file}
		getenv := func(string) string { return "" }
		first, err := NewSources(args, getenv)
		second, again := NewSources(args, getenv)
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), file) || again == nil || again.Error() != err.Error() {
				t.Errorf("%q = %v, then %v", text, err, again)
			}
		case again != nil || !maps.Equal(first.file, second.file) || len(first.file) > len(text):
			t.Errorf("%q = %v, then %v, %v", text, first.file, second.file, again)
		}
	})
}
