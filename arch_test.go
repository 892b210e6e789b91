package atelier_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"atelier/build/packed"
)

// layers are the layers of the program, lowest first. A package may import
// packages of lower layers only, and the packages of its own layer that its line
// names. ARCHITECTURE.md has the same layers as a drawing.
var layers = []map[string][]string{
	{ // the lowest layer
		".": nil, "api": nil, "client": nil, "docs": nil, "tools": nil, "web": nil,
		"internal/base/dispatch": nil, "internal/base/fault": nil, "internal/base/failpoint": nil, "internal/base/osfile": nil, "internal/base/ids": nil, "internal/base/sanitize": {"internal/base/fault"}, "internal/base/config": {"internal/base/sanitize"}, "internal/base/telemetry": nil,
		"internal/cli/profile": {"client"}, "internal/cli/mcpbridge": nil, "internal/cli/selectjson": nil, "internal/cli/term": nil,
		"internal/base/netguard": nil, "internal/base/memory": {"internal/base/lowpriority"}, "internal/base/lowpriority": nil,
		"internal/base/sqldb": {"internal/base/fault", "internal/base/failpoint", "internal/base/osfile"}, "internal/base/seal": {"internal/base/sqldb"},
	},
	{ // capabilities, which do not import each other
		"internal/file/asset": nil, "internal/base/audit": nil, "internal/file/blob": nil, "internal/catalog/flow": nil, "internal/catalog/catalog": {"internal/catalog/flow"}, "internal/web/certificate": nil, "internal/people/company": nil, "internal/people/credential": nil, "internal/base/cursor": nil,
		"internal/people/device": nil, "internal/people/idtoken": nil, "internal/base/keyring": nil, "internal/notify/mail": nil, "internal/people/oidc": nil, "internal/people/oauthclient": nil,
		"internal/file/media": nil, "internal/people/person": nil, "internal/run/node": nil, "internal/run/policy": nil, "internal/base/queue": nil, "internal/base/ratelimit": nil, "internal/money/report": nil, "internal/run/run": nil,
		"internal/people/session": nil, "internal/base/throttle": nil,
		"internal/base/pubsub": nil, "internal/engine": nil, "internal/engine/builtin/pixels": {"internal/engine"}, "internal/engine/builtin/imageengine": {"internal/engine", "internal/engine/builtin/pixels"}, "internal/engine/scriptengine": {"internal/engine"},
		"internal/engine/builtin/tiny":  {"internal/engine", "internal/engine/builtin/pixels", "internal/engine/builtin/tiny/neural"},
		"internal/engine/manifestdraft": nil, "internal/engine/backend": {"internal/engine"}, "internal/engine/subprocess": {"internal/engine"}, "internal/engine/builtin/sound": nil,
		"internal/engine/cog":                    {"internal/engine", "internal/engine/backend", "internal/engine/manifestdraft"},
		"internal/engine/comfyui":                {"internal/engine", "internal/engine/backend", "internal/engine/manifestdraft", "internal/engine/comfyui/nodegraph", "internal/engine/comfyui/workflowimport"},
		"internal/engine/comfyui/workflowimport": {"internal/engine/backend", "internal/engine/manifestdraft", "internal/engine/comfyui/nodegraph"}, "internal/engine/comfyui/nodegraph": nil,
		"internal/engine/openai":              {"internal/engine", "internal/engine/backend", "internal/engine/manifestdraft"},
		"internal/engine/a1111":               {"internal/engine", "internal/engine/backend", "internal/engine/manifestdraft"},
		"internal/engine/replicate":           {"internal/engine", "internal/engine/backend", "internal/engine/manifestdraft"},
		"internal/engine/fal":                 {"internal/engine", "internal/engine/backend", "internal/engine/manifestdraft"},
		"internal/engine/execengine":          {"internal/engine", "internal/engine/subprocess"},
		"internal/engine/builtin/speech":      {"internal/engine", "internal/engine/subprocess", "internal/engine/builtin/sound"},
		"internal/engine/builtin/music":       {"internal/engine", "internal/engine/subprocess", "internal/engine/builtin/sound"},
		"internal/engine/builtin/video":       {"internal/engine", "internal/engine/subprocess", "internal/engine/builtin/pixels"},
		"internal/engine/builtin/tiny/kernel": nil, "internal/engine/builtin/tiny/neural": {"internal/engine/builtin/tiny/kernel"},
		"internal/file/provenance": nil,
	},
	{ // the caller, capabilities that act for a caller, and the load of pools
		"internal/people/principal": nil,
		"internal/file/quota":       {"internal/people/principal"},
		"internal/money/ledger":     {"internal/people/principal"},
		"internal/notify/webhook":   {"internal/people/principal"},
		"internal/run/pool":         nil,
	},
	{ // coordinators
		"internal/web/access": nil, "internal/catalog/openaimap": nil, "internal/catalog/toolschema": nil, "internal/catalog/toolsync": nil, "internal/file/ingest": nil, "internal/notify/mailqueue": nil,
		"internal/money/budget": {"internal/notify/mailqueue"}, "internal/board": {"internal/file/library", "internal/people/principal"}, "internal/file/library": {"internal/file/ingest"}, "internal/file/resumable": {"internal/file/ingest", "internal/file/library"},
		"internal/run/generation":       {"internal/money/budget", "internal/file/ingest", "internal/file/library"},
		"internal/run/runner":           {"internal/run/generation", "internal/file/ingest"},
		"internal/run/flowrun":          {"internal/run/generation"},
		"internal/run/savedflow":        {"internal/run/generation", "internal/file/library"},
		"internal/account/companyadmin": {"internal/money/budget", "internal/notify/mailqueue"},
		"internal/account/provisioning": {"internal/account/companyadmin", "internal/notify/mailqueue"},
		"internal/account/flow":         {"internal/notify/mailqueue"},
		"internal/account/verification": {"internal/account/flow"},
		"internal/account/accesstoken":  {"internal/account/flow"},
		"internal/account/profile":      nil,
		"internal/account/signin":       {"internal/account/flow", "internal/account/verification", "internal/account/accesstoken"},
		"internal/account/signup":       {"internal/account/flow", "internal/account/verification", "internal/account/signin"},
		"internal/account/openidlogin":  {"internal/account/flow", "internal/account/verification", "internal/account/signin", "internal/account/signup", "internal/account/accesstoken"},
		"internal/account/applogin":     {"internal/account/flow", "internal/account/devicelogin"},
		"internal/account/devicelogin":  {"internal/account/flow", "internal/account/signin", "internal/account/openidlogin", "internal/account/profile"},
		"internal/account": {
			"internal/notify/mailqueue", "internal/account/flow", "internal/account/verification", "internal/account/accesstoken", "internal/account/profile",
			"internal/account/signin", "internal/account/signup", "internal/account/openidlogin", "internal/account/devicelogin", "internal/account/applogin",
		},
		"internal/account/operator":       {"internal/run/generation"},
		"internal/account/personaldata":   {"internal/board", "internal/run/savedflow", "internal/file/library", "internal/file/resumable"},
		"internal/operate/inspect":        {"internal/money/budget"},
		"internal/operate/backup":         {"internal/file/library", "internal/file/resumable"},
		"internal/operate/move":           nil,
		"internal/operate/replicate":      nil,
		"internal/operate/simulate":       {"internal/run/generation"},
		"internal/operate/metrics":        {"internal/notify/mailqueue"},
		"internal/operate/backgroundjobs": {"internal/account/personaldata", "internal/account", "internal/notify/mailqueue", "internal/file/library", "internal/file/resumable", "internal/board", "internal/run/generation", "internal/run/runner"},
	},
	{ // edges
		"internal/web/httpd": nil, "internal/web/api/wire": nil,
		"internal/web/api/rest": {"internal/web/api/wire", "internal/web/httpd"}, "internal/web/api/filebody": apiResource(),
		"internal/web/api/accesstokens": apiResource(), "internal/web/api/boards": apiResource(), "internal/web/api/companies": apiResource(), "internal/web/api/flows": apiResource(),
		"internal/web/api/devices": apiResource("me"), "internal/web/api/newrun": apiResource("filebody"), "internal/web/api/runwait": apiResource(), "internal/web/api/oauth": apiResource(), "internal/web/api/mcp": apiResource("filebody", "newrun", "runwait"), "internal/web/api/openai": apiResource("filebody", "generations", "newrun", "runwait"), "internal/web/api/generations": apiResource("filebody", "newrun"), "internal/web/api/invitations": apiResource(),
		"internal/web/api/library": apiResource(), "internal/web/api/me": apiResource(), "internal/web/api/media": apiResource("filebody"),
		"internal/web/api/ledger": apiResource(), "internal/web/api/operator": apiResource(), "internal/web/api/reports": apiResource(), "internal/web/api/sessions": apiResource(), "internal/web/api/teams": apiResource(), "internal/web/api/tools": apiResource(),
		"internal/web/api/uploads": apiResource("filebody"), "internal/web/api/events": apiResource("boards", "generations", "me"), "internal/web/api/webhooks": apiResource("generations"),
		"internal/web/api":  apiResource("accesstokens", "boards", "companies", "devices", "events", "filebody", "flows", "generations", "invitations", "ledger", "library", "mcp", "me", "media", "newrun", "oauth", "openai", "operator", "reports", "runwait", "sessions", "teams", "tools", "uploads", "webhooks"),
		"internal/web/docs": {"internal/web/httpd"}, "internal/web/reference": {"internal/web/httpd"}, "internal/web/scim": {"internal/web/httpd"}, "internal/web/pages": {"internal/web/httpd", "internal/web/studio"},
		"internal/web/studio": {"internal/web/httpd"},
	},
	{"cmd/atelier": nil},
}

