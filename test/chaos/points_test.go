package chaos

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var hit = regexp.MustCompile(`failpoint\.Hit\("([a-z_.0-9]+)"\)`)

// TestEveryCrashPointIsTried finds the crash points in the program's source, and
// expects each to be in the list of this package or in a test that kills the
// program there.
func TestEveryCrashPointIsTried(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	eachFile(t, "../../internal", func(path, text string) {
		for _, m := range hit.FindAllStringSubmatch(text, -1) {
			found[m[1]] = true
		}
	})
	if len(found) < 20 {
		t.Fatalf("only %d crash points were found", len(found))
	}
	tried := map[string]bool{}
	for _, dir := range []string{"../e2e", "../nodes"} {
		eachFile(t, dir, func(path, text string) {
			for name := range found {
				tried[name] = tried[name] || strings.Contains(text, name+":") || strings.Contains(text, `"`+name+`"`)
			}
		})
	}
	for name := range found {
		if !tried[name] && !slices.Contains(points, name) {
			t.Errorf("no test kills the program at %s", name)
		}
	}
	for _, name := range points {
		if !found[name] {
			t.Errorf("the crash point %s does not exist", name)
		}
	}
}

// eachFile calls fn with the Go files below a folder.
func eachFile(t *testing.T, dir string, fn func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		fn(path, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
