// Package move_test moves an installation between the databases and copies it
// continuously, with the program itself.
//
//	go test ./test/move -timeout 0 -v -args -runs 1000000
//
// moves an installation with as many runs, and logs how long each step took.
package move_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

var runs = flag.Int("runs", 6000, "number of runs of the installation that is moved")

func TestMain(m *testing.M) {
	flag.Parse()
	program.Main(m)
}

// machine runs commands of the program in a folder.
type machine struct {
	*testing.T
	folder string
	env    []string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	t.Parallel()
	b := blobtest.S3(t)
	return machine{t, t.TempDir(), append(os.Environ(), "ATELIER_S3_ACCESS_KEY="+b.AccessKey, "ATELIER_S3_SECRET_KEY="+b.SecretKey)}
}

func (m machine) command(args ...string) *exec.Cmd {
	m.Helper()
	path, err := program.Binary()
	if err != nil {
		m.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = m.folder
	cmd.Env = m.env
	return cmd
}

// do runs a command and returns what it prints as JSON.
func (m machine) do(args ...string) map[string]any {
	m.Helper()
	answer, err := m.try(args...)
	if err != nil {
		m.Fatal(err)
	}
	return answer
}

func (m machine) try(args ...string) (answer map[string]any, err error) {
	m.Helper()
	cmd := m.command(append(args, "--json")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("atelier %s: %w: %s%.1000s", strings.Join(args, " "), err, stderr.String(), out)
	}
	m.Logf("atelier %s took %v", args[0], time.Since(began).Round(time.Millisecond))
	if err := json.Unmarshal(out, &answer); err != nil {
		return nil, fmt.Errorf("atelier %s: %w: %s", args[0], err, out)
	}
	return answer, nil
}

// check fails the test unless the installation has no problems.
func (m machine) check(flags ...string) {
	m.Helper()
	if v := m.do(append([]string{"check"}, flags...)...); fmt.Sprint(v["violations"]) != "[]" {
		m.Errorf("violations: %v", v)
	}
}

// oldRuns fill an installation that has never been started: people with runs
// that were cancelled, each with an attempt and its settlement. {runs} is the
// number of runs.
var oldRuns = []string{
	`INSERT INTO person (id, email, email_key, email_verified, password_hash, created)
	WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99)
	SELECT 'person-' || i, 'p' || i || '@example.com', 'p' || i || '@example.com', TRUE, '', 1000000 FROM n`,

	`INSERT INTO tool_version (hash, definition) VALUES ('v1:RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o', '{}')`,
	`INSERT INTO tool (id, slug, source, definition, hash, removed, created, updated) VALUES ('tool', 'tool', 'directory', '{}', 'v1:RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o', TRUE, 1, 1)`,

	`INSERT INTO run (id, library_id, person_id, account_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed,
		num_results, metadata, webhook_url, estimated_s, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used,
		status, attempt, worker, cancel, preview, revision, error_code, error_message, created, started, finished)
	WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {runs})
	SELECT '00000000-0000-7000-8000-' || substr(CAST(1000000000000 + i AS TEXT), 2), 'library-' || i, 'person-' || (i % 100), 'person-' || (i % 100), 'personal_token', 'old', '', 'tool', 'v1:RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o', 'image',
		'{"prompt": "ein roter Fuchs"}', 'ein roter Fuchs im Schnee', i, 1, '', '', 2, 2, 1, 1, 0, '', 0, 0,
		'cancelled', 1, 'old', FALSE, '', 4, '', '', 1700000000000000 + i * 1000000, 1700000000100000 + i * 1000000, 1700000002000000 + i * 1000000
	FROM n`,

	`INSERT INTO run_attempt (run_id, attempt, worker, started, ended, outcome) SELECT id, 1, 'old', started, finished, status FROM run`,

	`INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) SELECT id, 0, 0, '', 0 FROM person`,
	`INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ('system:revenue', 0, 0, '', 0)`,
	`INSERT INTO ledger_transaction (id, kind, note, created, run_id) SELECT 'settle-' || id, 'settle', '', finished, id FROM run`,
	`INSERT INTO ledger_entry (transaction_id, account_id, amount, created) SELECT 'settle-' || id, account_id, 0, finished FROM run`,
	`INSERT INTO ledger_entry (transaction_id, account_id, amount, created) SELECT 'settle-' || id, 'system:revenue', 0, finished FROM run`,
}

// fill makes an installation with runs in a data folder, and opens it once
// with a command, which seals the rows.
func (m machine) fill(data string) {
	m.Helper()
	m.do("migrate", "--data", data)
	db, err := sqldb.Open(m.Context(), "sqlite://"+filepath.Join(m.folder, data, "atelier.db"), sqldb.Options{MaxConns: 2, Now: time.Now})
	if err != nil {
		m.Fatal(err)
	}
	defer db.Close()
	ctx := sqldb.WithLimit(m.Context(), time.Hour)
	for _, text := range oldRuns {
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			_, err := tx.Exec(ctx, strings.ReplaceAll(text, "{runs}", strconv.Itoa(*runs)))
			return err
		})
		if err != nil {
			m.Fatal(err)
		}
	}
	db.Close()
	m.addPerson(data, "anna")
	blobs := filepath.Join(m.folder, data, "blobs", "data", "catalog")
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		m.Fatal(err)
	}
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(blobs, fmt.Sprintf("%d.png", i)), bytes.Repeat([]byte{byte(i)}, 1000*i), 0o600); err != nil {
			m.Fatal(err)
		}
	}
}

