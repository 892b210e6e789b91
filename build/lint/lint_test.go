package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMistakes expects that each linter finds the mistake that is made for it,
// and nothing else.
func TestMistakes(t *testing.T) {
	const name = "testdata/mistakes/mistakes.go"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for i, line := range strings.Split(string(text), "\n") {
		_, names, _ := strings.Cut(line, "// want ")
		for _, linter := range strings.Fields(names) {
			want = append(want, fmt.Sprintf("%s:%d %s", name, i+1, linter))
		}
	}
	problems, err := lint([]string{"./testdata/mistakes"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%s:%d %s", p.pos.Filename, p.pos.Line, p.linter))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
