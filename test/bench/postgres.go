package main

import (
	"context"
	"errors"
	"fmt"

	"atelier/internal/testkit/servers"
)

// postgres is a server with its default settings, fsync among them. The server
// of the tests does not wait for the disk.
type postgres struct {
	*servers.Postgres
	databases int // created so far
}

// createDatabase creates an empty one.
func (p *postgres) createDatabase(ctx context.Context) (address string, err error) {
	p.databases++
	name := fmt.Sprint("bench", p.databases)
	return p.URL(name), p.Exec(ctx, `CREATE DATABASE `+name)
}

// startPostgres starts a server that ends with this process, nil where none is
// installed.
func (b *bench) startPostgres() (*postgres, error) {
	if b.postgres != nil {
		return b.postgres, nil
	}
	server, err := servers.StartPostgres()
	if errors.Is(err, servers.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b.postgres = &postgres{Postgres: server}
	return b.postgres, nil
}

// onPostgres measures on a fresh database of a PostgreSQL, where there is one.
func (b *bench) onPostgres(ctx context.Context, measure func(address string) error) error {
	pg, err := b.startPostgres()
	if err != nil || pg == nil {
		return err
	}
	address, err := pg.createDatabase(ctx)
	if err != nil {
		return err
	}
	return measure(address)
}
