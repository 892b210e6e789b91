// Package program has what tests need that start the program and look at it
// from outside: the binary itself, receivers for its webhooks, and what it
// leaves on disk.
package program

import (
	"encoding/pem"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"atelier/internal/sqldb"
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
