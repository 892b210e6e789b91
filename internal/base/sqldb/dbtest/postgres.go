package dbtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"atelier/internal/testkit/servers"
	"atelier/internal/testkit/watch"
)

// server is a PostgreSQL server. All tests of a binary share one, except tests
// that pause it.
type server struct {
	*servers.Postgres
	databases atomic.Int64 // number of databases created so far
}

// freshPostgres creates a database for one test, with or without the schema,
// and returns its URL.
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
	name := fmt.Sprintf("t%d", s.databases.Add(1))
	if err := s.Exec(t.Context(), `CREATE DATABASE `+name+` TEMPLATE `+template+` STRATEGY file_copy`); err != nil {
		t.Fatalf("postgres for tests: %v", err)
	}
	t.Cleanup(func() { s.Exec(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`) })
	return s.URL(name)
}

var postgresTemplate = sync.OnceValue(func() error {
	s, err := startServer()
	if err != nil {
		return err
	}
	if err := s.Exec(context.Background(), `CREATE DATABASE migrated`); err != nil {
		return err
	}
	return migrate(s.URL("migrated"))
})

var startServer = sync.OnceValues(newServer)

// newServer starts a PostgreSQL server that does not wait until data is written
// to disk.
func newServer() (*server, error) {
	p, err := servers.StartPostgres("-F", "-c", "max_connections=300", "-c", "autovacuum=off")
	if err != nil {
		return nil, err
	}
	return &server{Postgres: p}, nil
}

// Server is a PostgreSQL server for a single test. The test may pause the
// server.
type Server struct {
	*server
	t testing.TB
	// URL is the URL of the server's only database, which is migrated and has
	// no data.
	URL string
}

// OwnServer starts a PostgreSQL server for a single test.
func OwnServer(t testing.TB) *Server {
	t.Helper()
	s := servers.Need(t, "PostgreSQL", "ATELIER_TEST_PG", newServer)
	t.Cleanup(func() { _ = syscall.Kill(s.PID, syscall.SIGQUIT) })
	if err := migrate(s.URL("postgres")); err != nil {
		t.Fatalf("postgres for tests: %v", err)
	}
	return &Server{server: s, t: t, URL: s.URL("postgres")}
}

// Pause suspends all processes of the server until resume is called or the test
// ends. Clients get no response meanwhile, and their connections stay open.
func (s *Server) Pause() (resume func()) {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	resume = sync.OnceFunc(func() { s.signal(syscall.SIGCONT) })
	s.t.Cleanup(resume)
	return resume
}

// Kill ends all processes of the server as a power cut would, and returns when
// they are gone. Restart starts the server again.
func (s *Server) Kill() {
	s.t.Helper()
	// A stopped server process creates no more children, and does not notice
	// their death.
	if err := syscall.Kill(s.PID, syscall.SIGSTOP); err != nil {
		s.t.Fatalf("stop postgres: %v", err)
	}
	pids := append(s.children(), s.PID)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // fails if the process has just ended
	}
	watch.Until(s.t, "the end of PostgreSQL", func() bool { return !slices.ContainsFunc(pids, isAlive) })
}

// isAlive reports whether a process exists and has not ended.
func isAlive(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// signal sends a signal to the server process and its children, which are in
// separate sessions. The server process is signalled first, because otherwise
// it could create more children.
func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(s.PID, sig); err != nil {
		s.t.Fatalf("signal postgres: %v", err)
	}
	pids := s.children()
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // fails if the process has just ended
	}
	if len(pids) == 0 {
		s.t.Fatal("signal postgres: it has no children here")
	}
}

// Processes returns the process ids of the server process and its children.
func (s *Server) Processes() []int { return append(s.children(), s.PID) }

// children returns the process ids of the children of the server process.
func (s *Server) children() (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		// The format of the file is: pid (name) state parent …
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(s.PID) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// Dump returns the output of pg_dump for the database at the given URL.
func Dump(t testing.TB, address string) string {
	t.Helper()
	bin, err := servers.PostgresPrograms()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "pg_dump"), "--dbname", address).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return string(out)
}
