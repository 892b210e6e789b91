// Command lint reports mistakes that neither vet nor staticcheck looks for. It
// reads the packages once for all of its linters; linters.go names them.
//
//	lint ./... atelier/client/...
//
// A comment "//nolint:NAME // reason" at the end of a line permits what the
// linter of that name found there. Tests, packages that only tests use, and
// generated files are not looked at: tests plant secrets, run commands and
// ignore errors on purpose.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

func main() {
	problems, err := lint(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// problem is what a linter found at a place.
type problem struct {
	pos     token.Position
	linter  string
	message string
}

func (p problem) String() string {
	return fmt.Sprintf("%s: %s (%s)", p.pos, p.message, p.linter)
}

// lint returns what the linters find in the packages, in the order of files and
// lines.
func lint(patterns []string) ([]problem, error) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, patterns...)
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(loaded) > 0 {
		return nil, fmt.Errorf("packages have errors")
	}
	for _, p := range loaded {
		// Linters read the imports that have their syntax: ours.
		maps.DeleteFunc(p.Imports, func(_ string, imported *packages.Package) bool { return len(imported.Syntax) == 0 })
	}
	loaded = slices.DeleteFunc(loaded, func(p *packages.Package) bool { return forTests.MatchString(p.PkgPath) })

	files := fileComments{}
	var problems []problem
	for _, p := range loaded {
		for _, f := range p.Syntax {
			problems = append(problems, files.add(p.Fset, f)...)
		}
	}
	graph, err := checker.Analyze(linters(), loaded, nil)
	if err != nil {
		return nil, err
	}
	for _, action := range graph.Roots {
		if action.Err != nil {
			return nil, fmt.Errorf("%s on %s: %w", action.Analyzer, action.Package, action.Err)
		}
		for _, d := range action.Diagnostics {
			p := problem{action.Package.Fset.Position(d.Pos), action.Analyzer.Name, d.Message}
			if !files.permit(p) {
				problems = append(problems, p)
			}
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for i := range problems {
		if short, err := filepath.Rel(here, problems[i].pos.Filename); err == nil {
			problems[i].pos.Filename = short
		}
	}
	slices.SortFunc(problems, func(a, b problem) int {
		return cmp.Or(strings.Compare(a.pos.Filename, b.pos.Filename), cmp.Compare(a.pos.Line, b.pos.Line), strings.Compare(a.message, b.message))
	})
	return slices.Compact(problems), nil
}

var (
	// forTests matches packages that only tests use.
	forTests = regexp.MustCompile(`^atelier/(test|internal/testkit)(/|$)|test$`)

	permission = regexp.MustCompile(`^//nolint(:([a-z,]+))?( // \S.*)?`)
)

// fileComments are the comments in each file that speak to linters.
type fileComments map[string]fileComment

type fileComment struct {
	isGenerated bool
	permitted   map[int]string // names of linters by line
}

// add reads the comments of a file, and returns permissions that do not name
// their linter or give no reason.
func (c fileComments) add(files *token.FileSet, f *ast.File) (problems []problem) {
	file := fileComment{isGenerated: ast.IsGenerated(f), permitted: map[int]string{}}
	for _, group := range f.Comments {
		for _, comment := range group.List {
			found := permission.FindStringSubmatch(comment.Text)
			if found == nil {
				continue
			}
			pos := files.Position(comment.Pos())
			if found[2] == "" || found[3] == "" {
				problems = append(problems, problem{pos, "nolint", "write //nolint:NAME // reason"})
			}
			file.permitted[pos.Line] = found[2]
		}
	}
	c[files.Position(f.Pos()).Filename] = file
	return problems
}

// permit reports whether a comment permits the problem, or it is in a generated
// file.
func (c fileComments) permit(p problem) bool {
	file := c[p.pos.Filename]
	return file.isGenerated || slices.Contains(strings.Split(file.permitted[p.pos.Line], ","), p.linter)
}
