// Package servers runs real servers beside a test binary, once for all its
// tests, and ends them with the binary.
package servers

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// ErrMissing is the error of a server whose programs are not installed on this
// machine.
var ErrMissing = errors.New("cannot be had")

// Need returns the server that start starts, once. If the server is not
// available, the test is skipped with the reason, but fails with CI set. If the
// environment variable is set to skip, the test is always skipped.
func Need[S any](t testing.TB, what, variable string, start func() (S, error)) S {
	t.Helper()
	if os.Getenv(variable) == "skip" {
		t.Skipf("%s tests are switched off by %s=skip", what, variable)
	}
	s, err := start()
	if errors.Is(err, ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%s for tests: %v", what, err)
	}
	return s
}

// Dir returns a folder in parent that is removed after the test binary has
// ended, for whatever reason it ended.
func Dir(parent, pattern string) (string, error) {
	dir, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return "", err
	}
	// A killed test binary cannot clean up: a small shell process runs until the
	// binary has ended and then removes the folder.
	sweep := exec.Command("/bin/sh", "-c", `while kill -0 "$1" 2>/dev/null; do sleep 1; done; sleep 1; rm -rf "$2"`,
		"sh", strconv.Itoa(os.Getpid()), dir)
	sweep.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return dir, sweep.Start()
}

// Server is a process that ends with the test binary.
type Server struct {
	// Ended is closed when the process has ended.
	Ended <-chan struct{}
	log   string
}

// Start starts cmd in its folder and writes its output to the file log in that
// folder.
func Start(cmd *exec.Cmd) (*Server, error) {
	ended := make(chan struct{})
	s := &Server{Ended: ended, log: filepath.Join(cmd.Dir, "log")}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout = log
	cmd.Stderr = log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	dieWithParent(cmd.SysProcAttr)
	// The kernel ends the server with the thread that started it, so the thread
	// must live as long as the binary.
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
		close(ended)
	}()
	return s, <-started
}

// Log returns the output of the server.
func (s *Server) Log() string {
	text, _ := os.ReadFile(s.log) // without the file there is no output to return
	return string(text)
}
