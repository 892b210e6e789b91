package atelier_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers are the rooms of the house, lowest first. A package may import
// packages of lower layers only, and those of its own layer that its line
// names. ARCHITECTURE.md draws the same picture.
var layers = []map[string][]string{
	{ // ground
		".": nil, "api": nil, "client": nil, "tools": nil,
		"internal/fault": nil, "internal/failpoint": nil, "internal/ident": nil, "internal/plain": nil, "internal/config": {"internal/plain"}, "internal/telemetry": nil,
		"internal/border": nil, "internal/memory": {"internal/background"}, "internal/background": nil,
		"internal/sqldb": {"internal/fault", "internal/failpoint"}, "internal/seal": {"internal/sqldb"},
	},
	{ // capabilities, which do not know each other
		"internal/asset": nil, "internal/audit": nil, "internal/blob": nil, "internal/catalog": nil, "internal/certificate": nil, "internal/company": nil, "internal/credential": nil, "internal/cursor": nil,
		"internal/device": nil, "internal/idtoken": nil, "internal/keyring": nil, "internal/ledger": nil, "internal/mail": nil, "internal/oidc": nil,
		"internal/media": nil, "internal/person": nil, "internal/policy": nil, "internal/queue": nil, "internal/ratelog": nil, "internal/report": nil, "internal/run": nil, "internal/storage": nil,
		"internal/session": nil, "internal/throttle": nil, "internal/webhook": nil,
		"internal/hub": nil, "internal/engine": nil, "internal/engine/pixels": {"internal/engine"}, "internal/engine/raster": {"internal/engine", "internal/engine/pixels"}, "internal/engine/script": {"internal/engine"},
		"internal/engine/tiny":   {"internal/engine", "internal/engine/pixels", "internal/engine/tiny/neural"},
		"internal/engine/sketch": nil, "internal/engine/backend": {"internal/engine"}, "internal/engine/child": {"internal/engine"}, "internal/engine/sound": nil,
		"internal/engine/cog":         {"internal/engine", "internal/engine/backend", "internal/engine/sketch"},
		"internal/engine/comfyui":     {"internal/engine", "internal/engine/backend", "internal/engine/sketch"},
		"internal/engine/openai":      {"internal/engine", "internal/engine/backend", "internal/engine/sketch"},
		"internal/engine/a1111":       {"internal/engine", "internal/engine/backend"},
		"internal/engine/replicate":   {"internal/engine", "internal/engine/backend", "internal/engine/sketch"},
		"internal/engine/fal":         {"internal/engine", "internal/engine/backend", "internal/engine/sketch"},
		"internal/engine/command":     {"internal/engine", "internal/engine/child"},
		"internal/engine/speech":      {"internal/engine", "internal/engine/child", "internal/engine/sound"},
		"internal/engine/music":       {"internal/engine", "internal/engine/child", "internal/engine/sound"},
		"internal/engine/video":       {"internal/engine", "internal/engine/child", "internal/engine/pixels"},
		"internal/engine/tiny/kernel": nil, "internal/engine/tiny/neural": {"internal/engine/tiny/kernel"},
		"internal/provenance": nil,
	},
	{ // coordinators
		"internal/access": nil, "internal/curator": nil, "internal/intake": nil, "internal/post": nil,
		"internal/budget": {"internal/post"}, "internal/board": {"internal/library"}, "internal/library": {"internal/intake"},
		"internal/generation": {"internal/budget", "internal/intake", "internal/library"},
		"internal/runner":     {"internal/generation", "internal/intake"},
		"internal/directory":  {"internal/budget", "internal/post"}, "internal/identity": {"internal/post"}, "internal/dossier": {"internal/board", "internal/library"},
		"internal/inspect": {"internal/budget"},
		"internal/backup":  {"internal/library"},
		"internal/metrics": {"internal/post"},
		"internal/worker":  {"internal/dossier", "internal/identity", "internal/post"},
	},
	{ // edges
		"internal/httpd": nil, "internal/api/wire": nil,
		"internal/api": {"internal/api/wire", "internal/httpd"}, "internal/docs": {"internal/httpd"}, "internal/scim": {"internal/httpd"}, "internal/signin": {"internal/httpd"},
	},
	{"cmd/atelier": nil},
}

