package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"atelier/test/visitor"
)

const (
	// lighthouseRuns is how often Lighthouse looks at the page; the figures are
	// the medians.
	lighthouseRuns = 5
	// wantedScore is the score that Create must have in each category.
	wantedScore = 0.95
)

// lighthouseReport is the part of a report of Lighthouse that is used here.
type lighthouseReport struct {
	Categories map[string]struct {
		Score float64 `json:"score"`
	} `json:"categories"`
	Audits map[string]struct {
		NumericValue float64 `json:"numericValue"`
	} `json:"audits"`
	RunWarnings []string `json:"runWarnings"`
}

// TestStudioLighthouse lets Lighthouse judge Create with a feed of 12 results,
// as a person with a desktop computer sees it. "make lighthouse" runs it;
// otherwise it is skipped. A machine that does other work lowers the score.
func TestStudioLighthouse(t *testing.T) {
	program := os.Getenv("ATELIER_LIGHTHOUSE")
	if program == "" {
		t.Skip("make lighthouse measures the page")
	}
	e := newEasel(t, newSite(t))
	for seed, prompt := range []string{"cactus in the desert", "owl at night", "fox in the forest"} {
		e.draw("Sketch", 4, map[string]any{"prompt": prompt, "seed": seed + 3})
	}
	artist := visitor.New(e.node.url)
	if err := artist.SignIn("artist@example.com", password); err != nil {
		t.Fatal(err)
	}
	headers := writeHeaders(t, map[string]string{"Cookie": artist.CookieHeader()})

	scores := map[string][]float64{}
	figures := map[string][]float64{}
	for range lighthouseRuns {
		report := runLighthouse(t, program, e.node.url+"/", headers)
		for name, category := range report.Categories {
			scores[name] = append(scores[name], category.Score)
		}
		for _, name := range []string{"first-contentful-paint", "largest-contentful-paint", "speed-index", "total-blocking-time", "cumulative-layout-shift"} {
			figures[name] = append(figures[name], report.Audits[name].NumericValue)
		}
		for _, warning := range report.RunWarnings {
			t.Log(warning)
		}
	}

	for _, name := range []string{"performance", "accessibility", "best-practices"} {
		t.Logf("%s: %.0f of 100, of %.2f", name, 100*median(scores[name]), scores[name])
		if median(scores[name]) < wantedScore {
			t.Errorf("the score of Create in %s is %.2f, want at least %.2f", name, median(scores[name]), wantedScore)
		}
	}
	for name, values := range figures {
		t.Logf("%s: %.3g", name, median(values))
	}
}

// writeHeaders stores the headers that Lighthouse sends with each request, and
// returns the path of the file.
func writeHeaders(t *testing.T, headers map[string]string) string {
	t.Helper()
	content, err := json.Marshal(headers)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "headers.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runLighthouse returns what Lighthouse reports about a page on a desktop
// computer.
func runLighthouse(t *testing.T, program, address, headers string) lighthouseReport {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	command := exec.CommandContext(t.Context(), program, address, "--quiet", "--preset=desktop", "--output=json", "--output-path="+path,
		"--extra-headers="+headers, "--only-categories=performance,accessibility,best-practices",
		"--chrome-flags=--headless --no-sandbox --disable-background-networking")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, output)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var report lighthouseReport
	if err := json.Unmarshal(content, &report); err != nil {
		t.Fatal(err)
	}
	return report
}

// median returns the middle one of some values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
