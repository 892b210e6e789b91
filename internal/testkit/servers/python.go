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

// Python returns the folder of programs of a virtual environment with the
// packages that the file requirements.txt in source locks. The environment is
// created on first use and kept in the user's cache under the name.
func Python(ctx context.Context, source, name string) (bin string, err error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", fmt.Errorf("%w: Python is not installed (Debian: apt-get install python3-venv)", ErrMissing)
	}
	version, err := exec.CommandContext(ctx, python, "-c", "import sys; print(sys.executable, sys.version)").Output()
	if err != nil {
		return "", fmt.Errorf("%w: python3: %w", ErrMissing, err)
	}
	wanted := filepath.Join(source, "requirements.txt")
	list, err := os.ReadFile(wanted)
	if err != nil {
		return "", err
	}
	cache, release, err := Cache(name)
	if err != nil {
		return "", err
	}
	defer release()
	venv := filepath.Join(cache, fmt.Sprintf("%s-%x", name, sha256.Sum256(append(version, list...))))
	if _, err := os.Stat(venv); errors.Is(err, os.ErrNotExist) {
		if err := fetch(ctx, python, wanted, venv); err != nil {
			return "", err
		}
	}
	return filepath.Join(venv, "bin"), nil
}

// fetch creates the virtual environment. It appears complete or not at all.
func fetch(ctx context.Context, python, wanted, venv string) error {
	fresh, err := os.MkdirTemp(filepath.Dir(venv), ".python-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	for _, args := range [][]string{
		{python, "-m", "venv", fresh},
		{filepath.Join(fresh, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "-r", wanted},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s (Debian: apt-get install python3-venv): %w: %s", ErrMissing, strings.Join(args[1:4], " "), err, strings.TrimSpace(string(out)))
		}
	}
	return os.Rename(fresh, venv)
}
