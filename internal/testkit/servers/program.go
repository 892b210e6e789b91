package servers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Program returns the path of a program that the module test/source lists as a
// tool. It builds the program if this version was not built on this machine
// before.
func Program(source, tool string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	name := path.Base(tool)
	missing := fmt.Errorf("%s, a server for tests, %w", name, ErrMissing)
	module, err := Source(ctx, source)
	if err != nil {
		return "", fmt.Errorf("%w: %w", missing, err)
	}
	versions, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", err
	}
	cache, release, err := Cache(name)
	if err != nil {
		return "", err
	}
	defer release()
	program := filepath.Join(cache, fmt.Sprintf("%s-%x", name, sha256.Sum256(versions)))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	fresh := fmt.Sprintf("%s.%d", program, os.Getpid())
	cmd := exec.CommandContext(ctx, "go", "build", "-C", module, "-buildvcs=false", "-ldflags=-s -w", "-o", fresh, tool)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %w: %s", missing, err, strings.TrimSpace(string(out)))
	}
	return program, os.Rename(fresh, program)
}