// apiResource lists the packages of layer "edges" that a resource of the API may
// import: the packages that all resources share, and the given ones below
// internal/web/api.
func apiResource(others ...string) []string {
	allowed := []string{"internal/web/httpd", "internal/web/api/wire", "internal/web/api/rest"}
	for _, other := range others {
		allowed = append(allowed, "internal/web/api/"+other)
	}
	return allowed
}

// supports are packages for tests only: no program may be built with them.
var supports = []string{"internal/base/sqldb/dbtest", "internal/file/blob/blobtest", "internal/web/certificate/acmetest", "internal/web/certificate/certificatetest", "internal/base/queue/queuetest", "internal/web/api/apitest", "internal/testkit/sample", "internal/testkit/servers", "internal/testkit/watch", "internal/base/netguard/netguardtest",
	"internal/testkit/browser", "internal/account/accounttest", "internal/notify/mail/mailtest", "internal/notify/mailqueue/mailqueuetest", "internal/people/oidc/oidctest",
	"internal/engine/enginetest", "internal/engine/cog/cogtest", "internal/engine/comfyui/comfyuitest", "internal/engine/openai/openaitest",
	"internal/engine/a1111/a1111test", "internal/engine/replicate/replicatetest", "internal/engine/fal/faltest", "internal/run/generation/generationtest",
	"test/report", "test/bench", "test/clients", "test/clients/driver", "build/avatars", "test/chaos", "test/e2e", "test/program", "test/visitor", "test/generated", "test/generated/go", "test/nodes"}

