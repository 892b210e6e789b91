package subprocess_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"atelier/internal/engine/subprocess"
	"atelier/internal/testkit/watch"
)

func TestEnvironmentIsBare(t *testing.T) {
	t.Parallel()
	if os.Getenv(secret) == "" {
		t.Fatal("there is no secret to keep")
	}
	p := play(t, "environment")
	p.Env = append(p.Env, "OWN=1", "LANG=fr_FR")
	got, err := run(t, p)
	if err != nil {
		t.Fatal(err)
	}
	home := p.Folder.FilePath()
	want := []string{p.Env[0], "HOME=" + home, "LANG=fr_FR", "OWN=1", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + home}
	if runtime.GOOS == "darwin" {
		want[4] += ":/opt/homebrew/bin"
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("environment = %q, want %q", got, want)
	}
}

func TestTalk(t *testing.T) {
	t.Parallel()
	p := shell(t, `pwd; cat; printf '%s\n' "$0" "$@"`)
	p.Args = append(p.Args, "zero", "$(one) *", "")
	p.Stdin = []byte("in\n")
	got, err := run(t, p)
	if want := []string{p.Folder.FilePath(), "in", "zero", "$(one) *", ""}; err != nil || !slices.Equal(got, want) {
		t.Errorf("run = %q, %v; want %q", got, err, want)
	}
}

func TestInputNeedNotBeRead(t *testing.T) {
	t.Parallel()
	p := shell(t, "exit 0")
	p.Stdin = make([]byte, 8<<20)
	if _, err := run(t, p); err != nil {
		t.Errorf("run = %v, want nil", err)
	}
}

func TestLongLinesAreCut(t *testing.T) {
	t.Parallel()
	got, err := run(t, play(t, "one long line"))
	if want := []string{strings.Repeat("x", 64<<10), "short", "", "last"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("run = %d lines, %v; want %d, the first cut", len(got), err, len(want))
	}
}

// TestFloods has a program that writes without an end and without lines.
func TestFloods(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]func([]byte){"dropped": nil, "cut": func([]byte) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, "flood")
			p.Line = line
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if err := subprocess.Run(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("run = %v, want the context's end", err)
			}
		})
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	_, err := run(t, play(t, "complain"))
	e := exit(t, err)
	if e.Code != 3 || errors.Is(err, subprocess.ErrLimit) {
		t.Errorf("exit = %+v, want 3 and no limit", e)
	}
	if len(e.Tail) > 4<<10 || len(e.Tail) < 3<<10 || !strings.HasSuffix(e.Tail, "the last word") {
		t.Errorf("tail = %d bytes that end in %q", len(e.Tail), e.Tail[max(0, len(e.Tail)-20):])
	}
	_, err = run(t, shell(t, "kill -SEGV $$"))
	if e := exit(t, err); e.Code != -1 || !strings.Contains(e.Why, "segmentation") {
		t.Errorf("exit = %+v, want a signal", e)
	}
}

