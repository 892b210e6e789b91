package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"atelier/internal/testkit/servers"
)

var errNoPostgres = fmt.Errorf("PostgreSQL %w: it is not installed (Debian: apt-get install postgresql)", servers.ErrMissing)

// server is a PostgreSQL; all tests of a binary share one, unless they pause it.
type server struct {
	socket string // directory of the socket
	pid    int
	made   atomic.Int64
}

func (s *server) url(database string) string {
	q := url.Values{"host": {s.socket}, "user": {"postgres"}}
	return "postgres:///" + database + "?" + q.Encode()
}

func (s *server) exec(ctx context.Context, statement string) error {
	c, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, statement)
	return err
}

// freshPostgres makes a database for one test, with or without the schema.
func freshPostgres(t testing.TB, migrated bool) string {
	t.Helper()
	s := servers.Need(t, "PostgreSQL", "ATELIER_TEST_PG", startServer)
	template := "template1"
	if migrated {
		template = "migrated"
		if err := postgresTemplate(); err != nil {
			t.Fatalf("postgres for tests: %v", err)
		}
	}
	name := fmt.Sprintf("t%d", s.made.Add(1))
	if err := s.exec(t.Context(), `CREATE DATABASE `+name+` TEMPLATE `+template+` STRATEGY file_copy`); err != nil {
		t.Fatalf("postgres for tests: %v", err)
	}
	t.Cleanup(func() { s.exec(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`) })
	return s.url(name)
}

var postgresTemplate = sync.OnceValue(func() error {
	s, err := startServer()
	if err != nil {
		return err
	}
	if err := s.exec(context.Background(), `CREATE DATABASE migrated`); err != nil {
		return err
	}
	return migrate(s.url("migrated"))
})

var startServer = sync.OnceValues(newServer)

func newServer() (*server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	// A socket's path ends at 107 bytes, so the folder's is short.
	dir, err := servers.Dir("/tmp", "atl-pg-")
	if err != nil {
		return nil, err
	}
	who, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", data)
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	initdb.Dir = dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-F", "-k", dir,
		"-c", "listen_addresses=", "-c", "max_connections=300", "-c", "autovacuum=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	cmd.Dir = dir
	process, err := servers.Start(cmd)
	if err != nil {
		return nil, err
	}
	s := &server{socket: dir, pid: cmd.Process.Pid}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := s.exec(context.Background(), `SELECT 1`)
		if err == nil {
			return s, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("postgres did not start: %w: %s", err, process.Log())
		}
	}
}

// Server is a PostgreSQL of one test's own, which it may pause.
type Server struct {
	*server
	t testing.TB
	// URL is the address of its one database, which is empty and migrated.
	URL string
}

// OwnServer starts a PostgreSQL for one test.
func OwnServer(t testing.TB) *Server {
	t.Helper()
	s := servers.Need(t, "PostgreSQL", "ATELIER_TEST_PG", newServer)
	t.Cleanup(func() { _ = syscall.Kill(s.pid, syscall.SIGQUIT) })
	if err := migrate(s.url("postgres")); err != nil {
		t.Fatalf("postgres for tests: %v", err)
	}
	return &Server{server: s, t: t, URL: s.url("postgres")}
}

// Pause stops all processes of the server, so that nobody gets an answer while
// all connections stay open, until resume or the end of the test.
func (s *Server) Pause() (resume func()) {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	resume = sync.OnceFunc(func() { s.signal(syscall.SIGCONT) })
	s.t.Cleanup(resume)
	return resume
}

// signal sends a signal to the server and its children, which lead sessions of
// their own. The first one that stops is the one that makes more of them.
func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	pids := []int{s.pid}
	if err := syscall.Kill(s.pid, sig); err != nil {
		s.t.Fatalf("signal postgres: %v", err)
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent …
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(s.pid) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
			_ = syscall.Kill(pid, sig) // unless it has just ended
		}
	}
	if len(pids) == 1 {
		s.t.Fatal("signal postgres: it has no children here")
	}
}

// programs finds the folder with initdb and postgres, newest version first.
func programs() (string, error) {
	var dirs []string
	if d := os.Getenv("ATELIER_TEST_PG_BIN"); d != "" {
		dirs = append(dirs, d)
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(debian, func(a, b string) int { return version(b) - version(a) })
	dirs = append(dirs, debian...)
	if p, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(p))
	}
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(d, "initdb")); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(d, "postgres")); err == nil {
			return d, nil
		}
	}
	return "", errNoPostgres
}

func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(strings.TrimSuffix(bin, "/bin")))
	return n
}

// unprivileged finds whom the server runs as, and gives them dir: PostgreSQL
// refuses to run as root. It is nil where we are somebody else already.
func unprivileged(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
	}
	return nil, errors.New("PostgreSQL does not run as root and there is no user postgres or nobody")
}

// Dump gives a PostgreSQL database as its own backup program writes it.
func Dump(t testing.TB, address string) string {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "pg_dump"), "--dbname", address).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return string(out)
}
