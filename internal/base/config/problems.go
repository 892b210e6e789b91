package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is an invalid setting.
type Problem struct {
	Name string // name of the setting
	Text string

	// From is the source of the value: a file and its line, a variable or a
	// flag; empty for a default.
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

// Problems are all problems of the settings, one per line.
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

// asError returns nil if there are no problems.
func (p Problems) asError() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
