package chaos

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
)

// diskSize is the size of the disk that is filled, in MiB.
const diskSize = 128

// disk is a small file system that holds everything that a process stores.
type disk struct {
	t      *testing.T
	dir    string
	strace string
	errors []callError
}

// callError is an error that the system returns from some calls of a process.
type callError struct {
	name   string
	calls  string
	number string
}

// newDisk mounts a file system in memory. It returns nil, and logs the reason,
// where the system does not allow this.
func newDisk(t *testing.T) *disk {
	t.Helper()
	dir := t.TempDir()
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "mode=700,size="+strconv.Itoa(diskSize)+"m", "atelier-chaos", dir)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Logf("errors of the disk are not tried: mount needs to be root: %v: %s", err, out)
		return nil
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	d := &disk{t: t, dir: dir}
	var err error
	if d.strace, err = exec.LookPath("strace"); err != nil {
		t.Log("a read-only disk and errors of fsync are not tried: strace is missing (package strace)")
		return d
	}
	d.errors = []callError{
		{"failing fsync", "fsync,fdatasync", "EIO"},
		{"failing reads and writes", "pread64,pwrite64,fsync,fdatasync", "EIO"},
		{"read-only disk", "pwrite64,ftruncate,fallocate,fsync,fdatasync,renameat,linkat,unlinkat", "EROFS"},
	}
	return d
}

// fillDisk leaves no space on the disk for a while.
func (w *installation) fillDisk(chance *rand.Rand) {
	from := time.Now()
	path := filepath.Join(w.disk.dir, "ballast")
	ballast, err := os.Create(path)
	if err != nil {
		w.t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for until := time.Now().Add(between(chance, 500*time.Millisecond, 3*time.Second)); time.Now().Before(until); {
		n, err := ballast.Write(block)
		switch {
		case err == nil:
		case !errors.Is(err, syscall.ENOSPC):
			w.t.Fatal(err)
		case n == 0:
			<-time.After(10 * time.Millisecond) // the program may free some
		}
	}
	if err := errors.Join(ballast.Close(), os.Remove(path)); err != nil {
		w.t.Fatal(err)
	}
	w.recover()
	w.faults = append(w.faults, fault{from: from, to: time.Now(), everywhere: true})
}

// failCalls lets system calls of a process fail for a while.
func (w *installation) failCalls(e callError, chance *rand.Rand) {
	from := time.Now()
	p := w.someServer(chance)
	trace := exec.Command(w.disk.strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+e.calls, "-e", "inject="+e.calls+":error="+e.number, "-p", strconv.Itoa(p.cmd.Process.Pid))
	stderr := &watch.Log{}
	trace.Stdout = io.Discard
	trace.Stderr = stderr
	if err := trace.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = trace.Wait(); close(ended) }()
	select {
	case <-ended:
		w.caused[e.name]--
		w.t.Logf("%s was not tried: strace may not trace here: %s", e.name, stderr)
	case <-time.After(between(chance, time.Second, 3*time.Second)):
		_ = trace.Process.Signal(syscall.SIGINT) // it lets go of the program
		<-ended
	}
	w.recover()
	w.faults = append(w.faults, fault{from: from, to: time.Now(), everywhere: true})
}
