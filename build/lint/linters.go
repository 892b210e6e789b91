package main

import (
	"fmt"
	"go/token"
	"io"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/golangci/misspell"
	"github.com/golangci/unconvert"
	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/jingyugao/rowserrcheck/passes/rowserr"
	"github.com/kisielk/errcheck/errcheck"
	revive "github.com/mgechev/revive/lint"
	"github.com/mgechev/revive/rule"
	"github.com/nishanths/exhaustive"
	"github.com/polyfloyd/go-errorlint/errorlint"
	"github.com/sanposhiho/wastedassign/v2"
	"github.com/securego/gosec/v2"
	"github.com/securego/gosec/v2/analyzers"
	"github.com/securego/gosec/v2/rules"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/packages"
)

// unimportantErrors are calls whose errors have no consequence: a closed file
// that was only read or is removed anyway, output to a person's terminal,
// best-effort clean-up. Code that writes a file checks Close and Sync itself.
var unimportantErrors = []string{
	"(io.Closer).Close",
	"(*os.File).Close",
	"(net.Conn).Close",
	"(net.Listener).Close",
	"(io.ReadCloser).Close",
	"(*database/sql.DB).Close",
	"(*database/sql.Rows).Close",
	"(*database/sql.Stmt).Close",
	"(*database/sql.Tx).Rollback",
	"(*database/sql.Conn).Close",
	"(database/sql/driver.Conn).Close",
	"(database/sql/driver.Stmt).Close",
	"fmt.Fprint",
	"fmt.Fprintf",
	"fmt.Fprintln",
	"crypto/rand.Read",                // never fails
	"(net/http.ResponseWriter).Write", // the client is gone
	"(atelier/internal/file/blob.Store).Close",
	"os.Remove",
	"os.RemoveAll",
}

// largeEnums are types of libraries with more values than any switch is about.
const largeEnums = `^(reflect\.Kind|go\.yaml\.in/yaml/v3\.Kind|regexp/syntax\.Op|net/http\.ConnState)$`

// gosecExcluded are rules of gosec that find nothing here.
var gosecExcluded = []string{
	"G104", // unhandled errors: errcheck finds them
	"G115", // conversions of integers: it does not see that a bound was checked
	"G304", // files named by variables: the operator names them
	"G404", // weak random numbers: trace ids and examples need no other
	"G407", // fixed nonces: it takes every nonce for one
	"G601", // variables of loops: they are new for each round since Go 1.22
}

// linters returns the linters of make check.
func linters() []*analysis.Analyzer {
	mustSet(exhaustive.Analyzer, exhaustive.DefaultSignifiesExhaustiveFlag, "true")
	mustSet(exhaustive.Analyzer, exhaustive.IgnoreEnumTypesFlag, largeEnums)
	return []*analysis.Analyzer{
		{Name: "errcheck", Doc: "find errors that are not looked at", Run: runErrcheck},
		errorlint.NewAnalyzer(),
		exhaustive.Analyzer,
		{Name: "exported", Doc: "find exported names without a comment", Run: runExported},
		{Name: "gosec", Doc: "find what an attacker could use", Run: runGosec},
		ineffassign.Analyzer,
		{Name: "misspell", Doc: "find misspelled words", Run: runMisspell},
		rowserr.NewAnalyzer(),
		{Name: "unconvert", Doc: "find conversions to the same type", Run: runUnconvert},
		wastedassign.Analyzer,
	}
}

func mustSet(a *analysis.Analyzer, flag, value string) {
	if err := a.Flags.Set(flag, value); err != nil {
		panic(fmt.Sprintf("%s: flag %s: %v", a.Name, flag, err))
	}
}

func runErrcheck(pass *analysis.Pass) (any, error) {
	checker := errcheck.Checker{Exclusions: errcheck.Exclusions{
		BlankAssignments: true,
		TypeAssertions:   true,
		Symbols:          append(unimportantErrors, errcheck.DefaultExcludedSymbols...),
	}}
	for _, found := range checker.CheckPackage(loadedPackage(pass)).Unique().UncheckedErrors {
		report(pass, found.Pos, "error of "+found.FuncName+" is not checked")
	}
	return nil, nil
}

func runExported(pass *analysis.Pass) (any, error) {
	exported := &rule.ExportedRule{}
	if err := exported.Configure(revive.Arguments{"disableStutteringCheck"}); err != nil {
		return nil, err
	}
	var names []string
	for _, f := range pass.Files {
		names = append(names, pass.Fset.Position(f.Pos()).Filename)
	}
	linter := revive.New(os.ReadFile, 0)
	failures, err := linter.Lint([][]string{names}, []revive.Rule{exported}, revive.Config{
		Confidence: 0.8,
		Rules:      revive.RulesConfig{exported.Name(): {}},
	})
	if err != nil {
		return nil, err
	}
	for f := range failures {
		if f.Confidence >= 0.8 {
			report(pass, f.Position.Start, f.Failure)
		}
	}
	return nil, nil
}

func runGosec(pass *analysis.Pass) (any, error) {
	a := gosec.NewAnalyzer(gosec.NewConfig(), true, false, false, 1, log.New(io.Discard, "", 0))
	a.LoadRules(rules.Generate(false, rules.NewRuleFilter(true, gosecExcluded...)).RulesInfo())
	a.LoadAnalyzers(analyzers.Generate(false, analyzers.NewAnalyzerFilter(true, gosecExcluded...)).AnalyzersInfo())
	p := loadedPackage(pass)
	a.CheckRules(p)
	a.CheckAnalyzers(p)
	found, _, _ := a.Report()
	for _, issue := range found {
		from, _, _ := strings.Cut(issue.Line, "-")
		line, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("gosec: line %q: %w", issue.Line, err)
		}
		report(pass, token.Position{Filename: issue.File, Line: line}, issue.RuleID+": "+issue.What)
	}
	return nil, nil
}

func runMisspell(pass *analysis.Pass) (any, error) {
	for _, f := range pass.Files {
		name := pass.Fset.Position(f.Pos()).Filename
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		_, found := spelling.Replace(string(text))
		for _, d := range found {
			report(pass, token.Position{Filename: name, Line: d.Line, Column: d.Column + 1}, d.Original+" is a misspelling of "+d.Corrected)
		}
	}
	return nil, nil
}

// spelling knows words that are often misspelled.
var spelling = func() *misspell.Replacer {
	r := &misspell.Replacer{Replacements: misspell.DictMain}
	r.Compile()
	return r
}()

func runUnconvert(pass *analysis.Pass) (any, error) {
	for _, pos := range unconvert.Run(pass) {
		report(pass, pos, "conversion to the same type")
	}
	return nil, nil
}

// loadedPackage returns the package as linters want it that do not know
// analysis.Pass.
func loadedPackage(pass *analysis.Pass) *packages.Package {
	return &packages.Package{Fset: pass.Fset, Syntax: pass.Files, Types: pass.Pkg, TypesInfo: pass.TypesInfo}
}

// report reports a problem at the start of a line.
func report(pass *analysis.Pass, at token.Position, message string) {
	for _, f := range pass.Files {
		if file := pass.Fset.File(f.Pos()); file.Name() == at.Filename {
			pass.Reportf(file.LineStart(at.Line), "%s", message)
		}
	}
}
