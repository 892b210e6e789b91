package cogtest

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
	"time"

	"atelier/internal/companion"
)

var errNoServer = fmt.Errorf("cog, the prediction server for tests, %w", companion.ErrMissing)

// place is where things are on this machine.
type place struct {
	source string // test/cogserver
	bin    string // of the virtual environment
	dir    string // for the folders of servers
}

// prepare installs the server where the versions that test/cogserver locks are
// not on this machine yet.
var prepare = sync.OnceValues(func() (place, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	source, err := companion.Source(ctx, "cogserver")
	if err != nil {
		return place{}, fmt.Errorf("%w: %w", errNoServer, err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return place{}, fmt.Errorf("%w: Python is not installed (Debian: apt-get install python3-venv)", errNoServer)
	}
	version, err := exec.CommandContext(ctx, python, "-c", "import sys; print(sys.executable, sys.version)").Output()
	if err != nil {
		return place{}, fmt.Errorf("%w: python3: %w", errNoServer, err)
	}
	wanted := filepath.Join(source, "requirements.txt")
	list, err := os.ReadFile(wanted)
	if err != nil {
		return place{}, err
	}
	cache, release, err := companion.Cache("cog")
	if err != nil {
		return place{}, err
	}
	defer release()
	venv := filepath.Join(cache, fmt.Sprintf("cog-%x", sha256.Sum256(append(version, list...))))
	if _, err := os.Stat(venv); errors.Is(err, os.ErrNotExist) {
		if err := fetch(ctx, python, wanted, venv); err != nil {
			return place{}, err
		}
	}
	dir, err := companion.Dir("", "atelier-cog-")
	return place{source: source, bin: filepath.Join(venv, "bin"), dir: dir}, err
})

// fetch makes the virtual environment. It appears whole or not at all.
func fetch(ctx context.Context, python, wanted, venv string) error {
	fresh, err := os.MkdirTemp(filepath.Dir(venv), ".cog-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	for _, args := range [][]string{
		{python, "-m", "venv", fresh},
		{filepath.Join(fresh, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "-r", wanted},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s (Debian: apt-get install python3-venv): %w: %s", errNoServer, strings.Join(args[1:4], " "), err, strings.TrimSpace(string(out)))
		}
	}
	return os.Rename(fresh, venv)
}
