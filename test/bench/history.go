package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"modernc.org/sqlite"

	"atelier/internal/base/ids"
)

// history measures creating runs in a database that has many against one that
// has none.
func (b *bench) history(ctx context.Context) error {
	if err := b.historyOn(ctx, "SQLite", func() (string, error) { return "", nil }); err != nil || !b.oldPG {
		return err
	}
	pg, err := b.startPostgres()
	if err != nil || pg == nil {
		return err
	}
	return b.historyOn(ctx, "PostgreSQL with fsync", func() (string, error) { return pg.createDatabase(ctx) })
}

func (b *bench) historyOn(ctx context.Context, where string, database func() (string, error)) error {
	var sides []side
	for _, old := range []int{0, b.old} {
		address, err := database()
		if err != nil {
			return err
		}
		s, people, j, err := b.creating(ctx, fmt.Sprintf("history-%s-%d", strings.Fields(where)[0], old), address)
		if err != nil {
			return err
		}
		defer s.remove()
		if old > 0 {
			s.stop() // it must not look while the indexes are away
			start := time.Now()
			if err := fill(ctx, s, people, j, old); err != nil {
				return fmt.Errorf("fill: %w", err)
			}
			fmt.Printf("%d old runs in %v (%s), a day to a year old, of %d people: every fourth succeeded with a result, the others were cancelled;\n", old, time.Since(start).Round(time.Second), where, len(people))
			fmt.Println("each with its attempt and its settlement, results with their file's row; indexes were made after the rows")
			if err := s.start(ctx); err != nil {
				return err
			}
			if err := greet(s.creates(people, j)); err != nil {
				return err
			}
		}
		sides = append(sides, posting(fmt.Sprintf("POST /generate with %d old runs (%s)", old, where), s.creates(people, j)))
	}
	return b.compare("creates/s", sides[1], sides[0], 0.8)
}

// store is a database that is filled, without regard to what a crash would do.
type store struct {
	exec  func(ctx context.Context, query string, args ...any) error
	texts func(ctx context.Context, query string) ([]string, error)
	close func() error
	newID string // an expression for a random id
	// indexes lists statements that make the indexes which are no constraints.
	indexes string
	// before and after what is filled.
	before, after []string
}

func openStore(ctx context.Context, s *server) (*store, error) {
	if s.database != "" {
		return openPostgresStore(ctx, s.database)
	}
	return openSQLiteStore(strings.TrimPrefix(s.databaseURL(), "sqlite://"))
}

// registerID gives SQLite a function for random ids, once for this process.
var registerID = sync.OnceValue(func() error {
	return sqlite.RegisterScalarFunction("bench_id", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) { return ids.New(), nil })
})

