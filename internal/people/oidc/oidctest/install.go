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
	"sync"
	"time"

	"atelier/internal/testkit/servers"
)

var errNoServer = fmt.Errorf("oidc-provider, the OpenID provider for tests, %w", servers.ErrMissing)

var controlLine = regexp.MustCompile(`control: (http://\S+)\n`)

// startServer starts the control server once per test binary and returns its
// URL. The control server creates OpenID providers for tests.
var startServer = sync.OnceValues(func() (string, error) {
	node, program, err := install()
	if err != nil {
		return "", err
	}
	dir, err := servers.Dir("", "atelier-oidc-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(node, program)
	cmd.Dir = dir
	cmd.Env = []string{"NODE_ENV=production"}
	server, err := servers.Start(cmd)
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

// install returns the paths of Node.js and of the server's program. It
// downloads the program's packages unless the versions in the lock file of
// test/oidcserver are already installed.
func install() (node, program string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	source, err := servers.Source(ctx, "oidcserver")
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", errNoServer, err)
	}
	text, err := os.ReadFile(filepath.Join(source, "server.mjs"))
	if err != nil {
		return "", "", err
	}
	node, packages, err := servers.Node(ctx, source, "oidc")
	if err != nil {
		return "", "", fmt.Errorf("oidc-provider, the OpenID provider for tests: %w", err)
	}

	program = filepath.Join(packages, fmt.Sprintf("server-%x.mjs", sha256.Sum256(text)))
	if _, err := os.Stat(program); err == nil {
		return node, program, nil
	}
	fresh, err := os.CreateTemp(packages, ".server-") // renamed when complete, so that a concurrent test binary never reads an incomplete program
	if err != nil {
		return "", "", err
	}
	_, err = fresh.Write(text)
	if err := errors.Join(err, fresh.Close()); err != nil {
		return "", "", err
	}
	return node, program, os.Rename(fresh.Name(), program)
}
