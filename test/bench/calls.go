package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"atelier/internal/testkit/servers"
)

// callRequests is how often each call is made to measure it.
const callRequests = 100

// calls prints what each call costs, as a Markdown table: the statements, the
// time and the log (WAL) that PostgreSQL counts with pg_stat_statements, and
// bytes and time as a client on one connection sees them.
func (b *bench) calls(ctx context.Context) error {
	db, err := servers.StartPostgres("-c", "shared_preload_libraries=pg_stat_statements", "-c", "pg_stat_statements.track_utility=off")
	if errors.Is(err, servers.ErrMissing) {
		fmt.Print("PostgreSQL is not installed: the cost of calls is not measured\n\n")
		return nil
	}
	if err != nil {
		return err
	}
	for _, statement := range []string{`CREATE EXTENSION pg_stat_statements`, `CREATE DATABASE calls`} {
		if err := db.Exec(ctx, statement); err != nil {
			return err
		}
	}
	stats, err := pgx.Connect(ctx, db.URL("postgres"))
	if err != nil {
		return err
	}
	defer stats.Close(ctx)

	s, err := b.serve(ctx, "calls", settings{tags: "failpoint", tools: map[string]string{"tags.yaml": tags, "noop.yaml": noop, "sketch.yaml": sketch}, database: db.URL("calls")})
	if err != nil {
		return err
	}
	defer func() { s.stop() }()
	people, err := gather(ctx, s, 1)
	if err != nil {
		return err
	}
	token := people[0].token
	j, err := s.job(token, "Noop", `{}`)
	if err != nil {
		return err
	}
	creates := s.creates(people, j)
	f, err := follow(creates[0])
	if err != nil {
		return err
	}
	defer f.close()
	ended := ""
	for range 20 { // the first few prepare statements
		if ended, _, err = f.run(); err != nil {
			return err
		}
	}

	fmt.Printf("each call %d times, one after the other, on one connection; PostgreSQL with fsync, a personal token\n\n", callRequests)
	fmt.Println("| call | statements | WAL bytes | database ms | request bytes | response bytes | ms p50 | ms p99 |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- |")
	whole, err := measureCost(ctx, stats, func() (cost, error) {
		var c cost
		for range callRequests {
			_, took, err := f.run()
			if err != nil {
				return c, err
			}
			c.took = append(c.took, took)
		}
		return c, nil
	})
	if err != nil {
		return err
	}
	whole.print("a whole run: create, claim, result, end, event stream (API and worker)")

	// The others are measured without a worker.
	s.stop()
	s.roles = "api"
	if err := s.start(ctx); err != nil {
		return err
	}
	create := s.creates(people, j)[0]
	pending, err := createPath(create)
	if err != nil {
		return err
	}
	get := func(path string) target {
		t := s.with(path)
		t.token = token
		return t
	}
	for _, call := range []struct {
		name string
		target
	}{
		{"`POST /generate`", create},
		{"`GET /generate/{id}` of a waiting run", get(pending)},
		{"`GET /generate/{id}` of an ended run", get(ended)},
		{"`GET /generations?limit=20`", get("/api/v2/generations?limit=20")},
		{"`GET /library?limit=20`", get("/api/v2/library?limit=20")},
		{"`GET /ledger?limit=20`", get("/api/v2/ledger?limit=20")},
		{"`GET /me`", get("/api/v2/me")},
		{"`GET /tools?limit=20`", get("/api/v2/tools?limit=20")},
		{"`GET /readyz`", s.with("/readyz")},
	} {
		c, err := measureCall(ctx, stats, call.target)
		if err != nil {
			return fmt.Errorf("%s: %w", call.name, err)
		}
		c.print(call.name)
	}
	fmt.Println()
	return nil
}

// cost is the sum of the costs of several calls.
type cost struct {
	statements, walBytes, databaseMS float64
	sent, received                   int64 // bytes; 0 if they were not counted
	took                             []time.Duration
}

func (c cost) print(name string) {
	slices.Sort(c.took)
	n := float64(len(c.took))
	ms := func(share float64) float64 {
		return float64(c.took[int(share*(n-1))].Microseconds()) / 1000
	}
	sent, received := "-", "-"
	if c.sent > 0 {
		sent, received = fmt.Sprintf("%.0f", float64(c.sent)/n), fmt.Sprintf("%.0f", float64(c.received)/n)
	}
	fmt.Printf("| %s | %.1f | %.0f | %.2f | %s | %s | %.1f | %.1f |\n", name, max(c.statements/n, 0), max(c.walBytes/n, 0), max(c.databaseMS/n, 0),
		sent, received, ms(0.5), ms(0.99))
}

// measureCall measures a request that is sent again and again.
func measureCall(ctx context.Context, stats *pgx.Conn, t target) (cost, error) {
	conn, err := net.Dial("tcp", t.address)
	if err != nil {
		return cost{}, err
	}
	defer conn.Close()
	counted := &countedConn{Conn: conn}
	w := &wire{counted, bufio.NewReader(counted)}
	request := t.request()
	for range 20 { // the first few prepare statements
		if err := w.ask(request, io.Discard); err != nil {
			return cost{}, err
		}
	}
	return measureCost(ctx, stats, func() (cost, error) {
		*counted = countedConn{Conn: conn}
		var c cost
		for range callRequests {
			begin := time.Now()
			if err := w.ask(request, io.Discard); err != nil {
				return c, err
			}
			c.took = append(c.took, time.Since(begin))
		}
		c.sent = counted.sent
		c.received = counted.received
		return c, nil
	})
}

// measureCost adds to the cost of some calls what PostgreSQL counted while they
// were made, less what the server does in the same time without calls.
func measureCost(ctx context.Context, stats *pgx.Conn, do func() (cost, error)) (cost, error) {
	const idle = 3 * time.Second
	before, err := readStatements(ctx, stats)
	if err != nil {
		return cost{}, err
	}
	begin := time.Now()
	select {
	case <-ctx.Done():
		return cost{}, ctx.Err()
	case <-time.After(idle):
	}
	quiet, err := readStatements(ctx, stats)
	if err != nil {
		return cost{}, err
	}
	waited := time.Since(begin)
	begin = time.Now()
	c, err := do()
	if err != nil {
		return cost{}, err
	}
	share := time.Since(begin).Seconds() / waited.Seconds()
	after, err := readStatements(ctx, stats)
	c.statements = after.statements - quiet.statements - share*(quiet.statements-before.statements)
	c.walBytes = after.walBytes - quiet.walBytes - share*(quiet.walBytes-before.walBytes)
	c.databaseMS = after.databaseMS - quiet.databaseMS - share*(quiet.databaseMS-before.databaseMS)
	return c, err
}

// readStatements returns what the database calls has done since its creation.
func readStatements(ctx context.Context, stats *pgx.Conn) (c cost, err error) {
	err = stats.QueryRow(ctx, `
		SELECT CAST(coalesce(sum(calls), 0) AS FLOAT8), CAST(coalesce(sum(wal_bytes), 0) AS FLOAT8), coalesce(sum(total_exec_time), 0)
		FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = 'calls')`).Scan(&c.statements, &c.walBytes, &c.databaseMS)
	return c, err
}

// countedConn counts the bytes of a connection.
type countedConn struct {
	net.Conn
	sent, received int64
}

// Read implements net.Conn.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received += int64(n)
	return n, err
}

// Write implements net.Conn.
func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent += int64(n)
	return n, err
}
