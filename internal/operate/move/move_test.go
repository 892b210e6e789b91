package move_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/operate/move"
)

// killVariable makes this test binary a process that moves an installation and
// kills itself. Its value has the addresses and the number of the step, encoded
// as a query.
const killVariable = "MOVE_TEST_KILL"

func TestMain(m *testing.M) {
	if text := os.Getenv(killVariable); text != "" {
		err := moveAndDie(text)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// moveAndDie moves an installation and kills this process at a step: before a
// statement that changes the target ("change"), after a batch ("copy"), a file
// ("files") or the comparison of a table ("compare"), or before the last
// statement ("finish"). The number is that of the step in this process.
func moveAndDie(text string) error {
	q, err := url.ParseQuery(text)
	if err != nil {
		return err
	}
	kind, text, _ := strings.Cut(q.Get("at"), " ")
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	ctx := context.Background()
	var steps atomic.Int64
	step := func(of string) {
		if of == kind && steps.Add(1) == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	source, err := sqldb.Open(ctx, q.Get("from"), sqldb.Options{MaxConns: 4, Now: time.Now, ReadOnly: true})
	if err != nil {
		return err
	}
	changes := func(query string, _ []any) {
		switch verb, _, _ := strings.Cut(strings.TrimSpace(query), " "); verb {
		case "INSERT", "UPDATE", "DELETE", "COPY":
			step("change")
		case "DROP":
			step("finish")
		}
	}
	target, err := sqldb.Open(ctx, q.Get("to"), sqldb.Options{MaxConns: 4, Now: time.Now, Trace: changes})
	if err != nil {
		return err
	}
	m := newMove(source, target)
	m.Report = func(p move.Progress) {
		step(p.Step)
	}
	keys := blob.Options{AccessKey: q.Get("access"), SecretKey: q.Get("secret"), Now: time.Now, SkipSync: true}
	if m.TargetFiles, err = blob.Open(ctx, q.Get("to_files"), keys); err != nil {
		return err
	}
	keys.ReadOnly = true
	if m.SourceFiles, err = blob.Open(ctx, q.Get("from_files"), keys); err != nil {
		return err
	}
	if _, err = m.Run(ctx); err != nil {
		return err
	}
	return errFinished
}

// errFinished is the error of a process that has finished its move before the
// step in which it should have been killed.
var errFinished = errors.New("the move has finished")

func newMove(source, target *sqldb.DB) move.Move {
	return move.Move{
		Source:       source,
		Target:       target,
		CheckStopped: func(context.Context) error { return nil },
		Check:        func(context.Context) ([]string, error) { return nil, nil },
		Now:          time.Now,
	}
}

// place is a database and a file store.
type place struct {
	database string
	files    string
	options  blob.Options
}

// newPlace returns an empty place: files are in a folder beside SQLite, and in a
// bucket beside PostgreSQL.
func newPlace(t *testing.T, engine string) place {
	t.Helper()
	p := place{database: dbtest.Bare(t, engine), files: "file://" + filepath.Join(t.TempDir(), "blobs"), options: blob.Options{Now: time.Now}}
	if engine == "postgres" {
		b := blobtest.S3(t)
		p.files = b.Address()
		p.options = b.Options()
	}
	return p
}

func (p place) open(t *testing.T, readOnly bool) (*sqldb.DB, blob.Store) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), p.database, sqldb.Options{MaxConns: 4, Now: time.Now, ReadOnly: readOnly, Limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, p.openFiles(t, readOnly)
}

func (p place) openFiles(t *testing.T, readOnly bool) blob.Store {
	t.Helper()
	o := p.options
	o.ReadOnly = readOnly
	o.SkipSync = true
	files, err := blob.Open(t.Context(), p.files, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	return files
}

// The numbers of rows and files that fill adds. People need several batches.
const (
	peopleCount = 4500
	fileCount   = 12
)

// fill adds an installation: people, ledger entries, an audit log, jobs and
// files.
func (p place) fill(t *testing.T) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), p.database, sqldb.Options{MaxConns: 4, Now: time.Now, Limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() // the source must be closed before a move
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	jobs, err := queue.Open(db, queue.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Write(t.Context(), func(tx *sqldb.Tx) error {
		exec := func(query string, args ...any) {
			if err == nil {
				_, err = tx.Exec(t.Context(), query, args...)
			}
		}
		err = nil
		exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ` + strconv.Itoa(peopleCount) + `)
			SELECT 'Person-' || i, 'p' || i || '@example.com', 'p' || i || '@example.com', i % 2 = 0, '', 1000000 + i FROM n`)
		exec(`INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ('system:revenue', -45, 0, '', 0), ('Person-1', 45, 0, '', 0)`)
		for i := range 10 {
			id := fmt.Sprintf("tx-%d", i)
			at := int64(i) * 43_200_000_000
			exec(`INSERT INTO ledger_transaction (id, kind, note, created) VALUES ($1, 'grant', 'für dich', $2)`, id, at)
			exec(`INSERT INTO ledger_entry (transaction_id, account_id, amount, created) VALUES ($1, 'Person-1', $2, $3), ($1, 'system:revenue', -$2, $3)`, id, int64(i), at)
		}
		exec(`INSERT INTO board (id, account_id, person_id, name, revision, nodes, forgotten, created, updated) VALUES ('b', 'Person-1', 'Person-1', 'one', 1, 1, 0, 1, 1)`)
		exec(`INSERT INTO board_node (board_id, id, kind, ref, text, x, y, width, height, z, revision, created, person_id)
			VALUES ('b', 'n', 'TEXT', '', 'ein Text', 0.1, -2, 3, 1e300, 0, 1, 1, 'Person-1')`)
		for i := range 3 {
			if err == nil {
				_, err = jobs.Add(t.Context(), tx, queue.Job{Kind: "mail", Args: fmt.Appendf(nil, `{"n":%d}`, i), Unique: fmt.Sprintf("key %d", i)})
			}
		}
		if err == nil {
			err = audit.Add(t.Context(), tx, audit.Entry{Act: audit.KeysRotated})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	files := p.openFiles(t, false)
	for i := range fileCount {
		if _, err := files.Put(t.Context(), fmt.Sprintf("media/%d/file.png", i), bytes.NewReader(bytes.Repeat([]byte{byte(i)}, i*10_000))); err != nil {
			t.Fatal(err)
		}
	}
}

// move copies an installation and fails the test unless it is complete.
func (p place) move(t *testing.T, to place) move.Report {
	t.Helper()
	source, sourceFiles := p.open(t, true)
	defer source.Close()
	target, targetFiles := to.open(t, false)
	defer target.Close()
	m := newMove(source, target)
	m.SourceFiles = sourceFiles
	m.TargetFiles = targetFiles
	r, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Jobs != 3 || r.Files != fileCount || r.Rows < peopleCount {
		t.Errorf("report = %+v", r)
	}
	for _, where := range []*sqldb.DB{source, target} {
		var got []queue.Job
		err := where.Read(t.Context(), func(tx *sqldb.Tx) (err error) { got, err = queue.ListUnfinished(t.Context(), tx); return err })
		want := `[{mail {"n":0} key 0} {mail {"n":1} key 1} {mail {"n":2} key 2}]`
		var text []string
		for _, j := range got {
			text = append(text, fmt.Sprintf("{%s %s %s}", j.Kind, j.Args, j.Unique))
		}
		if fmt.Sprint(text) != want || err != nil {
			t.Errorf("jobs = %v, %v, want %s", text, err, want)
		}
	}
	if err := target.CheckMigrated(t.Context()); err != nil {
		t.Errorf("the target cannot be used: %v", err)
	}
	var last []audit.Record
	err = target.Read(t.Context(), func(tx *sqldb.Tx) (err error) {
		last, err = audit.List(t.Context(), tx, audit.Filter{Limit: 1})
		return err
	})
	if err != nil || len(last) != 1 || last[0].Act != audit.InstallationMoved {
		t.Errorf("newest audit entry = %v, %v", last, err)
	}
	return r
}

// tree returns the content of the files of an embedded installation, without
// the index of the write-ahead log, which is no part of the data.
func (p place) tree(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	path := strings.TrimPrefix(p.database, "sqlite://")
	for _, name := range []string{path, path + "-wal"} {
		content, err := os.ReadFile(name)
		if err == nil {
			all[name] = string(content)
		}
	}
	return all
}

// tryMove moves an installation that fill has made, after change has changed
// the move. It returns the error.
func (p place) tryMove(t *testing.T, to place, change func(*move.Move)) error {
	t.Helper()
	source, sourceFiles := p.open(t, true)
	defer source.Close()
	target, targetFiles := to.open(t, false)
	defer target.Close()
	m := newMove(source, target)
	m.SourceFiles = sourceFiles
	m.TargetFiles = targetFiles
	change(&m)
	_, err := m.Run(t.Context())
	return err
}

// pairs are the directions of a move.
var pairs = [][2]string{{"sqlite", "postgres"}, {"postgres", "sqlite"}}

// TestMoveKilledInTheMiddle kills the process that moves an installation, with
// SIGKILL, again and again at later steps, and then lets it finish.
func TestMoveKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, pair := range pairs {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
			t.Parallel()
			from := newPlace(t, pair[0])
			from.fill(t)
			before := from.tree(t)
			to := newPlace(t, pair[1])
			keys := from.options
			if pair[1] == "postgres" {
				keys = to.options
			}
			// Each attempt continues where the one before was killed.
			for _, at := range []string{"change 1", "change 3", "change 70", "change 2", "copy 30", "files 1", "files 5", "compare 10", "finish 1"} {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), killVariable+"="+url.Values{
					"from": {from.database}, "to": {to.database}, "from_files": {from.files}, "to_files": {to.files},
					"access": {keys.AccessKey}, "secret": {keys.SecretKey}, "at": {at},
				}.Encode())
				out, err := cmd.CombinedOutput()
				status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
				if err == nil || !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
					t.Fatalf("killed at %s: %v, %s", at, err, out)
				}
				checkHalfMoved(t, to)
			}
			r := from.move(t, to)
			if !r.Resumed {
				t.Error("the move began again")
			}
			if after := from.tree(t); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Error("the move has changed the source")
			}
		})
	}
}

// checkHalfMoved fails the test if a service could use the database.
func checkHalfMoved(t *testing.T, p place) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), p.database, sqldb.Options{MaxConns: 4, Now: time.Now, Limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	begun, err := db.IsMoveTarget(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !begun {
		return
	}
	if _, err := db.Migrate(t.Context()); !errors.Is(err, sqldb.ErrUnfinishedMove) {
		t.Errorf("the database can be opened: %v", err)
	}
}

// errStop ends a move in the middle.
var errStop = errors.New("stop")

// stopAt makes a move fail with errStop before its last check.
func stopAt(m *move.Move) { m.Check = func(context.Context) ([]string, error) { return nil, errStop } }

func expectError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error = %v, want %q", err, text)
	}
}

// exec changes a database directly.
func (p place) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), p.database, sqldb.Options{MaxConns: 2, Now: time.Now, Limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Write(t.Context(), func(tx *sqldb.Tx) error { _, err := tx.Exec(t.Context(), query, args...); return err }); err != nil {
		t.Fatal(err)
	}
}

// eachPair runs fn with a filled source and an empty target, for both
// directions.
func eachPair(t *testing.T, fn func(t *testing.T, from, to place)) {
	t.Helper()
	t.Parallel()
	for _, pair := range pairs {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
			t.Parallel()
			from := newPlace(t, pair[0])
			from.fill(t)
			fn(t, from, newPlace(t, pair[1]))
		})
	}
}

func TestTargetMustBeEmptyOrTheSameMove(t *testing.T) {
	eachPair(t, func(t *testing.T, from, to place) {
		used := to
		used.database = dbtest.URL(t, map[bool]string{true: "sqlite", false: "postgres"}[strings.HasPrefix(to.database, "sqlite")])
		expectError(t, from.tryMove(t, used, func(*move.Move) {}), "the database of the target is not empty")

		files := to.openFiles(t, false)
		if _, err := files.Put(t.Context(), "media/other.png", strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		expectError(t, from.tryMove(t, to, func(*move.Move) {}), "the file store of the target is not empty")
		if err := files.Delete(t.Context(), "media/other.png"); err != nil {
			t.Fatal(err)
		}

		if err := from.tryMove(t, to, stopAt); !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		if _, err := files.Put(t.Context(), "media/other.png", strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		expectError(t, from.tryMove(t, to, func(*move.Move) {}), "files that the source does not have: media/other.png")
		if err := files.Delete(t.Context(), "media/other.png"); err != nil {
			t.Fatal(err)
		}

		// The audit log of the source is longer now: it has run in between.
		from.exec(t, `UPDATE audit_head SET seq = seq + 1`)
		expectError(t, from.tryMove(t, to, func(*move.Move) {}), "the source has changed since the move began")
		from.exec(t, `UPDATE audit_head SET seq = seq - 1`)
		from.move(t, to)
		expectError(t, from.tryMove(t, to, func(*move.Move) {}), "the database of the target is not empty")
	})
}

func TestDifferencesAreFound(t *testing.T) {
	eachPair(t, func(t *testing.T, from, to place) {
		if err := from.tryMove(t, to, stopAt); !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		// A value, a row that is missing, and a row too many.
		for _, change := range [][2]string{
			{`UPDATE person SET email = 'other' WHERE id = 'Person-77'`, `UPDATE person SET email = 'p77@example.com' WHERE id = 'Person-77'`},
			{`DELETE FROM board_node`, `INSERT INTO board_node (board_id, id, kind, ref, text, x, y, width, height, z, revision, created, person_id)
				VALUES ('b', 'n', 'TEXT', '', 'ein Text', 0.1, -2, 3, 1e300, 0, 1, 1, 'Person-1')`},
			{`INSERT INTO storage_account (account_id, used_bytes, leaving_bytes) VALUES ('x', 0, 0)`, `DELETE FROM storage_account`},
			{`UPDATE ledger_day SET received = received + 1 WHERE day = 1`, `UPDATE ledger_day SET received = received - 1 WHERE day = 1`},
		} {
			to.exec(t, change[0])
			expectError(t, from.tryMove(t, to, func(*move.Move) {}), "differs: the source has")
			to.exec(t, change[1])
		}

		// A copy of a file that was damaged is replaced.
		files := to.openFiles(t, false)
		if _, err := files.Put(t.Context(), "media/3/file.png", bytes.NewReader(bytes.Repeat([]byte{77}, 30_000))); err != nil {
			t.Fatal(err)
		}
		from.move(t, to)
		got, _, err := files.Open(t.Context(), "media/3/file.png", 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		one := make([]byte, 1)
		if _, err := got.Read(one); one[0] != 3 {
			t.Errorf("the damaged file has the byte %d, %v", one[0], err)
		}
	})
}

// TestTwoMovesIntoOneTarget runs a second move while a first one has copied a
// table only in part. One of them stops.
func TestTwoMovesIntoOneTarget(t *testing.T) {
	eachPair(t, func(t *testing.T, from, to place) {
		var second error
		err := from.tryMove(t, to, func(m *move.Move) {
			m.Report = func(p move.Progress) {
				if p.Table == "person" && p.Rows == 2000 && second == nil {
					second = from.tryMove(t, to, stopAt)
				}
			}
		})
		if !errors.Is(second, errStop) {
			t.Errorf("second move: %v", second)
		}
		expectError(t, err, "another atelier move into the same target is running")
		from.move(t, to)
	})
}

// TestFilesOnly moves the files to another store, while the database stays.
func TestFilesOnly(t *testing.T) {
	eachPair(t, func(t *testing.T, from, to place) {
		filesOnly := func(m *move.Move) { m.Target = nil }
		err := from.tryMove(t, to, func(m *move.Move) {
			filesOnly(m)
			stopAt(m)
		})
		if !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		from.exec(t, `UPDATE audit_head SET seq = seq + 1`)
		expectError(t, from.tryMove(t, to, filesOnly), "the source has changed since the move began")
		from.exec(t, `UPDATE audit_head SET seq = seq - 1`)
		if err := from.tryMove(t, to, filesOnly); err != nil {
			t.Fatal(err)
		}
		keys := 0
		for item, err := range to.openFiles(t, true).List(t.Context(), "") {
			if err != nil || !strings.HasPrefix(item.Key, "media/") {
				t.Errorf("the target has %s, %v", item.Key, err)
			}
			keys++
		}
		if keys != fileCount {
			t.Errorf("files = %d, want %d", keys, fileCount)
		}
		expectError(t, from.tryMove(t, to, filesOnly), "the file store of the target is not empty")
	})
}
