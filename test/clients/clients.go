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
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/testkit/servers"
)

var errNoClients = fmt.Errorf("the providers' clients %w", servers.ErrMissing)

// Run runs a script of this folder with these arguments. It has to end well
// within a minute.
func Run(t testing.TB, script string, arguments ...string) {
	t.Helper()
	c := servers.Need(t, "providers' clients", "ATELIER_TEST_CLIENTS", install)
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
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	source, err := servers.Source(ctx, "clients")
	if err != nil {
		return installed{}, fmt.Errorf("%w: %w", errNoClients, err)
	}
	node, packages, err := servers.Node(ctx, source, "clients")
	if err != nil {
		return installed{}, fmt.Errorf("the providers' clients: %w", err)
	}
	return installed{node, source, packages}, nil
})
