package servers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Source returns the folder test/name of this module, which has the files that a
// server is built from.
func Source(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	return filepath.Join(filepath.Dir(string(bytes.TrimSpace(out))), "test", name), nil
}

// Cache returns the folder in which built files are kept for the next run. Test
// binaries run concurrently: one of them builds the files with this name, the
// others wait until it calls release.
func Cache(name string) (dir string, release func(), err error) {
	dir, err = os.UserCacheDir()
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(dir, "atelier-test")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, name+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		lock.Close()
		return "", nil, err
	}
	return dir, func() { lock.Close() }, nil
}
