package sqldb_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// previousStep is the newest migration of the previous release. Its nodes run
// beside the new ones during an upgrade, on the new schema, so later migrations
// only add: what a release no longer needs is removed by the release after it.
// A release sets this number to its own newest migration.
const previousStep = 26

// contractions are the statements after which a node of the previous release
// may fail: it names a column or a table that is gone, leaves out one that has
// become required, or writes a value that is no longer allowed.
var contractions = map[string]*regexp.Regexp{
	"drops a column":                      regexp.MustCompile(`(?is)\bDROP\s+COLUMN\b`),
	"drops a table":                       regexp.MustCompile(`(?is)\bDROP\s+TABLE\b`),
	"drops a view or a trigger":           regexp.MustCompile(`(?is)\bDROP\s+(VIEW|TRIGGER|FUNCTION)\b`),
	"renames":                             regexp.MustCompile(`(?is)\bRENAME\b`),
	"changes a column":                    regexp.MustCompile(`(?is)\bALTER\s+COLUMN\b`),
	"adds a constraint":                   regexp.MustCompile(`(?is)\bADD\s+(CONSTRAINT|CHECK|UNIQUE|FOREIGN|PRIMARY)\b`),
	"adds a unique index":                 regexp.MustCompile(`(?is)\bCREATE\s+UNIQUE\s+INDEX\b`),
	"adds a trigger to an existing table": regexp.MustCompile(`(?is)\bCREATE\s+(OR\s+REPLACE\s+)?TRIGGER\b`),
}

// addedColumn finds the columns that a migration adds to existing tables.
var addedColumn = regexp.MustCompile(`(?is)\bADD\s+COLUMN\s+(\w+)\s+([^;]*)`)

// reviewed are contractions that do not harm nodes of the previous release, by
// file and kind, with the reason.
var reviewed = map[string]map[string]string{}

// findContractions returns what a migration does that may harm nodes of the
// previous release.
func findContractions(text string) (kinds []string) {
	up, _, _ := strings.Cut(text, "-- +goose Down")
	statements := withoutComments(up)
	for kind, form := range contractions {
		if form.MatchString(statements) {
			kinds = append(kinds, kind)
		}
	}
	for _, column := range addedColumn.FindAllStringSubmatch(statements, -1) {
		definition := strings.ToUpper(column[2])
		if strings.Contains(definition, "NOT NULL") && !strings.Contains(definition, "DEFAULT") {
			kinds = append(kinds, "adds a required column without a default")
		}
	}
	return kinds
}

// withoutComments returns the statements of a migration.
func withoutComments(text string) string {
	var statements strings.Builder
	for line := range strings.Lines(text) {
		before, _, _ := strings.Cut(line, "--")
		statements.WriteString(before + "\n")
	}
	return statements.String()
}

