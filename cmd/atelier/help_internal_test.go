package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// commandLine is the model of the command line.
func commandLine(t *testing.T) *kong.Application {
	t.Helper()
	parser, err := kong.New(new(cli), helpWords)
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model
}

// TestSettingsTags finds names in the tags that no setting has.
func TestSettingsTags(t *testing.T) {
	t.Parallel()
	model := commandLine(t)
	isSetting := func(name string) bool {
		return slices.ContainsFunc(model.Flags, func(f *kong.Flag) bool {
			return f.Name == name || strings.HasSuffix(name, ".") && strings.HasPrefix(f.Name, name)
		})
	}
	for _, node := range model.Leaves(false) {
		names, _ := usedSettings(node)
		for _, name := range names {
			if !isSetting(name) {
				t.Errorf("%s takes %q, which is no setting", commandPath(node), name)
			}
		}
	}
}

// TestHelpPages reads the help of every command and group of commands as
// somebody with a terminal of 80 columns does.
func TestHelpPages(t *testing.T) {
	t.Parallel()
	var pages [][]string
	var walk func(*kong.Node)
	walk = func(node *kong.Node) {
		pages = append(pages, strings.Fields(commandPath(node)))
		for _, child := range node.Children {
			walk(child)
		}
	}
	for _, child := range commandLine(t).Children {
		walk(child)
	}
	if len(pages) < 50 {
		t.Errorf("%d pages", len(pages))
	}
	for _, words := range pages {
		var page bytes.Buffer
		s := streams{getenv: func(string) string { return "" }, stdout: &page, stderr: &page}
		if err := runCommand(t.Context(), append([]string{"help"}, words...), s); err != nil {
			t.Errorf("%v: %v", words, err)
		}
		text := page.String()
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%v: a line of %d characters: %s", words, n, line)
			}
		}
		if strings.Contains(text, "Folder of the embedded database") {
			t.Errorf("%v explains the settings again", words)
		}
		if !strings.HasPrefix(text, "Usage: atelier "+strings.Join(words, " ")) {
			t.Errorf("%v: %s", words, text)
		}
	}
}
