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
	Output(t, time.Minute, script, arguments...)
}

// Output is Run for scripts that may take longer. It returns what the script
// prints.
func Output(t testing.TB, limit time.Duration, script string, arguments ...string) []byte {
	t.Helper()
	c := servers.Need(t, "providers' clients", "ATELIER_TEST_CLIENTS", install)
	text, err := os.ReadFile(filepath.Join(c.source, script))
	if err != nil {
		t.Fatal(err)
	}
	return OutputOf(t, limit, Script{Name: script, Text: text, Arguments: arguments})
}

// Script is a program for Node.js.
type Script struct {
	Name      string
	Text      []byte
	Arguments []string
	Env       []string
}

// OutputOf runs a script that can import the providers' clients, and returns
// what it prints.
func OutputOf(t testing.TB, limit time.Duration, s Script) []byte {
	t.Helper()
	c := servers.Need(t, "providers' clients", "ATELIER_TEST_CLIENTS", install)
	// Node finds packages from where the script lies.
	dir, err := os.MkdirTemp(c.packages, ".run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := filepath.Join(dir, s.Name)
	if err := os.WriteFile(at, s.Text, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.node, append([]string{at}, s.Arguments...)...)
	cmd.Dir, cmd.Env = dir, append([]string{"NODE_ENV=production"}, s.Env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", s.Name, err, strings.TrimSpace(string(out)))
	}
	return out
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
