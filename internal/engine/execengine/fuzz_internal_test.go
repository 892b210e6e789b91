package execengine

import (
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"atelier/internal/engine"
	"atelier/internal/engine/subprocess"
)

// recordingSink keeps what a program's messages lead to.
type recordingSink struct {
	engine.Sink
	progress []float64
	previews [][]byte
	results  []string
}

func (s *recordingSink) Progress(fraction float64) { s.progress = append(s.progress, fraction) }
func (s *recordingSink) Preview(picture []byte)    { s.previews = append(s.previews, picture) }
func (s *recordingSink) Output(_ context.Context, r engine.Result) error {
	text, err := io.ReadAll(r.Data)
	s.results = append(s.results, string(text))
	return err
}

// FuzzMessages proves that whatever a program writes to its standard output,
// progress only grows and stays between 0 and 1, only files of the working
// folder become results and each of them once, previews are pictures, and an
// error message is one line without addresses.
func FuzzMessages(f *testing.F) {
	for _, lines := range []string{
		`{"progress": 0.5}` + "\n" + `{"progress": 0.2}` + "\n" + `{"progress": 7}`,
		`{"progress": -1e308}` + "\n" + `{"progress": 1}` + "\n" + `{"progress": 1}`,
		`{"output": "out/a"}` + "\n" + `{"output": "out/./a"}` + "\n" + `{"output": "out/b"}` + "\n" + `{"output": "out/c"}`,
		`{"output": "../secret"}`, `{"output": "/etc/passwd"}`, `{"output": "out/link"}`, `{"output": "out"}`, `{"output": "out/a\u0000"}`, `{"output": ""}`,
		`{"preview": "out/picture"}` + "\n" + `{"preview": "out/a"}` + "\n" + `{"preview": "out/link"}` + "\n" + `{"preview": "."}`,
		`{"error": {"message": "no model at /srv/models/x.bin, see https://user:pass@host/page", "code": "unavailable"}}`,
		`{"error": {"message": "line\nline\u2028\u0007", "code": "nonsense", "transient": true}}`, `{"error": {}}`, `{"error": null, "progress": null}`,
		`{"progress": "0.5"}`, `{"progress": 0.5`, `[1]`, `text`, ` {} `, `{"output": "out/a", "error": {"message": "x"}}`,
	} {
		f.Add([]byte(lines))
	}

	parent := f.TempDir()
	if err := os.WriteFile(filepath.Join(parent, "secret"), []byte("secret"), 0o600); err != nil {
		f.Fatal(err)
	}
	folder, err := subprocess.NewFolder(parent)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { folder.Close() })
	if err := folder.MakeFolder("out"); err != nil {
		f.Fatal(err)
	}
	const picture = "\x89PNG\r\n\x1a\n and so on"
	for name, content := range map[string]string{"a": "first", "b": "second", "c": "third", "picture": picture} {
		if err := folder.Write("out/"+name, []byte(content)); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.Symlink("../../secret", folder.FilePath("out", "link")); err != nil {
		f.Fatal(err)
	}

	f.Fuzz(func(t *testing.T, lines []byte) {
		sink := &recordingSink{}
		killed := false
		n := &programOutput{
			killProgram: func() { killed = true },
			job:         engine.Job{NumResults: 2},
			out:         sink,
			folder:      folder,
			announced:   map[string]bool{},
		}
		for line := range strings.Lines(string(lines)) {
			n.handleLine(t.Context(), []byte(line))
		}

		last := 0.0
		for _, p := range sink.progress {
			if math.IsNaN(p) || p <= last || p > 1 {
				t.Errorf("%q reports the progress %v", lines, sink.progress)
			}
			last = p
		}
		seen := map[string]bool{}
		for _, result := range sink.results {
			if result != "first" && result != "second" && result != "third" && result != picture || seen[result] {
				t.Errorf("%q delivers %q", lines, sink.results)
			}
			seen[result] = true
		}
		if len(sink.results) > 2 || len(sink.results) != n.delivered {
			t.Errorf("%q delivers %d results, and counts %d", lines, len(sink.results), n.delivered)
		}
		for _, preview := range sink.previews {
			if string(preview) != picture {
				t.Errorf("%q shows %q", lines, preview)
			}
		}
		if killed != (n.failure != nil) {
			t.Errorf("%q: killed %t, failure %v", lines, killed, n.failure)
		}
		if n.reported != nil {
			checkReported(t, n.reported)
		}
	})
}

func checkReported(t *testing.T, e *engine.Error) {
	t.Helper()
	if e.Code != engine.Failed && e.Code != engine.Unavailable && e.Code != engine.Refused {
		t.Errorf("the code is %q", e.Code)
	}
	m := e.Message
	if m == "" || !utf8.ValidString(m) || utf8.RuneCountInString(m) > maxMessage+1 || strings.Contains(m, "://") && pathPattern.MatchString(m) ||
		strings.ContainsFunc(m, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }) {
		t.Errorf("the message is %q", m)
	}
}
