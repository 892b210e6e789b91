package library_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/library"
)

// fillLibrary adds results of a person, a second apart: every tenth is a video,
// every thousandth has a prompt with the word "zeppelin" and is a favorite, and
// one is a sound.
func fillLibrary(t testing.TB, db *sqldb.DB, person string, size int) {
	t.Helper()
	const text = "A red fox in the snow at dawn, soft light from the left, shallow depth of field, 35 mm film, muted colours, a birch forest in the background, breath in the cold air"
	tool := ids.New()
	exec := func(statements []string, from, until int) {
		t.Helper()
		fill := strings.NewReplacer("{from}", fmt.Sprint(from), "{until}", fmt.Sprint(until), "{person}", person, "{tool}", tool, "{text}", text, "{sha256}", strings.Repeat("0a", 32))
		for _, statement := range statements {
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error { _, err := tx.Exec(t.Context(), fill.Replace(statement)); return err })
			if err != nil {
				t.Fatalf("%.60s: %v", statement, err)
			}
		}
	}

	exec(largeLibraryOwner, 0, 0)
	const batch = 5000
	for from := 0; from < size; from += batch {
		exec(largeLibraryRows, from, min(from+batch, size))
	}
	exec([]string{
		`INSERT INTO favorite (person_id, result_id, created) SELECT '{person}', id, 1 FROM result WHERE search_text LIKE '%zeppelin%'`,
		`ANALYZE`,
	}, 0, 0)
}

// largeLibraryOwner are the statements that add a person and a tool.
var largeLibraryOwner = []string{
	`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ('{person}', 'a@example.com', 'a@example.com', TRUE, '', 1)`,
	`INSERT INTO tool_version (hash, definition) VALUES ('{tool}', '{}')`,
	`INSERT INTO tool (id, slug, source, definition, hash, removed, created, updated) VALUES ('{tool}', 'fox', 'builtin', '{}', '{tool}', FALSE, 1, 1)`,
}

// largeLibraryRows are the statements that add the results with the numbers from
// {from} to {until}. They are the same for both databases.
var largeLibraryRows = []string{
	`INSERT INTO run (id, library_id, person_id, account_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed, num_results,
		metadata, webhook_url, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used, status, attempt, worker, cancel,
		preview, revision, error_code, error_message, created, started, finished)
	WITH RECURSIVE n (i) AS (SELECT CAST({from} AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {until})
	SELECT '00000000-0000-7000-8000-' || substr(CAST(1000000000000 + i AS TEXT), 2), 'Library' || substr(CAST(10000000000000 + i AS TEXT), 2),
		'{person}', '{person}', 'personal_token', '', '', '{tool}', '{tool}', 'image', '{"prompt":"{text}","size":"1024x1024","steps":30}',
		'{text} ' || i || CASE i % 1000 WHEN 7 THEN ' Zeppelin' ELSE '' END, i, 1, '', '', 2, 1, 1, 0, '', 1, 0, 'succeeded', 1, '', FALSE,
		'', 4, '', '', 1000000 * i, 1000000 * i, 1000000 * i + 5
	FROM n`,
	`INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, width, height, blurhash, blob, thumb, preview, created, stored_bytes)
	SELECT library_id, account_id, CASE WHEN seed = 5 THEN 'AUDIO' WHEN seed % 10 = 0 THEN 'VID' ELSE 'IMG' END, 'image/png', 100000, '{sha256}', 1024, 1024, 'LEHV6nWB2yk8pyo0adR*.7kCMdnj',
		'media/' || library_id || '.png', 'media/' || library_id || '-thumb.png', '', finished, 100000 FROM run WHERE seed >= {from}`,
	`INSERT INTO result (id, run_id, place, asset_id, account_id, tool_id, type, shape, resolution, created, search_text)
	SELECT '11111111-1111-4111-8111-' || substr(CAST(1000000000000 + (seed * 7919) % 1000000007 AS TEXT), 2), n.id, 0, a.id, n.account_id, n.tool_id, a.type, '1:1', '1K', n.finished, lower(n.prompt)
	FROM run n JOIN asset a ON a.id = n.library_id WHERE n.seed >= {from}`,
}

// BenchmarkLibrary measures reads of a library of 10,000 and of 100,000 items.
func BenchmarkLibrary(b *testing.B) {
	yes := true
	for _, engine := range dbtest.Engines {
		for _, size := range []int{10_000, 100_000} {
			db := dbtest.OpenAt(b, dbtest.URL(b, engine), time.Now)
			person := ids.New()
			fillLibrary(b, db, person, size)

			lib := &library.Library{DB: db}
			middle := &library.Cursor{Created: time.Unix(int64(size/2), 0), ID: "1"}
			for _, c := range []struct {
				name   string
				filter library.Filter
				after  *library.Cursor
				want   int
			}{
				{"first page", library.Filter{}, nil, 101},
				{"middle", library.Filter{}, middle, 101},
				{"oldest", library.Filter{OldestFirst: true}, nil, 101},
				{"type common", library.Filter{Type: "VID"}, nil, 101},
				{"type rare", library.Filter{Type: "AUDIO"}, nil, 1},
				{"word common", library.Filter{Search: "fox snow"}, nil, 101},
				{"word rare", library.Filter{Search: "ZEPPELIN"}, nil, min(size/1000, 101)},
				{"word nowhere", library.Filter{Search: "submarine"}, nil, 0},
				{"favorites", library.Filter{Favorited: &yes}, nil, min(size/1000, 101)},
			} {
				b.Run(fmt.Sprintf("%s/%d/%s", engine, size, c.name), func(b *testing.B) {
					for b.Loop() {
						all, err := lib.ListItems(b.Context(), viewerOf(person), c.filter, c.after, 101)
						if err != nil || len(all) != c.want {
							b.Fatalf("%d items, %v, want %d", len(all), err, c.want)
						}
					}
				})
				if c.after != nil {
					continue
				}
				b.Run(fmt.Sprintf("%s/%d/marks %s", engine, size, c.name), func(b *testing.B) {
					for b.Loop() {
						if _, _, err := lib.ListMarks(b.Context(), viewerOf(person), c.filter, 100); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
