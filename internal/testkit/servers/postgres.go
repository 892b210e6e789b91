package servers

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
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

var errNoPostgres = fmt.Errorf("PostgreSQL %w: it is not installed (Debian: apt-get install postgresql)", ErrMissing)

// postgresTimeout limits the start of a server.
const postgresTimeout = 30 * time.Second

// Postgres is a PostgreSQL server that ends with the test binary.
type Postgres struct {
	PID    int
	socket string // directory of the socket
	bin    string // folder of the programs

	credential *syscall.Credential // user of the server; nil: the user of the test
	options    []string            // further arguments
}

// StartPostgres starts a server from the installed programs on a socket in a
// temporary directory. The options are arguments of postgres. Without -F the
// server waits for the disk as in production.
func StartPostgres(options ...string) (*Postgres, error) {
	bin, err := PostgresPrograms()
	if err != nil {
		return nil, err
	}
	// The path of a socket has at most 107 bytes, so the directory's path is
	// short.
	dir, err := Dir("/tmp", "atl-pg-")
	if err != nil {
		return nil, err
	}
	credential, err := unprivilegedUser(dir)
	if err != nil {
		return nil, err
	}

	data := dataFolder(dir)
	initdb := exec.Command(filepath.Join(bin, "initdb"), "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", data)
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	initdb.Dir = dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}

	return startServer(bin, dir, credential, options)
}

// StartReplica starts a streaming replica of the server, on a socket of its
// own. The options are arguments of postgres.
func (p *Postgres) StartReplica(options ...string) (*Postgres, error) {
	dir, err := Dir("/tmp", "atl-pg-")
	if err != nil {
		return nil, err
	}
	credential, err := unprivilegedUser(dir)
	if err != nil {
		return nil, err
	}
	// The option -R lets the copy follow the server.
	backup := exec.Command(filepath.Join(p.bin, "pg_basebackup"), "-h", p.socket, "-U", "postgres", "-D", dataFolder(dir), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	backup.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	backup.Dir = dir
	if out, err := backup.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	return startServer(p.bin, dir, credential, options)
}

// dataFolder returns the folder of a server's data in its own folder.
func dataFolder(dir string) string { return filepath.Join(dir, "data") }

// startServer starts a server on the data in dir, and waits until it answers.
func startServer(bin, dir string, credential *syscall.Credential, options []string) (*Postgres, error) {
	cmd := exec.Command(filepath.Join(bin, "postgres"), append([]string{"-D", dataFolder(dir), "-k", dir, "-c", "listen_addresses="}, options...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	cmd.Dir = dir
	process, err := Start(cmd)
	if err != nil {
		return nil, err
	}
	p := &Postgres{PID: cmd.Process.Pid, socket: dir, bin: bin, credential: credential, options: options}
	for deadline := time.Now().Add(postgresTimeout); ; time.Sleep(20 * time.Millisecond) {
		err := p.Exec(context.Background(), `SELECT 1`)
		if err == nil {
			return p, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("postgres did not start: %w: %s", err, process.Log())
		}
	}
}

// Restart starts the server again after it was killed, on the same data and the
// same socket.
func (p *Postgres) Restart() error {
	again, err := startServer(p.bin, p.socket, p.credential, p.options)
	if err != nil {
		return err
	}
	p.PID = again.PID
	return nil
}

// URL returns the address of a database of the server.
func (p *Postgres) URL(database string) string {
	q := url.Values{"host": {p.socket}, "user": {"postgres"}}
	return "postgres:///" + database + "?" + q.Encode()
}

// Exec runs a statement in the database postgres.
func (p *Postgres) Exec(ctx context.Context, statement string) error {
	c, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, statement)
	return err
}

// PostgresPrograms returns the folder with initdb, postgres and pg_dump: the
// folder in ATELIER_TEST_PG_BIN, or that of the newest installed version.
func PostgresPrograms() (string, error) {
	var dirs []string
	if d := os.Getenv("ATELIER_TEST_PG_BIN"); d != "" {
		dirs = append(dirs, d)
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(debian, func(a, b string) int { return versionOf(b) - versionOf(a) })
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

// versionOf returns the version in the name of one of Debian's folders.
func versionOf(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(strings.TrimSuffix(bin, "/bin")))
	return n
}

// unprivilegedUser returns the user that the server runs as, and makes the user
// the owner of dir: PostgreSQL does not run as root. It returns nil if this
// process does not run as root.
func unprivilegedUser(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid) // numeric on this system
		gid, _ := strconv.Atoi(u.Gid)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
	}
	return nil, errors.New("PostgreSQL does not run as root, and neither a user postgres nor nobody exists")
}