// https are the packages that may use net/http. Most of them serve requests;
// blob, certificate, oidc, policy, webhook and the engines of model servers send
// them.
var https = []string{"internal/web/api", "internal/cli/mcpbridge", "internal/file/blob", "internal/web/certificate", "internal/web/docs", "internal/web/reference", "internal/web/httpd", "internal/people/oidc", "internal/run/policy", "internal/web/scim", "internal/web/pages", "internal/web/studio",
	"internal/base/telemetry", "internal/notify/webhook", "client", "cmd/atelier", "internal/engine/backend", "internal/engine/cog", "internal/engine/comfyui",
	"internal/engine/openai", "internal/engine/a1111", "internal/engine/replicate", "internal/engine/fal"}

// configs are the packages that may read settings.
var configs = []string{"cmd/atelier"}

// groups are the folders of internal/, each with the groups that it may import.
// Since every group names only groups above its own line, there is no cycle.
var groups = []struct {
	name    string
	imports []string
}{
	{"base", nil},
	{"cli", nil},
	{"people", []string{"base"}},
	{"notify", []string{"base", "people"}},
	{"file", []string{"base", "people"}},
	{"catalog", []string{"base", "file"}},
	{"engine", []string{"base"}},
	{"money", []string{"base", "people", "notify"}},
	{"run", []string{"base", "people", "notify", "file", "catalog", "engine", "money"}},
	{"board", []string{"base", "people", "file", "run"}},
	{"account", []string{"base", "people", "notify", "file", "money", "run", "board"}},
	{"operate", []string{"base", "people", "notify", "file", "catalog", "money", "run", "board", "account"}},
	{"web", []string{"base", "people", "notify", "file", "catalog", "money", "run", "board", "account"}},
}