// supports are packages that serve tests only: no program may be built with them.
var supports = []string{"internal/sqldb/dbtest", "internal/blob/blobtest", "internal/certificate/acmetest", "internal/certificate/certificatetest", "internal/queue/queuetest", "internal/api/apitest", "internal/companion", "internal/witness",
	"internal/browser", "internal/identity/identitytest", "internal/mail/mailtest", "internal/post/posttest", "internal/oidc/oidctest",
	"internal/engine/enginetest", "internal/engine/cog/cogtest", "internal/engine/comfyui/comfyuitest", "internal/engine/openai/openaitest",
	"internal/engine/a1111/a1111test", "internal/engine/replicate/replicatetest", "internal/engine/fal/faltest", "internal/generation/generationtest",
	"test/report", "test/bench", "test/clients", "build/avatars", "test/chaos", "test/e2e", "test/program", "test/visitor", "test/generated", "test/generated/go"}

// https are the packages that may use net/http: to serve, or, blob, certificate,
// oidc, policy, webhook and the engines of model servers, to call.
var https = []string{"internal/api", "internal/blob", "internal/certificate", "internal/docs", "internal/httpd", "internal/oidc", "internal/policy", "internal/scim", "internal/signin",
	"internal/telemetry", "internal/webhook", "client", "cmd/atelier", "internal/engine/backend", "internal/engine/cog", "internal/engine/comfyui",
	"internal/engine/openai", "internal/engine/a1111", "internal/engine/replicate", "internal/engine/fal"}

// configs are the packages that may read settings.
var configs = []string{"cmd/atelier"}

type source struct {
	dir, name string
	file      *ast.File
	set       *token.FileSet
}

// sources parses every Go file of the project.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "s3server" || d.Name() == "acmeserver" || p == "build" || p == "data") {
			return fs.SkipDir
		}
		if strings.HasSuffix(p, ".go") {
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, p, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			all = append(all, source{path.Dir(filepath.ToSlash(p)), path.Base(p), f, set})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (s source) test() bool {
	return strings.HasSuffix(s.name, "_test.go") || slices.Contains(supports, s.dir)
}

func layer(dir string) int {
	return slices.IndexFunc(layers, func(l map[string][]string) bool { _, ok := l[dir]; return ok })
}

func TestImportsGoDownward(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		own := layer(s.dir)
		if own < 0 {
			t.Errorf("%s has no layer: add it to arch_test.go and ARCHITECTURE.md", s.dir)
			continue
		}
		for _, spec := range s.file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if name == "net/http" && !slices.Contains(https, s.dir) {
				t.Errorf("%s/%s imports net/http", s.dir, s.name)
			}
			dep, ours := strings.CutPrefix(name, "atelier/")
			switch {
			case !ours:
			case slices.Contains(supports, dep):
				t.Errorf("%s/%s imports %s, which is for tests", s.dir, s.name, dep)
			case dep == "internal/config" && !slices.Contains(configs, s.dir):
				t.Errorf("%s/%s reads settings; hand it what it needs", s.dir, s.name)
			case layer(dep) > own, layer(dep) == own && !slices.Contains(layers[own][s.dir], dep):
				t.Errorf("%s/%s imports %s, which is not below it", s.dir, s.name, dep)
			}
		}
	}
}

var statement = regexp.MustCompile(`^\s*(SELECT\s|INSERT INTO\s|UPDATE\s+\w+\s+SET\s|DELETE FROM\s|CREATE (TABLE|INDEX)|WITH \w+ AS)`)

func TestSQLStaysInStores(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test() || s.dir == "internal/sqldb" || s.name == "store.go" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && statement.MatchString(text) {
					t.Errorf("%v: SQL outside a store.go", s.set.Position(lit.Pos()))
				}
			}
			return true
		})
	}
}

func TestClockAndInit(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test() || strings.HasPrefix(s.dir, "cmd/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Now" {
				if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "time" && pkg.Obj == nil {
					t.Errorf("%v: the clock is handed in, not read", s.set.Position(sel.Pos()))
				}
			}
			if fn, ok := n.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%v: no init functions", s.set.Position(fn.Pos()))
			}
			return true
		})
	}
}

// TestOneDocComment holds every package to exactly one.
func TestOneDocComment(t *testing.T) {
	t.Parallel()
	docs := map[string]int{}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.name, "_test.go") {
			continue
		}
		if _, seen := docs[s.dir]; !seen {
			docs[s.dir] = 0
		}
		if s.file.Doc != nil {
			docs[s.dir]++
		}
	}
	for dir, n := range docs {
		if n != 1 {
			t.Errorf("%s has %d package comments, want 1", dir, n)
		}
	}
}
