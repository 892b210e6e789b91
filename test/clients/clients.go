// Package clients runs providers' own clients for Node.js against the servers
// that stand in for the providers in tests: what the real client understands is
// what the real server says, as far as anybody can tell from outside.
//
// The clients are installed as package-lock.json says on first use and kept in
// the user's cache. Where they cannot be had the tests are skipped; with CI set
// they fail instead. ATELIER_TEST_CLIENTS=skip skips them anywhere.
package clients

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/companion"
)

var errNoClients = fmt.Errorf("the providers' clients %w", companion.ErrMissing)

// Run runs a script of this folder with these arguments. It has to end well
// within a minute.
func Run(t testing.TB, script string, arguments ...string) {
	t.Helper()
	c := companion.Need(t, "providers' clients", "ATELIER_TEST_CLIENTS", install)
	text, err := os.ReadFile(filepath.Join(c.source, script))
	if err != nil {
		t.Fatal(err)
	}
	// Node finds packages from where the script lies.
	dir, err := os.MkdirTemp(c.packages, ".run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := filepath.Join(dir, script)
	if err := os.WriteFile(at, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.node, append([]string{at}, arguments...)...)
	cmd.Dir, cmd.Env = dir, []string{"NODE_ENV=production"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, strings.TrimSpace(string(out)))
	}
}

// installed is where Node.js, our scripts and the packages are.
type installed struct{ node, source, packages string }

// install fetches the packages where the versions that are locked were not
// fetched on this machine before.
var install = sync.OnceValues(func() (installed, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return installed{}, fmt.Errorf("%w: Node.js is not installed (Debian: apt-get install nodejs npm)", errNoClients)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	source, err := companion.Source(ctx, "clients")
	if err != nil {
		return installed{}, fmt.Errorf("%w: %w", errNoClients, err)
	}
	lock, err := os.ReadFile(filepath.Join(source, "package-lock.json"))
	if err != nil {
		return installed{}, err
	}
	cache, release, err := companion.Cache("clients")
	if err != nil {
		return installed{}, err
	}
	defer release()
	c := installed{node, source, filepath.Join(cache, fmt.Sprintf("clients-%x", sha256.Sum256(lock)))}
	if _, err := os.Stat(c.packages); errors.Is(err, os.ErrNotExist) {
		return c, fetch(ctx, source, c.packages)
	}
	return c, nil
})

// fetch makes the folder with the packages. It appears whole or not at all.
func fetch(ctx context.Context, source, dir string) error {
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".clients-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(fresh, name), text, 0o600); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = fresh
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: npm ci (Debian: apt-get install nodejs npm): %w: %s", errNoClients, err, strings.TrimSpace(string(out)))
	}
	return os.Rename(fresh, dir)
}