func (m machine) addPerson(data, name string) {
	m.Helper()
	m.do("admin", "person", "create", "--data", data, "--email", name+"@example.com", "--password", "correct horse battery", "--verified")
}

// count returns the number of people of an installation.
func (m machine) count(database string) int64 {
	m.Helper()
	db, err := sqldb.Open(m.Context(), database, sqldb.Options{MaxConns: 2, Now: time.Now, ReadOnly: true})
	if err != nil {
		m.Fatal(err)
	}
	defer db.Close()
	n, err := sqldb.One[int64](m.Context(), db, `SELECT count(*) FROM person`)
	if err != nil {
		m.Fatal(err)
	}
	return n
}

func (m machine) file(data string) string {
	return "sqlite://" + filepath.Join(m.folder, data, "atelier.db")
}

// killMove starts a move and kills it when the target has a part of the rows.
func (m machine) killMove(target string, args ...string) {
	m.Helper()
	cmd := m.command(args...)
	var output bytes.Buffer
	cmd.Stdout = &output
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		m.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	watch.Until(m, "the target has runs", func() bool {
		select {
		case err := <-ended:
			m.Fatalf("the move ended before it was killed: %v: %s", err, output.String())
		default:
		}
		return m.hasRuns(target)
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		m.Fatal(err)
	}
	<-ended
}

// hasRuns reports whether a database has runs. A table that does not exist yet
// has none.
func (m machine) hasRuns(database string) bool {
	if path, ok := strings.CutPrefix(database, "sqlite://"); ok {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	db, err := sqldb.Open(m.Context(), database, sqldb.Options{MaxConns: 2, Now: time.Now})
	if err != nil {
		return false
	}
	defer db.Close()
	found, err := sqldb.Exists(m.Context(), db, `SELECT 1 FROM run`)
	return err == nil && found
}

// TestThereAndBack moves an installation to PostgreSQL and S3 and back, and
// kills each move once.
func TestThereAndBack(t *testing.T) {
	m := newMachine(t)
	m.fill("one")
	m.check("--data", "one")
	postgres := dbtest.Bare(t, "postgres")
	bucket := blobtest.S3(t).Address()

	there := []string{"move", "--from", "one", "--to", postgres, "--to", bucket}
	m.killMove(postgres, there...)
	if _, err := m.try("check", "--data", "one", "--database", postgres); err == nil || !strings.Contains(err.Error(), "atelier move has not finished") {
		t.Errorf("check of a half: %v", err)
	}
	first := m.do(there...)
	if first["resumed"] != true || first["files"] != 20.0 || first["rows"].(float64) < float64(5**runs) || fmt.Sprint(first["problems"]) != "[]" {
		t.Errorf("there: %v", first)
	}
	m.check("--data", "one", "--database", postgres, "--blobs", bucket, "--files")

	back := []string{"move", "--data", "one", "--from", postgres, "--from", bucket, "--to", "two"}
	m.killMove(m.file("two"), back...)
	second := m.do(back...)
	// The second source has one more row: the audit entry of the first move.
	if second["resumed"] != true || second["files"] != 20.0 || second["rows"] != first["rows"].(float64)+1 {
		t.Errorf("back: %v, there: %v", second, first)
	}
	m.check("--data", "two", "--files")
	if got, want := m.count(m.file("two")), m.count(m.file("one")); got != want || want != 101 {
		t.Errorf("people = %d, want %d", got, want)
	}
	t.Logf("there %v s, back %v s, with %d runs and %.0f rows", first["seconds"], second["seconds"], *runs, first["rows"])
}

// TestMoveNeedsStoppedService runs a service on the source.
func TestMoveNeedsStoppedService(t *testing.T) {
	m := newMachine(t)
	for _, engine := range dbtest.Engines {
		data := "live-" + engine
		m.do("migrate", "--data", data)
		flags := []string{"--data", data}
		want := "another process uses the database"
		if engine == "postgres" {
			flags = append(flags, "--database", dbtest.Bare(t, engine))
			want = "stop all nodes first"
		}
		stop := m.serve(flags...)
		watch.Until(t, "the service is noticed", func() bool {
			_, err := m.try(append([]string{"move", "--to", data + "-copy"}, flags...)...)
			return err != nil && strings.Contains(err.Error(), want)
		})
		stop()
		m.do(append([]string{"move", "--to", data + "-later"}, flags...)...)
	}
}

// serve starts a service and waits until it is ready.
func (m machine) serve(flags ...string) (stop func()) {
	m.Helper()
	cmd := m.command(append([]string{"serve", "--listen", program.FreeAddress(m), "--metrics.listen", "off", "--shutdown.delay", "0s"}, flags...)...)
	log := &watch.Log{}
	cmd.Stdout = log
	cmd.Stderr = log
	return m.background(cmd, func() bool { return strings.Contains(log.String(), "ready") })
}

// background starts a command and waits until it is ready. stop interrupts it
// and waits until it has ended.
func (m machine) background(cmd *exec.Cmd, ready func() bool) (stop func()) {
	m.Helper()
	if err := cmd.Start(); err != nil {
		m.Fatal(err)
	}
	ended, end := context.WithCancelCause(context.Background())
	go func() { end(cmd.Wait()) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Signal(os.Interrupt) // fails only if the process has ended
			<-ended.Done()
		}
	}
	m.Cleanup(stop)
	watch.Until(m, strings.Join(cmd.Args[1:3], " ")+" is ready", func() bool {
		if ended.Err() != nil {
			m.Fatalf("%v ended: %v", cmd.Args, context.Cause(ended))
		}
		return ready()
	})
	return stop
}

// TestContinuousBackup copies the changes of a running service to a bucket, and
// restores the installation as of a moment between two changes.
func TestContinuousBackup(t *testing.T) {
	m := newMachine(t)
	bucket := blobtest.S3(t).Address()
	m.do("migrate", "--data", "live")
	m.addPerson("live", "anna")
	m.serve("--data", "live")

	copies := 0
	restore := func(at string) int64 {
		copies++
		data := fmt.Sprintf("copy-%d", copies)
		args := []string{"restore", bucket, "--data", data, "--secret-file", filepath.Join(m.folder, "live", "keys", "secret")}
		if at != "" {
			args = append(args, "--at", at)
		}
		if _, err := m.try(args...); err != nil {
			m.Log(err)
			return -1
		}
		m.check("--data", data)
		return m.count(m.file(data))
	}
	stop := m.background(m.command("backup", "--continuous", bucket, "--data", "live"), func() bool { return restore("") == 1 })
	m.addPerson("live", "berta")
	watch.Until(t, "two people are copied", func() bool { return restore("") == 2 })
	moment := time.Now().UTC().Format(time.RFC3339Nano)
	m.addPerson("live", "clara")
	stop()
	if got := restore(""); got != 3 {
		t.Errorf("the newest copy has %d people, want 3", got)
	}
	if got := restore(moment); got != 2 {
		t.Errorf("as of %s there are %d people, want 2", moment, got)
	}
	if _, err := m.try("restore", bucket, "--data", "early", "--at", "2020-01-01T00:00:00Z", "--secret-file", filepath.Join(m.folder, "live", "keys", "secret")); err == nil ||
		!strings.Contains(err.Error(), "there is no backup of this moment") {
		t.Errorf("before the first copy: %v", err)
	}
	if _, err := m.try("restore", bucket, "--data", "early"); err == nil || !strings.Contains(err.Error(), "does not contain the installation's secret") {
		t.Errorf("without a secret: %v", err)
	}
}