func TestProgramsThatDoNotStart(t *testing.T) {
	t.Parallel()
	f := folder(t)
	for name, text := range map[string]string{"garbage": "\x7fELF and then nothing", "lost": "#!/no/such/interpreter\n", "locked": "#!/bin/sh\n"} {
		if err := f.Write(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if name != "locked" {
			if err := os.Chmod(f.FilePath(name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		path string
		want error
	}{
		{"/no/such/program", fs.ErrNotExist},
		{f.FilePath("lost"), fs.ErrNotExist},
		{f.FilePath("locked"), fs.ErrPermission},
		{f.FilePath("garbage"), syscall.ENOEXEC},
		{"sh", nil},
		{"./sh", nil},
	} {
		err := subprocess.Run(t.Context(), subprocess.Program{Path: tt.path, Folder: f})
		if _, ok := errors.AsType[*subprocess.Exit](err); ok || err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("run %s = %v, want %v", tt.path, err, tt.want)
		}
	}
}

func TestContextEndsIt(t *testing.T) {
	t.Parallel()
	p := play(t, "ignore signals")
	ctx, cancel := context.WithCancel(t.Context())
	var ended time.Time
	p.Line = func([]byte) { ended = time.Now(); cancel() }
	if err := subprocess.Run(ctx, p); !errors.Is(err, context.Canceled) {
		t.Errorf("run = %v, want the context's end", err)
	}
	watch.Took(t, "the end", time.Since(ended), 2*time.Second)
	if err := subprocess.Run(ctx, p); !errors.Is(err, context.Canceled) {
		t.Errorf("run after the end = %v, want the context's end", err)
	}
}

// TestNothingLivesOn has programs that leave others behind, which hold their
// standard output: Run must neither wait for them nor leave them.
func TestNothingLivesOn(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a child":              `sleep 100 & echo $!`,
		"a child's child":      `(sh -c 'sleep 100 & echo $!; wait' &) ; sleep 0.2`,
		"one of its own group": `setsid sleep 100 & sleep 0.2; echo $!`,
		"one that moved away":  `(cd / && exec setsid sleep 100) & sleep 0.2; echo $!`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && strings.Contains(script, "setsid") {
				t.Skip("only Linux tells who belongs to the folder")
			}
			began := time.Now()
			got, err := run(t, shell(t, script))
			if err != nil || len(got) != 1 {
				t.Fatalf("run = %q, %v", got, err)
			}
			soonGone(t, got[0])
			watch.Took(t, "the end of all", time.Since(began), 10*time.Second)
		})
	}
}

// TestWeDie kills a process that runs a program.
func TestWeDie(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends programs with those who started them")
	}
	p := play(t, "run another", t.TempDir())
	cmd := exec.CommandContext(t.Context(), p.Path, append(p.Args, p.Path)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	soonGone(t, strings.TrimSpace(pid))
}

func TestLinePanics(t *testing.T) {
	t.Parallel()
	p := play(t, "tell and sleep")
	var pid string
	p.Line = func(l []byte) { pid = string(l); panic("enough") }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic got lost")
			}
		}()
		_ = subprocess.Run(t.Context(), p)
	}()
	soonGone(t, pid)
}

// TestSlowLine reads all of what a program wrote that ended long ago.
func TestSlowLine(t *testing.T) {
	t.Parallel()
	p := shell(t, "sleep 100 & i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done")
	n := 0
	p.Line = func([]byte) {
		if n++; n == 1 {
			time.Sleep(time.Second) // slower than we wait for more
		}
	}
	if err := subprocess.Run(t.Context(), p); err != nil || n != 2000 {
		t.Errorf("run = %d lines, %v; want 2000", n, err)
	}
}

// TestFilesStayHere has a file open that programs would inherit.
func TestFilesStayHere(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc to look at")
	}
	path := filepath.Join(t.TempDir(), "kept")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd())) // without close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	got, err := run(t, shell(t, "ls -l /proc/$$/fd"))
	if err != nil || len(got) < 4 || strings.Contains(strings.Join(got, "\n"), path) {
		t.Errorf("files = %q, %v; want not %s", got, err, path)
	}
}

// Not parallel: it counts goroutines and files.
func TestNothingIsLeftBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	dir := t.TempDir()
	for _, path := range []string{"/bin/true", "/bin/false", "/no/such/program"} {
		f, err := subprocess.NewFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		_ = subprocess.Run(t.Context(), subprocess.Program{Path: path, Folder: f})
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	goleak.VerifyNone(t, before)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left = %v, %v", left, err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	if got := subprocess.FindProgram("sh"); !filepath.IsAbs(got) || filepath.Base(got) != "sh" {
		t.Errorf("find sh = %q", got)
	}
	for _, name := range []string{"", ".", "..", "no-such-program", "/bin/sh", "./sh", "../bin/sh"} {
		if got := subprocess.FindProgram(name); got != "" {
			t.Errorf("find %q = %q, want none", name, got)
		}
	}
}
