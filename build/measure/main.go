// Command measure counts properties of the code that affect its readability and
// prints a table: functions with one-word names, lines with several steps,
// types with many methods, types that describe the sender of a request,
// functions that only call another, and import cycles between groups of
// packages.
//
//	go run ./build/measure            the table for this checkout
//	go run ./build/measure FOLDER     the table for another checkout
//	go run ./build/measure -v         every finding with its position first
//
// It reads only hand-written production code: no tests, no packages that only
// tests use, and no generated files.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"atelier/build/packed"
)

// standardNames are one-word names that have the same meaning in all Go
// programs.
var standardNames = map[string]bool{
	"main": true, "New": true, "Open": true, "Close": true, "String": true, "Error": true, "Unwrap": true, "Is": true, "As": true,
	"Len": true, "Less": true, "Swap": true, "Push": true, "Pop": true, "Read": true, "Write": true, "Seek": true, "Flush": true, "Scan": true,
	"Value": true, "Run": true, "Do": true, "Handle": true, "Handler": true, "Hijack": true, "Header": true, "Enabled": true,
	"Describe": true, "Collect": true, "Validate": true, "Next": true, "Get": true, "Set": true, "Add": true, "Lock": true, "Unlock": true,
}

// counts are the results for one source tree.
type counts struct {
	files     int
	lines     int
	blank     int
	functions int
	bare      int
	tuples    int
	packed    int
	callers   int
	forwards  int
	methods   map[string]int             // number of methods by type
	groups    map[string]map[string]bool // for each folder under internal/, the other folders there that it imports
}

var verbose = flag.Bool("v", false, "name every finding")

func main() {
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./build/measure [-v] [FOLDER]")
		flag.PrintDefaults()
	}
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}

	c := counts{methods: map[string]int{}, groups: map[string]map[string]bool{}}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if entry.IsDir() && skipFolder(filepath.ToSlash(rel), entry.Name()) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".gen.go") {
			return nil
		}
		return c.measureFile(path, filepath.ToSlash(rel))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
	c.print()
}

// testOnly matches the folders of packages that only tests use.
var testOnly = regexp.MustCompile(`(^|/)(testkit|scriptengine|[a-z0-9]+test)(/|$)`)

func skipFolder(rel, name string) bool {
	switch {
	case rel == ".":
		return false
	case strings.HasPrefix(name, "."), name == "testdata", name == "node_modules":
		return true
	case rel == "test", rel == "build", rel == "model", rel == "data", rel == "bin":
		return true
	}
	return testOnly.MatchString(rel)
}

func (c *counts) measureFile(path, rel string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.ParseComments)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}

	c.files++
	for line := range strings.Lines(string(source)) {
		c.lines++
		if strings.TrimSpace(line) == "" {
			c.blank++
		}
	}
	c.measureImports(file, rel)

	report := func(node ast.Node, format string, args ...any) {
		if *verbose {
			fmt.Printf("%v: %s\n", set.Position(node.Pos()), fmt.Sprintf(format, args...))
		}
	}
	for _, tuple := range packed.Tuples(file) {
		c.tuples++
		report(tuple, "tuple assignment")
	}
	for _, literal := range packed.Literals(set, file) {
		c.packed++
		report(literal, "packed literal")
	}
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			c.measureFunction(declaration, filepath.Dir(rel), report)
		case *ast.GenDecl:
			c.measureTypes(declaration, report)
		}
	}
	return nil
}

// measureTypes counts the types in a declaration that describe the sender of a
// request.
func (c *counts) measureTypes(declaration *ast.GenDecl, report func(ast.Node, string, ...any)) {
	for _, spec := range declaration.Specs {
		if spec, ok := spec.(*ast.TypeSpec); ok && carriesCaller(spec) {
			c.callers++
			report(spec, "type that carries the caller: %s", spec.Name.Name)
		}
	}
}

// callerNames are the usual names of types that describe the sender of a
// request.
var callerNames = []string{"Caller", "Actor", "Visitor", "Viewer", "Principal", "Standing"}

// recordFields are fields that show that a type describes something other than
// the sender of a request: a run, a sum, an entry of the audit log or a team
// member.
var recordFields = []string{"ID", "Act", "ToolID", "Email"}

// carriesCaller reports whether a struct type describes the sender of a
// request: by its name, or because it has a person together with an account,
// team, IP address or credential. Types with one of recordFields describe
// stored records instead.
func carriesCaller(spec *ast.TypeSpec) bool {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return false
	}
	if slices.Contains(callerNames, spec.Name.Name) {
		return true
	}

	var names []string
	for _, field := range structure.Fields.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	if slices.ContainsFunc(recordFields, func(field string) bool { return slices.Contains(names, field) }) {
		return false
	}
	return slices.Contains(names, "PersonID") &&
		slices.ContainsFunc([]string{"AccountID", "TeamID", "Address", "Credential"}, func(field string) bool { return slices.Contains(names, field) })
}