type source struct {
	dir, name string
	file      *ast.File
	set       *token.FileSet
}

// sources returns every Go file of the project, parsed.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsedSources()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var parsedSources = sync.OnceValues(func() ([]source, error) {
	var all []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "s3server" || d.Name() == "acmeserver" || p == "build" || p == "data") {
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
	return all, err
})

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
			if name == "net/http" && !slices.Contains(https, s.dir) && !strings.HasPrefix(s.dir, "internal/web/api/") {
				t.Errorf("%s/%s imports net/http", s.dir, s.name)
			}
			dep, ours := strings.CutPrefix(name, "atelier/")
			switch {
			case !ours:
			case slices.Contains(supports, dep):
				t.Errorf("%s/%s imports %s, which is for tests", s.dir, s.name, dep)
			case dep == "internal/base/config" && !slices.Contains(configs, s.dir):
				t.Errorf("%s/%s reads settings; hand it what it needs", s.dir, s.name)
			case layer(dep) > own, layer(dep) == own && !slices.Contains(layers[own][s.dir], dep):
				t.Errorf("%s/%s imports %s, which is not below it", s.dir, s.name, dep)
			}
		}
	}
}

// TestGroupsImportDownward checks the imports between the folders of internal/.
func TestGroupsImportDownward(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{}
	for _, g := range groups {
		for _, other := range g.imports {
			if _, above := allowed[other]; !above {
				t.Errorf("group %s imports %s, which is not listed before it", g.name, other)
			}
		}
		allowed[g.name] = g.imports
	}
	for _, s := range sources(t) {
		own := groupOf(s.dir)
		if own == "" || s.test() {
			continue
		}
		imports, known := allowed[own]
		if !known {
			t.Errorf("internal/%s is in no group: add it to arch_test.go and ARCHITECTURE.md", own)
			continue
		}
		for _, spec := range s.file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			other := groupOf(strings.TrimPrefix(name, "atelier/"))
			if other != "" && other != own && !slices.Contains(imports, other) {
				t.Errorf("%s/%s imports %s: group %s may not import group %s", s.dir, s.name, name, own, other)
			}
		}
	}
}

// groupOf returns the first folder below internal/, or "".
func groupOf(dir string) string {
	rest, ok := strings.CutPrefix(dir, "internal/")
	if !ok {
		return ""
	}
	group, _, _ := strings.Cut(rest, "/")
	return group
}

var statement = regexp.MustCompile(`^\s*(SELECT\s|INSERT INTO\s|UPDATE\s+\w+\s+SET\s|DELETE FROM\s|CREATE (TABLE|INDEX)|WITH \w+ AS)`)

func TestSQLStaysInStores(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test() || s.dir == "internal/base/sqldb" || strings.HasSuffix(s.name, "store.go") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && statement.MatchString(text) {
					t.Errorf("%v: SQL outside a file whose name ends with store.go", s.set.Position(lit.Pos()))
				}
			}
			return true
		})
	}
}

