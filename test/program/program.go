// Package program has what tests need that start the program and look at it
// from outside: the binary itself, receivers for its webhooks, and what it
// leaves on disk.
package program

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
)

// Binary builds the program once, with its crash points and the engine that
// tests dictate to, and gives its path.
var Binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "atelier-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "atelier")
	out, err := exec.Command("go", "build", "-tags", "failpoint", "-o", path, "atelier/cmd/atelier").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return path, nil
})

// Main runs a package's tests and removes the program after them.
func Main(m *testing.M) {
	code := m.Run()
	if path, err := Binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// FreeAddress finds a port below those that the system gives to connections, so
// that it is still free after a kill.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 15000+rand.IntN(15000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

// Receiver starts a TLS server for webhooks. The program trusts it with
// SSL_CERT_FILE=roots.
func Receiver(t testing.TB, hear http.HandlerFunc) (server *httptest.Server, roots string) {
	t.Helper()
	server = httptest.NewUnstartedServer(hear)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // senders may die
	server.StartTLS()
	t.Cleanup(server.Close)
	roots = filepath.Join(t.TempDir(), "roots.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(roots, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return server, roots
}

// Files are the keys of the files in a data folder; unfinished ones are among
// them.
func Files(t testing.TB, data string) map[string]bool {
	t.Helper()
	root := filepath.Join(data, "blobs")
	keys := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) { // a folder goes with its last file
			return nil
		}
		if err == nil && d.Type().IsRegular() {
			var key string
			key, err = filepath.Rel(root, path)
			keys[strings.TrimPrefix(filepath.ToSlash(key), "data/")] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// named are the keys of the files that the database names.
func named(t testing.TB, db *sqldb.DB) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	err := db.Read(t.Context(), func(tx *sqldb.Tx) error {
		clear(keys)
		return tx.EachRow(t.Context(), `SELECT blob, thumb, preview FROM asset WHERE gone IS NULL UNION ALL SELECT blob, '', '' FROM resumable_part`, nil, func(row sqldb.Scanner) error {
			var all [3]string
			err := row.Scan(&all[0], &all[1], &all[2])
			for _, key := range all {
				keys[key] = true
			}
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(keys, "")
	return keys
}

// KeptFiles fails the test unless the files in a data folder come to be those
// that the database names, which are swept as well once nobody needs them.
func KeptFiles(t testing.TB, db *sqldb.DB, data string) {
	t.Helper()
	KeptKeys(t, db, func() map[string]bool { return Files(t, data) })
}

// KeptKeys is KeptFiles for any store. The function list returns the keys of its
// files.
func KeptKeys(t testing.TB, db *sqldb.DB, list func() map[string]bool) {
	t.Helper()
	// Which node starts periodic jobs takes PostgreSQL a while to settle.
	deadline := time.Now().Add(time.Minute)
	for tick := time.Tick(100 * time.Millisecond); ; <-tick {
		want, there := named(t, db), list()
		if maps.Equal(there, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("of %d files these are missing: %v; these belong to nothing: %v", len(want), without(want, there), without(there, want))
			return
		}
	}
}

// without gives the keys of one set that are not in the other.
func without(keys, others map[string]bool) (rest []string) {
	for key := range keys {
		if !others[key] {
			rest = append(rest, key)
		}
	}
	return rest
}

// Fixed is the record of a run as text, without the addresses, which are made
// at each read.
func Fixed(t testing.TB, record map[string]any) string {
	t.Helper()
	record = maps.Clone(record)
	var outputs []any
	for _, one := range record["outputs"].([]any) {
		output := maps.Clone(one.(map[string]any))
		for _, name := range []string{"url", "thumb_url", "preview_url"} {
			delete(output, name)
		}
		outputs = append(outputs, output)
	}
	record["outputs"] = outputs
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ForgetDead lets background work go on at once that died with its worker: it
// would wait for leases to end, for half a minute with SQLite and for longer
// with PostgreSQL. No server may be running.
func ForgetDead(t testing.TB, db *sqldb.DB) {
	t.Helper()
	queries := []string{`DELETE FROM job WHERE state = 'running'`}
	if db.Pool() != nil {
		queries = []string{`DELETE FROM river_job WHERE state = 'running'`, `DELETE FROM river_leader`}
	}
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		for _, q := range queries {
			if _, err := tx.Exec(t.Context(), q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
