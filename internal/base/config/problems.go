package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is a setting that cannot be.
type Problem struct {
	Name string // of the setting
	Text string

	// Where the value came from: a file and the line in it, or a variable or a
	// flag, or nothing for a default.
	From string
	Line int
}

func (p Problem) String() string {
	switch {
	case p.Line > 0:
		return fmt.Sprintf("%s:%d: %s: %s", p.From, p.Line, p.Name, p.Text)
	case p.From != "":
		return fmt.Sprintf("%s: %s (%s)", p.Name, p.Text, p.From)
	}
	return p.Name + ": " + p.Text
}

// Problems are all that is wrong with the settings, one on a line.
type Problems []Problem

func (p Problems) Error() string {
	ordered := slices.Clone(p)
	slices.SortFunc(ordered, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Text, b.Text))
	})
	lines := make([]string, 0, len(p))
	for _, one := range ordered {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n")
}

// asError is nil where there are none.
func (p Problems) asError() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
