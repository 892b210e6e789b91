package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
)

// TestFilesArePrivate starts the program with a umask that lets everybody in,
// on a folder that everybody can read.
func TestFilesArePrivate(t *testing.T) {
	needOneProcess(t, "it looks at files in the data folder")
	each(t, func(t *testing.T, s *site) {
		loose := filepath.Join(s.data, "blobs", "data", "loose")
		if err := os.MkdirAll(filepath.Dir(loose), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(loose, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for path, mode := range map[string]fs.FileMode{s.data: 0o777, filepath.Dir(loose): 0o777, loose: 0o666} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		n := s.serveWith("sh", "-c", `umask 0; exec "$0" "$@"`)
		n.token = s.token("anna@example.com")
		n.upload(wave(1000))

		err := filepath.WalkDir(s.data, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			want := fs.FileMode(0o600)
			if e.IsDir() {
				want = 0o700
			}
			if info.Mode().Perm() != want {
				t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		n.stop()
	})
}

// TestBrokenDisk has the system refuse to read and write while the program
// serves, and looks at its answers.
func TestBrokenDisk(t *testing.T) {
	needOneProcess(t, "it breaks the disk of one process")
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is missing (package strace): storage errors are not tried")
	}
	for _, c := range []struct{ name, calls string }{
		{"EIO", "pread64,pwrite64,fsync,fdatasync:error=EIO"},
		{"ENOSPC", "pwrite64,fsync,fdatasync:error=ENOSPC"},
		{"EROFS", "pwrite64,fsync,fdatasync:error=EROFS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			n := s.serve()
			n.token = s.token("anna@example.com")
			n.upload(wave(1000))

			trace := exec.Command(strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+strings.Split(c.calls, ":")[0], "-e", "inject="+c.calls, "-p", strconv.Itoa(n.cmd.Process.Pid))
			stderr := &watch.Log{}
			trace.Stderr = stderr
			if err := trace.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { _ = trace.Wait(); close(ended) }()
			defer func() {
				_ = trace.Process.Signal(syscall.SIGINT) // it lets go of the program
				<-ended
			}()
			witnessTraced(t, n, stderr, ended)

			for range 3 {
				a := n.call("POST", "/api/v2/uploads", string(wave(100_000)), "Content-Type", "audio/wav")
				if a.StatusCode != 503 || a.code() != "UPSTREAM_UNAVAILABLE" || a.Header.Get("Retry-After") == "" {
					t.Errorf("an upload = %d %s", a.StatusCode, a.body)
				}
			}
		})
	}
}

// witnessTraced waits until strace has hold of the program.
func witnessTraced(t *testing.T, n *node, stderr *watch.Log, ended <-chan struct{}) {
	t.Helper()
	path := "/proc/" + strconv.Itoa(n.cmd.Process.Pid) + "/status"
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		select {
		case <-ended:
			t.Skipf("strace may not trace here: %s", stderr)
		default:
		}
		status, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(status), "TracerPid:") && !strings.Contains(string(status), "TracerPid:\t0\n") {
			return
		}
	}
	t.Skipf("strace does not trace: %s", stderr)
}
