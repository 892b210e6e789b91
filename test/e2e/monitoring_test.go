package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"atelier/internal/testkit/servers"
	"atelier/internal/testkit/watch"
)

const monitoring = "../../docs/monitoring"

// scrape reads the metrics of a server.
func scrape(t *testing.T, address string) string {
	t.Helper()
	res, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("scrape = %d, %v", res.StatusCode, err)
	}
	return string(body)
}

var (
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
	listLine   = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (node|all) \\| (\\w+) \\|")
	metricName = regexp.MustCompile(`\b(?:atelier|process|go)_\w+`)
)

// TestMonitoring holds docs/monitoring to what a real server tells: the list
// names every metric with its type, and the dashboard and the rules name no
// other. promtool looks at all of it where there is one.
func TestMonitoring(t *testing.T) {
	needOneProcess(t, "it reads the metrics and the log of one process")
	each(t, func(t *testing.T, s *site) {
		address := freeAddress(t)
		s.env = append(s.env, "ATELIER_METRICS_LISTEN="+address)
		n := s.serve()
		n.get("/healthz")
		n.get("/readyz")
		n.get("/api/v2/tools")
		body := scrape(t, address)
		watch.Until(t, "the pool of the built-in engines", func() bool { return strings.Contains(readPools(t, address), `{"name":"cpu","workers":`) })

		types := map[string]string{}
		for _, m := range typeLine.FindAllStringSubmatch(body, -1) {
			types[m[1]] = m[2]
		}
		text, err := os.ReadFile("../../docs/monitoring.md")
		if err != nil {
			t.Fatal(err)
		}
		var listed []string
		for _, m := range listLine.FindAllStringSubmatch(string(text), -1) {
			listed = append(listed, m[1])
			if types[m[1]] != m[3] {
				t.Errorf("the list has %s as a %s, the server as %q", m[1], m[3], types[m[1]])
			}
		}
		if !slices.IsSorted(listed) || len(slices.Compact(slices.Clone(listed))) != len(listed) {
			t.Errorf("the list is not sorted: %v", listed)
		}
		for name := range types {
			if strings.HasPrefix(name, "atelier_") && !slices.Contains(listed, name) {
				t.Errorf("the list lacks %s", name)
			}
		}
		for file, expressions := range map[string][]string{"alerts.yaml": rules(t), "dashboard.json": panels(t)} {
			if len(expressions) < 10 {
				t.Errorf("%s has %d expressions", file, len(expressions))
			}
			for _, expression := range expressions {
				for _, name := range metricName.FindAllString(expression, -1) {
					if !known(types, name) {
						t.Errorf("%s names %s, which no server has: %s", file, name, expression)
					}
				}
			}
		}
		t.Run("promtool", func(t *testing.T) { promtool(t, body, "check", "metrics") })

		n.stop()
		servers.NeedShippedPrograms(t) // the line about tools that are left out is long
		shortLines(t, n.stderr.String())
	})
}

// TestRules has promtool look at the alert rules.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", filepath.Join(monitoring, "alerts.yaml"))
}

// known tells whether a server has a metric. A histogram has names of its own.
func known(types map[string]string, name string) bool {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && types[base] == "histogram" {
			return true
		}
	}
	kind, ok := types[name]
	return ok && kind != "histogram"
}

// rules gives the expressions of the alert rules.
func rules(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			all = append(all, rule.Expr)
		}
	}
	return all
}

// panels gives the expressions of the dashboard.
func panels(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, panel := range file.Panels {
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

// promtool runs promtool where it is installed. Debian has it in a package of
// 96 MB that starts a server, so CI does without.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is left out: install the package prometheus")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	if err := cmd.Run(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out.String())
	}
}

// shortLines holds what a server logs at its start to lines that a terminal
// shows, and keeps probes out of it.
func shortLines(t *testing.T, log string) {
	t.Helper()
	before, _, ready := strings.Cut(log, `"msg":"ready"`)
	if !ready || strings.Contains(log, "/healthz") || strings.Contains(log, "/readyz") {
		t.Errorf("log = %s", log)
	}
	for line := range strings.Lines(before) {
		if len(line) > 200 {
			t.Errorf("a line of %d characters at the start: %s", len(line), line)
		}
	}
}