// measureImports records which other groups (folders under internal/) a file's
// group imports.
func (c *counts) measureImports(file *ast.File, rel string) {
	own := groupOf(filepath.ToSlash(filepath.Dir(rel)))
	if own == "" {
		return
	}
	if c.groups[own] == nil {
		c.groups[own] = map[string]bool{}
	}
	for _, spec := range file.Imports {
		other := groupOf(strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), "atelier/"))
		if other != "" && other != own {
			c.groups[own][other] = true
		}
	}
}

// groupOf returns the group of a package: the first folder of its path below
// internal/. It returns "" if there is none.
func groupOf(folder string) string {
	rest, ok := strings.CutPrefix(folder, "internal/")
	if !ok || testOnly.MatchString(folder) {
		return ""
	}
	group, _, _ := strings.Cut(rest, "/")
	return group
}

func (c *counts) measureFunction(fn *ast.FuncDecl, folder string, report func(ast.Node, string, ...any)) {
	c.functions++
	wholeAtCall := fn.Recv == nil && fn.Name.IsExported() // callers write the name together with its package
	if !wholeAtCall && !standardNames[fn.Name.Name] && countWords(fn.Name.Name) == 1 {
		c.bare++
		report(fn, "bare word %s", fn.Name.Name)
	}
	if fn.Recv != nil {
		c.methods[folder+"."+receiverName(fn)]++
	} else if fn.Name.IsExported() && onlyForwards(fn) {
		c.forwards++
		report(fn, "only forwards: %s", fn.Name.Name)
	}
}

// countWords returns the number of words of a camel-case name. A run of capital
// letters counts as one word.
func countWords(name string) int {
	words := 0
	previous := ' '
	for _, r := range name {
		if words == 0 || unicode.IsUpper(r) && !unicode.IsUpper(previous) {
			words++
		}
		previous = r
	}
	return words
}

func receiverName(fn *ast.FuncDecl) string {
	expr := fn.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return "?"
		}
	}
}

// onlyForwards reports whether the body of fn only calls an unexported function
// of the same package with the same parameters.
func onlyForwards(fn *ast.FuncDecl) bool {
	if fn.Body == nil || len(fn.Body.List) != 1 {
		return false
	}
	result, ok := fn.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(result.Results) != 1 {
		return false
	}
	call, ok := result.Results[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	callee, ok := call.Fun.(*ast.Ident)
	if !ok || callee.IsExported() || len(call.Args) == 0 {
		return false
	}
	var parameters []string
	for _, field := range fn.Type.Params.List {
		for _, name := range field.Names {
			parameters = append(parameters, name.Name)
		}
	}
	if len(parameters) != len(call.Args) {
		return false
	}
	for i, arg := range call.Args {
		if name, ok := arg.(*ast.Ident); !ok || name.Name != parameters[i] {
			return false
		}
	}
	return true
}

func (c *counts) print() {
	wide := 0
	widest := ""
	for _, name := range slices.Sorted(maps.Keys(c.methods)) {
		if c.methods[name] > 30 {
			wide++
		}
		if widest == "" || c.methods[name] > c.methods[widest] {
			widest = name
		}
	}
	fmt.Printf("files                      %6d\n", c.files)
	fmt.Printf("lines                      %6d\n", c.lines)
	fmt.Printf("blank lines                %6.1f %%\n", percent(c.blank, c.lines))
	fmt.Printf("functions and methods      %6d\n", c.functions)
	fmt.Printf("named by one bare word     %6.1f %%\n", percent(c.bare, c.functions))
	fmt.Printf("tuple assignments          %6d\n", c.tuples)
	fmt.Printf("packed literals            %6d\n", c.packed)
	fmt.Printf("types that carry callers   %6d\n", c.callers)
	fmt.Printf("types over 30 methods      %6d  (the widest: %s, %d)\n", wide, widest, c.methods[widest])
	fmt.Printf("exported and only forward  %6d\n", c.forwards)
	fmt.Printf("groups under internal/     %6d\n", len(c.groups))
	fmt.Printf("circles of groups          %6d\n", c.countCircles())
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// countCircles returns the number of pairs of groups that import each other,
// directly or indirectly.
func (c *counts) countCircles() int {
	circles := 0
	for _, a := range slices.Sorted(maps.Keys(c.groups)) {
		for _, b := range slices.Sorted(maps.Keys(c.groups)) {
			if a < b && c.reaches(a, b, nil) && c.reaches(b, a, nil) {
				circles++
				if *verbose {
					fmt.Printf("%s and %s need each other\n", a, b)
				}
			}
		}
	}
	return circles
}

func (c *counts) reaches(from, to string, seen []string) bool {
	for next := range c.groups[from] {
		if next == to || !slices.Contains(seen, next) && c.reaches(next, to, append(seen, next)) {
			return true
		}
	}
	return false
}
