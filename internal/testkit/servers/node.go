package servers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Node returns the path of Node.js and a folder with the packages that the file
// package-lock.json in source locks. The packages are fetched on first use and
// kept in the user's cache under the name. Scripts must be in that folder to
// find the packages.
func Node(ctx context.Context, source, name string) (node, packages string, err error) {
	node, err = exec.LookPath("node")
	if err != nil {
		return "", "", fmt.Errorf("%w: Node.js is not installed (Debian: apt-get install nodejs npm)", ErrMissing)
	}
	lock, err := os.ReadFile(filepath.Join(source, "package-lock.json"))
	if err != nil {
		return "", "", err
	}

	cache, release, err := Cache(name)
	if err != nil {
		return "", "", err
	}
	defer release()
	packages = filepath.Join(cache, fmt.Sprintf("%s-%x", name, sha256.Sum256(lock)))
	if _, err := os.Stat(packages); errors.Is(err, os.ErrNotExist) {
		return node, packages, fetchPackages(ctx, source, packages)
	}
	return node, packages, nil
}

// fetchPackages creates the folder with the packages. The folder appears
// complete or not at all.
func fetchPackages(ctx context.Context, source, dir string) error {
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".node-")
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
		return fmt.Errorf("%w: npm ci (Debian: apt-get install nodejs npm): %w: %s", ErrMissing, err, strings.TrimSpace(string(out)))
	}
	return os.Rename(fresh, dir)
}
