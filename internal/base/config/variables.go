package config

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"atelier/internal/base/sanitize"
)

// prefix begins the names of all environment variables of the program.
const prefix = "ATELIER_"

// own are the environment variables of the program that are not settings.
var own = []string{"ATELIER_TOKEN", "ATELIER_SERVICE", "ATELIER_PROFILE", "ATELIER_PROFILES", "ATELIER_CRASH"}

// UnknownVariables returns a warning for each ATELIER_… environment variable
// that the program does not use, in alphabetical order: a misspelt variable
// would otherwise be ignored silently. others are variables that the program
// uses in addition to its settings.
func UnknownVariables(environ []string, app *kong.Application, others []string) []string {
	known := slices.Concat(own, others)
	var collect func(n *kong.Node)
	collect = func(n *kong.Node) {
		for _, f := range n.Flags {
			known = append(known, f.Tag.Envs...)
			if n.Type == kong.ApplicationNode {
				known = append(known, Variable(f.Name))
			}
		}
		for _, child := range n.Children {
			collect(child)
		}
	}
	collect(app.Node)

	slices.Sort(known)
	var rest []string
	for _, name := range known {
		rest = append(rest, strings.TrimPrefix(name, prefix))
	}
	var warnings []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, "ATELIER_TEST_") || slices.Contains(known, name) {
			continue
		}
		warning := name + " is not a setting"
		// Names are compared without the prefix. The common prefix would make
		// all of them similar.
		if meant := sanitize.Nearest(strings.TrimPrefix(name, prefix), rest); meant != "" {
			warning += "; did you mean " + prefix + meant + "?"
		}
		warnings = append(warnings, warning)
	}
	slices.Sort(warnings)
	return warnings
}
