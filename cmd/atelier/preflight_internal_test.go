package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestServeChecksBeforeItWrites starts the service where it cannot run. Each time
// it says what to do, and nothing is made.
func TestServeChecksBeforeItWrites(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("file", "")
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"port in use", []string{"--listen", taken.Addr().String()}, []string{"is in use", "choose another address with --listen"}},
		{"port in use, everywhere", []string{"--listen", "0.0.0.0:" + port}, []string{"is in use", "choose another address with --listen", "base_url is not set", "--base-url"}},
		{"port of the redirect in use", []string{"--listen", "127.0.0.1:0", "--http.acme-domains", "a.example", "--http.redirect-listen", taken.Addr().String()}, []string{"--http.redirect-listen", "is in use"}},
		{"address of another machine", []string{"--listen", "192.0.2.1:8080"}, []string{"not an address of this machine"}},
		{"file in the way", []string{"--data", filepath.Join(file, "data")}, []string{"--data", "a part of this path is a file"}},
		{"database in a file", []string{"--database", "sqlite://" + file + "/x.db"}, []string{"--database", "a part of this path is a file"}},
		{"files in a file", []string{"--blobs", "file://" + file + "/x"}, []string{"--blobs", "a part of this path is a file"}},
		{"secret", []string{"--secret", "short"}, []string{"secret"}},
		{"tools", []string{"--tools", "/nowhere"}, []string{"/nowhere is not a folder"}},
		{"backends", []string{"--backends", write("backends.yaml", "\nstudio: {engine: cog}\n")}, []string{"backends.yaml:2: studio"}},
		{"roots of the authority", []string{"--http.acme-domains", "a.example", "--http.acme-roots", file}, []string{"http.acme_roots", file}},
		{"certificate", []string{"--http.tls-cert", file, "--http.tls-key", file}, []string{"http.tls_cert", file}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			args := append([]string{"serve", "--data", data, "--metrics.listen=off"}, c.args...)
			if !strings.Contains(strings.Join(args, " "), "--listen ") {
				args = append(args, "--listen=127.0.0.1:0")
			}
			var said bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := runCommand(ctx, args, streams{
				getenv:  func(string) string { return "" },
				environ: []string{"ATELIER_DATBASE=hunter2"},
				stdout:  &said,
				stderr:  &said,
			})
			if err == nil {
				t.Fatal("it ran")
			}
			said.WriteString(err.Error())
			for _, want := range append(c.want, "ATELIER_DATBASE is not a setting; did you mean ATELIER_DATABASE?") {
				if !strings.Contains(said.String(), want) {
					t.Errorf("said %s, want %q", said.String(), want)
				}
			}
			if _, err := os.Lstat(data); !os.IsNotExist(err) {
				t.Errorf("the data folder was made: %v", err)
			}
		})
	}
}

// TestUnwritablePlaces looks at places as a user who may not write there.
func TestUnwritablePlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	locked := filepath.Join(dir, "locked")
	free := filepath.Join(dir, "free")
	for path, mode := range map[string]os.FileMode{locked: 0o555, free: 0o777, dir: 0o755, filepath.Dir(dir): 0o755} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(free, "atelier.db")
	if err := os.WriteFile(file, nil, 0o444); err != nil {
		t.Fatal(err)
	}

	// The user of one thread is another; the thread ends with its goroutine.
	const nobody = 65534
	check := func(path string) error {
		result := make(chan error)
		go func() {
			runtime.LockOSThread()
			if os.Geteuid() == 0 {
				if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), nobody, ^uintptr(0)); errno != 0 {
					result <- errno
					return
				}
			}
			result <- checkedPath{"--data", path, path != file}.checkWritable()
		}()
		return <-result
	}
	for path, want := range map[string]string{
		locked:                              "--data: " + locked + " cannot be written by user",
		filepath.Join(locked, "a", "b"):     "--data: " + locked + " cannot be written by user",
		file:                                "--data: " + file + " cannot be written by user",
		filepath.Join(file, "x"):            "a part of this path is a file",
		free:                                "",
		filepath.Join(free, "a", "b", "c"):  "",
		filepath.Join(locked, "..", "free"): "",
	} {
		err := check(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
