package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is an invalid setting.
type Problem struct {
	Name string // name of the setting, such as limits.active_runs
	Text string

	// From is the source of the value: the path of the settings file, an
	// environment variable or a flag. It is empty for a default. Line is the
	// line in the file, or 0.
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

// Problems are all invalid settings, as one error with a line for each.
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

// asError returns p as an error, or nil if p is empty.
func (p Problems) asError() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