func TestClockAndInit(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test() || strings.HasPrefix(s.dir, "cmd/") || s.dir == "client" { // the client is for other programs, which have one clock
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

// TestOneDocComment checks that every package has exactly one doc comment.
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

// TestLinesAreUnpacked allows one assignment a line, except swaps and the
// results of one call, and one keyed field a line in literals of more than four
// keyed fields.
func TestLinesAreUnpacked(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test() || ast.IsGenerated(s.file) {
			continue
		}
		for _, tuple := range packed.Tuples(s.file) {
			t.Errorf("%v: several assignments on one line", s.set.Position(tuple.Pos()))
		}
		for _, literal := range packed.Literals(s.set, s.file) {
			t.Errorf("%v: a literal with several of its fields on one line", s.set.Position(literal.Pos()))
		}
	}
}

// ownerOf lists the owners of tables that cannot be derived from the statements:
// several packages insert rows, or none does by a literal name.
var ownerOf = map[string]string{
	"audit_head":    "internal/base/audit",      // one row, inserted by a migration
	"catalog":       "internal/catalog/catalog", // one row, inserted by a migration
	"deployment":    "internal/base/keyring",    // single values; each package uses names of its own
	"kit":           "internal/catalog/catalog",
	"ledger_day":    "internal/money/ledger", // rows inserted by a trigger
	"storage_shard": "internal/file/quota",   // rows inserted by a migration
	"tool_tag":      "internal/catalog/catalog",
}

// foreignTables are the exceptions to the rule that only the owner of a table
// names it in SQL: package, then the tables of other packages that its
// statements read or change.
var foreignTables = map[string][]string{
	"internal/board":             {"person", "team"},
	"internal/file/library":      {"asset", "flow_step", "person", "result", "run", "run_input", "tool", "upload"},
	"internal/money/budget":      {"company_member", "person", "team", "team_member"},
	"internal/money/ledger":      {"flow_step", "run"},
	"internal/money/report":      {"access_token", "device", "flow_run", "person", "run", "storage_account", "team"},
	"internal/people/company":    {"person", "report_zone"},
	"internal/people/credential": {"person"},
	"internal/people/device":     {"deployment", "person"},
	"internal/people/person":     {"deployment"},
	"internal/people/session":    {"person"},
	"internal/run/run":           {"asset", "team", "tool"},
}

var (
	changesTable = regexp.MustCompile(`(CREATE TABLE|DROP TABLE|ALTER TABLE) (\w+)(?: RENAME TO (\w+))?`)
	insertsRows  = regexp.MustCompile(`INSERT INTO\s+(\w+)`)
	namesTable   = regexp.MustCompile(`\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)`)
)

// TestTablesHaveOwners derives from the SQL in the code which package owns each
// table: the package that inserts its rows. Other packages call the owner's
// functions; the packages that name the table nevertheless are listed in
// foreignTables.
func TestTablesHaveOwners(t *testing.T) {
	t.Parallel()
	tables := migratedTables(t)
	owners := maps.Clone(ownerOf)
	named := map[string]map[string]bool{} // package: tables
	for _, s := range sources(t) {
		if s.test() || s.dir == "internal/base/sqldb" {
			continue
		}
		for _, text := range statementsOf(s.file) {
			for _, match := range insertsRows.FindAllStringSubmatch(text, -1) {
				table := match[1]
				if owner, ok := owners[table]; tables[table] && ok && owner != s.dir && ownerOf[table] == "" {
					t.Errorf("%s and %s insert into %s: say in ownerOf which one owns it", owner, s.dir, table)
				} else if !ok {
					owners[table] = s.dir
				}
			}
			for _, match := range namesTable.FindAllStringSubmatch(text, -1) {
				if tables[match[1]] {
					if named[s.dir] == nil {
						named[s.dir] = map[string]bool{}
					}
					named[s.dir][match[1]] = true
				}
			}
		}
	}

	for table := range tables {
		if owners[table] == "" {
			t.Errorf("table %s has no owner: no package inserts rows", table)
		}
	}
	for dir, all := range named {
		for table := range all {
			if owners[table] != dir && !slices.Contains(foreignTables[dir], table) {
				t.Errorf("%s names %s, a table of %s: call a function of its owner", dir, table, owners[table])
			}
		}
	}
	for dir, all := range foreignTables {
		for _, table := range all {
			if !named[dir][table] || owners[table] == dir {
				t.Errorf("%s no longer needs the exception for %s: remove it", dir, table)
			}
		}
	}
}

// migratedTables returns the tables that migrations create.
func migratedTables(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("internal/base/sqldb/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("migrations: %v, %v", files, err)
	}
	tables := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range changesTable.FindAllStringSubmatch(string(text), -1) {
			table := match[2]
			renamed := match[3]
			switch {
			case match[1] == "CREATE TABLE":
				tables[table] = true
			case match[1] == "DROP TABLE":
				delete(tables, table)
			case renamed != "":
				delete(tables, table)
				tables[renamed] = true
			}
		}
	}
	return tables
}

// statementsOf returns the string literals of a file, except the queries of
// checks: an invariant may compare the tables of several owners.
func statementsOf(file *ast.File) []string {
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			return !ok || key.Name != "Query"
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}