// newMigrations returns the texts of the migrations since the previous release,
// by file name.
func newMigrations(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("migrations: %v", err)
	}
	texts := map[string]string{}
	for _, path := range files {
		name := filepath.Base(path)
		number, err := strconv.Atoi(name[:4])
		if err != nil {
			t.Fatal(err)
		}
		if number <= previousStep {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return texts
}

// TestMigrationsExpand checks that the migrations since the previous release
// let its nodes go on.
func TestMigrationsExpand(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for name, text := range newMigrations(t) {
		for _, kind := range findContractions(text) {
			if reviewed[name][kind] == "" {
				t.Errorf("%s %s: a node of the previous release may fail beside it. Do that in the next release, or add it to reviewed with the reason why it does no harm", name, kind)
			}
			used[name+" "+kind] = true
		}
	}
	for name, kinds := range reviewed {
		for kind := range kinds {
			if !used[name+" "+kind] {
				t.Errorf("%s no longer %s: remove it from reviewed", name, kind)
			}
		}
	}
}

// TestContractionsAreFound proves that the check finds what it is for, and
// nothing in migrations that only add.
func TestContractionsAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ALTER TABLE run DROP COLUMN note;":                                        "drops a column",
		"ALTER TABLE run\n  RENAME COLUMN note TO checkpoint;":                     "renames",
		"alter table run rename to job;":                                           "renames",
		"DROP TABLE polls;":                                                        "drops a table",
		"ALTER TABLE run ALTER COLUMN note SET NOT NULL;":                          "changes a column",
		"ALTER TABLE run ADD CONSTRAINT c CHECK (n > 0);":                          "adds a constraint",
		"CREATE UNIQUE INDEX i ON run (note);":                                     "adds a unique index",
		"ALTER TABLE run ADD COLUMN pool TEXT NOT NULL;":                           "adds a required column without a default",
		"ALTER TABLE run ADD COLUMN pool TEXT NOT NULL DEFAULT 'default';":         "",
		"ALTER TABLE run ADD COLUMN pool TEXT;\nCREATE INDEX i ON run (pool);":     "",
		"CREATE TABLE place (engine TEXT NOT NULL PRIMARY KEY); -- DROP TABLE run": "",
		"SELECT 1;\n-- +goose Down\nDROP TABLE run;":                               "",
	} {
		if got := strings.Join(findContractions(text), ", "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// largeTables grow with the runs. A statement that locks one of them for long
// stops the service of a large installation.
const largeTables = `(run|run_attempt|run_input|result|favorite|asset|upload|ledger_transaction|ledger_entry|ledger_day|audit|webhook_event|webhook_attempt|idempotency|report_sum|report_flow)`

// longLocks are the statements that lock a large table of PostgreSQL against
// writes for as long as they read it.
var longLocks = map[string]*regexp.Regexp{
	"builds an index under a lock": regexp.MustCompile(`(?is)\bCREATE\s+(UNIQUE\s+)?INDEX\s+(IF\s+NOT\s+EXISTS\s+)?\w+\s+ON\s+` + largeTables + `\b`),
	"builds an index that cannot be built again after an interruption": regexp.MustCompile(
		`(?is)\bCREATE\s+(UNIQUE\s+INDEX\s+CONCURRENTLY|INDEX\s+CONCURRENTLY\s+\w+\s+ON\b)`),
	"changes all rows":             regexp.MustCompile(`(?is)\b(UPDATE|DELETE\s+FROM)\s+` + largeTables + `\b`),
	"changes the type of a column": regexp.MustCompile(`(?is)\bALTER\s+TABLE\s+` + largeTables + `\s+ALTER\s+COLUMN\s+\w+\s+(SET\s+DATA\s+)?TYPE\b`),
}

// findLongLocks returns what a migration of PostgreSQL does that locks a large
// table for long.
func findLongLocks(text string) (kinds []string) {
	statements := withoutComments(text)
	for kind, form := range longLocks {
		if form.MatchString(statements) {
			kinds = append(kinds, kind)
		}
	}
	isConcurrent := strings.Contains(statements, "CONCURRENTLY")
	if isConcurrent != strings.Contains(text, "-- +goose NO TRANSACTION") {
		kinds = append(kinds, "uses CONCURRENTLY within a transaction, or no transaction without it")
	}
	return kinds
}

// TestLargeTablesStayWritable checks that the migrations since the previous
// release lock no large table for long.
func TestLargeTablesStayWritable(t *testing.T) {
	t.Parallel()
	for name, text := range newMigrations(t) {
		if strings.HasSuffix(name, ".sqlite.sql") {
			continue
		}
		for _, kind := range findLongLocks(text) {
			t.Errorf("%s %s: the service would stop while it runs. Build indexes with CREATE INDEX CONCURRENTLY IF NOT EXISTS in a file with -- +goose NO TRANSACTION, and let a background job change rows in batches", name, kind)
		}
	}
}

// TestLongLocksAreFound proves that the check finds what it is for.
func TestLongLocksAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"CREATE INDEX i ON run (note);":                                                      "builds an index under a lock",
		"CREATE UNIQUE INDEX i ON ledger_entry (note);":                                      "builds an index under a lock",
		"CREATE INDEX i ON run_turn (engine);":                                               "",
		"UPDATE result\nSET note = '';":                                                      "changes all rows",
		"-- UPDATE result SET note = '';":                                                    "",
		"ALTER TABLE run ALTER COLUMN seed TYPE TEXT;":                                       "changes the type of a column",
		"-- +goose NO TRANSACTION\nCREATE INDEX CONCURRENTLY IF NOT EXISTS i ON run (note);": "",
		"-- +goose NO TRANSACTION\nCREATE INDEX CONCURRENTLY i ON run (note);":               "builds an index that cannot be built again after an interruption",
		"CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON run (note);":                           "uses CONCURRENTLY within a transaction, or no transaction without it",
	} {
		if got := strings.Join(findLongLocks(text), ", "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