func openSQLiteStore(path string) (*store, error) {
	if err := registerID(); err != nil {
		return nil, err
	}
	set := url.Values{"_pragma": {"busy_timeout(10000)", "synchronous(OFF)", "cache_size(-2000000)", "temp_store(MEMORY)"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+set.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &store{
		exec: func(ctx context.Context, query string, args ...any) error {
			_, err := db.ExecContext(ctx, query, args...)
			return err
		},
		texts: func(ctx context.Context, query string) (all []string, err error) {
			rows, err := db.QueryContext(ctx, query)
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			for rows.Next() {
				var one string
				if err := rows.Scan(&one); err != nil {
					return nil, err
				}
				all = append(all, one)
			}
			return all, rows.Err()
		},
		close: db.Close, newID: "bench_id()",
		indexes: `SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ` + filled,
		after:   []string{`PRAGMA wal_checkpoint(TRUNCATE)`},
	}, nil
}

func openPostgresStore(ctx context.Context, address string) (*store, error) {
	c, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	return &store{
		exec: func(ctx context.Context, query string, args ...any) error {
			_, err := c.Exec(ctx, query, args...)
			return err
		},
		texts: func(ctx context.Context, query string) ([]string, error) {
			rows, err := c.Query(ctx, query)
			if err != nil {
				return nil, err
			}
			return pgx.CollectRows(rows, pgx.RowTo[string])
		},
		close: func() error { return c.Close(context.WithoutCancel(ctx)) },
		newID: `substr(translate(encode(decode(md5(random()::text), 'hex'), 'base64'), '+/=', 'Xy'), 1, 20)`,
		indexes: `SELECT indexdef FROM pg_indexes WHERE tablename IN ` + filled + `
			AND indexname NOT IN (SELECT conname FROM pg_constraint)`,
		before: []string{`SET session_replication_role = replica`, `SET synchronous_commit = off`, `SET maintenance_work_mem = '512MB'`, `BEGIN`}, // references are right as they are
		after:  []string{`COMMIT`, `VACUUM ANALYZE`, `CHECKPOINT`},
	}, nil
}

// filled are the tables that get old rows.
const filled = `('run', 'run_attempt', 'asset', 'result', 'ledger_transaction', 'ledger_entry', 'upload', 'favorite', 'idempotency', 'webhook_event', 'audit')`

// fill adds old runs in bulk. Keys are as the program makes them: ids of runs
// grow, all others are random.
func fill(ctx context.Context, s *server, people []member, j job, old int) error {
	return inBulk(ctx, s, func(db *store) []string {
		statements := listPeople(people)
		first := time.Now().Add(-365 * 24 * time.Hour).UnixMicro()
		step := (364 * 24 * time.Hour).Microseconds() / int64(old)
		for _, text := range oldRows {
			statements = append(statements, strings.NewReplacer(
				"{old}", fmt.Sprint(old), "{people}", fmt.Sprint(len(people)), "{first}", fmt.Sprint(first), "{step}", fmt.Sprint(step),
				"{id}", db.newID, "{tool}", j.toolID, "{hash}", j.hash, "{inputs}", j.inputs, "{sha256}", ids.Hash("bench")).Replace(text))
		}
		return append(statements, `DROP TABLE bench_person`)
	})
}

// listPeople makes a table of people, by number.
func listPeople(people []member) []string {
	statements := []string{`CREATE TABLE bench_person (i BIGINT PRIMARY KEY, id TEXT NOT NULL)`}
	for i := 0; i < len(people); i += 256 {
		var rows []string
		for k, m := range people[i:min(i+256, len(people))] {
			rows = append(rows, fmt.Sprintf(`(%d, '%s')`, i+k, m.id))
		}
		statements = append(statements, `INSERT INTO bench_person (i, id) VALUES `+strings.Join(rows, `, `))
	}
	return statements
}

// inBulk runs statements that fill tables, whose indexes are made afterwards.
func inBulk(ctx context.Context, s *server, of func(*store) []string) (err error) {
	db, err := openStore(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	indexes, err := db.texts(ctx, db.indexes)
	if err != nil {
		return err
	}
	statements := append([]string(nil), db.before...)
	for _, text := range indexes {
		statements = append(statements, `DROP INDEX `+indexName(text))
	}
	statements = append(statements, of(db)...)
	statements = append(statements, indexes...)
	for _, text := range append(statements, db.after...) {
		if err := db.exec(ctx, text); err != nil {
			return fmt.Errorf("%.200s: %w", text, err)
		}
	}
	return nil
}

// indexName takes the name out of the statement that makes an index.
func indexName(text string) string {
	words := strings.Fields(text)
	if strings.EqualFold(words[1], "unique") {
		return words[3]
	}
	return words[2]
}

// oldRows fill the tables, on both databases alike.
var oldRows = []string{
	`INSERT INTO run (id, library_id, person_id, account_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed,
		num_results, metadata, webhook_url, estimated_s, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used,
		status, attempt, worker, cancel, preview, revision, error_code, error_message, created, started, finished, results)
	WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {old})
	SELECT '00000000-0000-7000-8000-' || substr(CAST(1000000000000 + n.i AS TEXT), 2), {id}, p.id, p.id, 'personal_token', 'bench', '', '{tool}', '{hash}', 'image',
		'{inputs}', 'a red fox in the snow', n.i, 1, '', '', 2, 2, 1, 1, 0, '', CASE n.i / {people} % 4 WHEN 0 THEN 1 ELSE 0 END, 0,
		CASE n.i / {people} % 4 WHEN 0 THEN 'succeeded' ELSE 'cancelled' END, 1, 'bench', FALSE, '', 4, '', '', {first} + n.i * {step}, {first} + n.i * {step} + 100000, {first} + n.i * {step} + 2000000,
		CASE n.i / {people} % 4 WHEN 0 THEN 1 ELSE 0 END
	FROM n JOIN bench_person p ON p.i = n.i % {people}`,

	`INSERT INTO run_attempt (run_id, attempt, worker, started, ended, outcome)
	SELECT id, 1, 'bench', started, finished, status FROM run WHERE worker = 'bench'`,

	`INSERT INTO ledger_transaction (id, kind, note, created, run_id)
	SELECT {id}, 'settle', '', finished, id FROM run WHERE worker = 'bench'`,

	`INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used)
	SELECT 'system:revenue', count(*), 0, '', 0 FROM run WHERE worker = 'bench' AND status = 'succeeded'`,

	`UPDATE ledger_account SET posted = posted -
		(SELECT ({old} / {people} + CASE WHEN p.i < {old} % {people} THEN 1 ELSE 0 END + 3) / 4 FROM bench_person p WHERE p.id = ledger_account.id)
	WHERE id IN (SELECT id FROM bench_person)`,

	`INSERT INTO ledger_entry (transaction_id, account_id, amount, created)
	SELECT t.id, r.account_id, -r.tokens_charged, t.created FROM ledger_transaction t JOIN run r ON r.id = t.run_id WHERE t.kind = 'settle'`,
	`INSERT INTO ledger_entry (transaction_id, account_id, amount, created)
	SELECT t.id, 'system:revenue', r.tokens_charged, t.created FROM ledger_transaction t JOIN run r ON r.id = t.run_id WHERE t.kind = 'settle'`,

	`INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, width, height, blurhash, blob, thumb, preview, created)
	SELECT 'A' || substr(library_id, 2), account_id, 'IMG', 'image/png', 100000, '{sha256}', 1024, 1024, 'LEHV6nWB2yk8pyo0adR*.7kCMdnj',
		'media/' || library_id || '.png', 'media/' || library_id || '-thumb.png', '', finished
	FROM run WHERE worker = 'bench' AND status = 'succeeded'`,

	`INSERT INTO result (id, run_id, place, asset_id, account_id, tool_id, type, shape, resolution, created)
	SELECT {id}, id, 0, 'A' || substr(library_id, 2), account_id, tool_id, 'IMG', '1:1', '1K', finished
	FROM run WHERE worker = 'bench' AND status = 'succeeded'`,
}
