package oidctest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"atelier/internal/companion"
)

var errNoServer = fmt.Errorf("oidc-provider, the OpenID provider for tests, %w", companion.ErrMissing)

var controlLine = regexp.MustCompile(`control: (http://\S+)\n`)

// startServer gives the address of the control server.
var startServer = sync.OnceValues(func() (string, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("%w: Node.js is not installed (Debian: apt-get install nodejs npm)", errNoServer)
	}
	program, err := install()
	if err != nil {
		return "", err
	}
	dir, err := companion.Dir("", "atelier-oidc-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(node, program)
	cmd.Dir, cmd.Env = dir, []string{"NODE_ENV=production"}
	server, err := companion.Start(cmd)
	if err != nil {
		return "", err
	}
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		select {
		case <-server.Ended:
			return "", fmt.Errorf("oidc-provider ended: %s", server.Log())
		case <-time.After(10 * time.Millisecond):
		}
		if m := controlLine.FindStringSubmatch(server.Log()); m != nil {
			return m[1], nil
		}
	}
	return "", errors.New("oidc-provider did not listen within 60 s")
})

// install gives the path of the server's program, beside its packages, which it
// fetches where the versions that test/oidcserver locks were not fetched on
// this machine before.
func install() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	source, err := companion.Source(ctx, "oidcserver")
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoServer, err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"package.json", "package-lock.json", "server.mjs"} {
		if files[name], err = os.ReadFile(filepath.Join(source, name)); err != nil {
			return "", err
		}
	}
	cache, release, err := companion.Cache("oidc")
	if err != nil {
		return "", err
	}
	defer release()
	dir := filepath.Join(cache, fmt.Sprintf("oidc-%x", sha256.Sum256(files["package-lock.json"])))
	program := filepath.Join(dir, fmt.Sprintf("server-%x.mjs", sha256.Sum256(files["server.mjs"])))
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := fetch(ctx, dir, files); err != nil {
			return "", err
		}
	}
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	fresh := program + ".new" // another binary never sees half a program
	if err := os.WriteFile(fresh, files["server.mjs"], 0o600); err != nil {
		return "", err
	}
	return program, os.Rename(fresh, program)
}

// fetch makes the folder with the packages. It appears whole or not at all.
func fetch(ctx context.Context, dir string, files map[string][]byte) error {
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".oidc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := os.WriteFile(filepath.Join(fresh, name), files[name], 0o600); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = fresh
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: npm ci (Debian: apt-get install nodejs npm): %w: %s", errNoServer, err, strings.TrimSpace(string(out)))
	}
	return os.Rename(fresh, dir)
}
