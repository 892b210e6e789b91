package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// capturePage is the page with captures of terminals.
const capturePage = "../../docs/cli.md"

// updatesCaptures reports whether the captures are written anew: UPDATE=1.
func updatesCaptures() bool { return os.Getenv("UPDATE") != "" }

var capturing sync.Mutex // several tests write the page

// compareCapture compares what a terminal shows with the code block "terminal
// NAME" of the page: the same lines, but for their order, numbers, codes and
// bars. With UPDATE=1 it writes the block instead.
func compareCapture(t *testing.T, name, screen string) {
	t.Helper()
	capturing.Lock()
	defer capturing.Unlock()
	text, err := os.ReadFile(capturePage)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)(```terminal " + name + "\n)(.*?)(```\n)").FindSubmatchIndex(text)
	if block == nil {
		t.Fatalf("%s has no block \"terminal %s\"", filepath.Base(capturePage), name)
	}
	before, shown, after := text[:block[4]], string(text[block[4]:block[5]]), text[block[5]:]
	if updatesCaptures() {
		page := slices.Concat(before, []byte(screen), after)
		if err := os.WriteFile(capturePage, page, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, want := describeShape(screen), describeShape(shown); !slices.Equal(got, want) {
		t.Errorf("%s is out of date: UPDATE=1 writes it anew. The terminal shows:\n%s", name, screen)
		t.Logf("lines: %q\nwant:  %q", got, want)
	}
}

// describeShape returns the lines of a screen without what differs each time,
// in alphabetical order: runs side by side end in any order.
func describeShape(screen string) []string {
	for _, r := range []struct{ pattern, to string }{
		{`\b[A-Z0-9]{4}-[A-Z0-9]{4}\b`, "CODE"},
		{`\[[━·]+\]`, "BAR"},
		{`, number [0-9]+ in the queue`, ""},
		{`[0-9]+`, "N"},
		{`[ \t]+`, " "},
	} {
		screen = regexp.MustCompile(r.pattern).ReplaceAllString(screen, r.to)
	}
	return slices.Sorted(strings.Lines(screen))
}
