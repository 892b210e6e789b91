package subprocess_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine/subprocess"
	"atelier/internal/testkit/watch"
)

// dd takes a buffer of 300 MB.
const dd = "dd if=/dev/zero of=/dev/null bs=300M count=1"

func TestMemory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux holds this limit")
	}
	for name, script := range map[string]string{"its own": "exec " + dd, "its child's": dd + "; exit $?", "raised again": "ulimit -v unlimited; " + dd} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := shell(t, script)
			if _, err := run(t, p); err != nil {
				t.Fatalf("without a limit: %v", err)
			}
			p.Limits.Memory = 100 << 20
			_, err := run(t, p)
			if e := exit(t, err); e.Code <= 0 || !strings.Contains(e.Tail, "memory") {
				t.Errorf("exit = %+v, want one for want of memory", e)
			}
		})
	}
}

// TestLittleMemory starts a program with less than we have reserved ourselves,
// again and again: starting it must not fail for want of memory.
func TestLittleMemory(t *testing.T) {
	t.Parallel()
	for range 50 {
		p := shell(t, "echo fine")
		p.Limits.Memory = 64 << 20
		if out, err := run(t, p); err != nil || len(out) != 1 {
			t.Fatalf("run = %q, %v", out, err)
		}
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	const write = "dd if=/dev/zero of=large bs=64k count=100"
	for name, script := range map[string]string{"its own": "exec " + write, "its child's": write, "that it finds out": "trap '' XFSZ; " + write} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := shell(t, script)
			p.Limits.File = 1 << 20
			if _, err := run(t, p); !errors.Is(err, subprocess.ErrLimit) {
				t.Errorf("run = %v, want a limit", err)
			}
			if n := len(read(t, p.Folder, "large")); n != 1<<20 {
				t.Errorf("the file has %d bytes, want 1 MiB", n)
			}
			p.Limits.File = 0
			if _, err := run(t, p); err != nil {
				t.Errorf("without a limit: %v", err)
			}
		})
	}
}

func TestFolderIsFull(t *testing.T) {
	t.Parallel()
	p := play(t, "fill")
	p.Limits.Folder = 1 << 20
	began := time.Now()
	if _, err := run(t, p); !errors.Is(err, subprocess.ErrLimit) || !strings.Contains(err.Error(), "folder") {
		t.Errorf("run = %v, want a full folder", err)
	}
	watch.Took(t, "the run", time.Since(began), 10*time.Second)
}

// TestFolderIsFullAtTheEnd has programs that end before anybody looks.
func TestFolderIsFullAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		full   bool
	}{
		"one large file":   {"head -c 2000000 /dev/zero > large", true},
		"many small files": {"mkdir a; i=0; while [ $i -lt 1200 ]; do : > a/$i; i=$((i+1)); done", true},
		"within it":        {"head -c 1000000 /dev/zero > large; ln -s / root; mkfifo pipe", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := shell(t, tt.script)
			p.Limits.Folder = 1 << 20
			if _, err := run(t, p); errors.Is(err, subprocess.ErrLimit) != tt.full || !tt.full && err != nil {
				t.Errorf("run = %v, full = %v", err, tt.full)
			}
		})
	}
}
