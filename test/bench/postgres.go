package main

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
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"atelier/internal/testkit/servers"
)

// postgres is a server with its default settings, fsync on among them: what the
// tests start does not wait for the disk.
type postgres struct {
	dir  string
	made int
}

func (p *postgres) url(database string) string {
	q := url.Values{"host": {p.dir}, "user": {"postgres"}}
	return "postgres:///" + database + "?" + q.Encode()
}

func (p *postgres) exec(ctx context.Context, statement string) error {
	c, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, statement)
	return err
}

// database makes an empty one.
func (p *postgres) database(ctx context.Context) (address string, err error) {
	p.made++
	name := fmt.Sprint("bench", p.made)
	return p.url(name), p.exec(ctx, `CREATE DATABASE `+name)
}

// startPostgres starts a server that ends with this process, nil where none is
// installed.
func (b *bench) startPostgres(ctx context.Context) (*postgres, error) {
	if b.postgres != nil {
		return b.postgres, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if dir := os.Getenv("ATELIER_TEST_PG_BIN"); dir != "" {
		found = []string{filepath.Join(dir, "initdb")}
	} else if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return nil, nil
	}
	bin := filepath.Dir(slices.Max(found))
	// A socket's path ends at 107 bytes, so the folder's is short.
	dir, err := servers.Dir("/tmp", "atl-bench-")
	if err != nil {
		return nil, err
	}
	who, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", data)
	initdb.SysProcAttr, initdb.Dir = &syscall.SysProcAttr{Credential: who}, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=")
	cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: who}, dir
	process, err := servers.Start(cmd)
	if err != nil {
		return nil, err
	}
	b.postgres = &postgres{dir: dir}
	for deadline := time.Now().Add(30 * time.Second); ; {
		err := b.postgres.exec(ctx, `SELECT 1`)
		if err == nil {
			return b.postgres, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("postgres did not start: %w: %s", err, process.Log())
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
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
		uid, _ := strconv.Atoi(u.Uid) // they are numbers here
		gid, _ := strconv.Atoi(u.Gid)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
	}
	return nil, errors.New("PostgreSQL does not run as root and there is no user postgres or nobody")
}

// onPostgres measures on a fresh database of a PostgreSQL, where there is one.
func (b *bench) onPostgres(ctx context.Context, measure func(address string) error) error {
	pg, err := b.startPostgres(ctx)
	if err != nil || pg == nil {
		return err
	}
	address, err := pg.database(ctx)
	if err != nil {
		return err
	}
	return measure(address)
}
