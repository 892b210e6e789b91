package term_test

import (
	"strings"
	"testing"

	"atelier/internal/cli/term"
)

func TestFormatTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"CREATED", "TOOL", "PROMPT", "ID"},
		{"2026-11-17 04:44", "画像", "a red fox in a forest in autumn", "5f0c1d9e-4b7a-4c7e-8f5e-2a9b6d3c1e70"},
	}
	for width, want := range map[int]string{
		120: "" +
			"CREATED           TOOL  PROMPT                           ID\n" +
			"2026-11-17 04:44  画像  a red fox in a forest in autumn  5f0c1d9e-4b7a-4c7e-8f5e-2a9b6d3c1e70\n",
		80: "" +
			"CREATED           TOOL  PROMPT              ID\n" +
			"2026-11-17 04:44  画像  a red fox in a fo…  5f0c1d9e-4b7a-4c7e-8f5e-2a9b6d3c1e70\n",
		40: "" +
			"CREATED           TOOL  PROMPT\n" +
			"  ID\n" +
			"2026-11-17 04:44  画像  a red fox in a …\n" +
			"  5f0c1d9e-4b7a-4c7e-8f5e-2a9b6d3c1e70\n",
		20: "" +
			"CREATED           T…\n" +
			"  ID\n" +
			"2026-11-17 04:44  …\n" +
			"  5f0c1d9e-4b7a-4c7e-8f5e-2a9b6d3c1e70\n",
	} {
		if got := term.FormatTable(rows, width, true); got != want {
			t.Errorf("%d columns:\n%s", width, got)
		}
	}
	for width := range 60 { // nothing panics, and without ids no line is too long
		for line := range strings.Lines(term.FormatTable(rows, width, false)) {
			if n := term.CountColumns(line); n > width {
				t.Errorf("a line of %d columns in a terminal of %d: %s", n, width, line)
			}
		}
		term.FormatTable(rows, width, true)
	}
	if got := term.FormatTable(nil, 80, true); got != "" {
		t.Errorf("no rows: %q", got)
	}
}

func TestFormatFields(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"run", "5f0c1d9e-4b7a-4c7e-8f5e-2a9b6d3c1e70"}, {"prompt", "a red fox in a forest"}, {"error", ""}}
	want := "" +
		"run     5f0c1d9e-4b7a-4c7e-8f5e-2a9b6d3c1e70\n" +
		"prompt  a red fox in\n" +
		"        a forest\n" +
		"error\n"
	if got := term.FormatFields(rows, 20); got != want {
		t.Errorf("got:\n%s", got)
	}
}
