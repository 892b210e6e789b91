package subprocess_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"atelier/internal/engine/subprocess"
)

// secret is in the environment of the tests, and of nothing that they start.
const secret = "ATELIER_TEST_SECRET"

// TestMain plays a part where a test started us as a program.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "play" {
		parts[os.Args[2]](os.Args[3:])
		os.Exit(0)
	}
	if err := os.Setenv(secret, "hunter2"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// parts are the programs of the tests.
var parts = map[string]func(args []string){
	"environment": func([]string) { fmt.Println(strings.Join(os.Environ(), "\n")) },
	"sleep":       func([]string) { wait() },
	"ignore signals": func([]string) {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Println("ready")
		wait()
	},
	"flood": func([]string) {
		for buf := make([]byte, 1<<20); ; {
			if _, err := os.Stdout.Write(buf); err != nil {
				os.Exit(1)
			}
		}
	},
	"one long line": func([]string) {
		fmt.Print(strings.Repeat("x", 4<<20) + "\nshort\r\n\nlast")
	},
	"complain": func([]string) {
		fmt.Fprint(os.Stderr, strings.Repeat("a lot of words\n", 10_000)+"the last word\n")
		os.Exit(3)
	},
	"fill": func([]string) {
		for i := range 1_000_000 {
			dir := fmt.Sprintf("sub/%d", i)
			check(os.MkdirAll(dir, 0o700))
			check(os.WriteFile(filepath.Join(dir, "file"), make([]byte, 64<<10), 0o600))
			check(os.Chmod(dir, 0)) // it hides what it did
			time.Sleep(time.Millisecond)
		}
	},
	"dial": func(args []string) {
		c, err := net.DialTimeout("tcp", args[0], 5*time.Second)
		check(err)
		c.Close()
	},
	"run another": func(args []string) {
		f, err := subprocess.NewFolder(args[0])
		check(err)
		check(subprocess.Run(context.Background(), subprocess.Program{
			Path: args[1], Args: []string{"play", "tell and sleep"}, Folder: f,
			Line: func(l []byte) { fmt.Printf("%s\n", l) },
		}))
	},
	"tell and sleep": func([]string) {
		fmt.Println(os.Getpid())
		wait()
	},
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// wait is bounded: a test that fails must not leave us for ever.
func wait() { time.Sleep(2 * time.Minute) }

// play is a program that plays a part, in a folder of its own.
func play(t *testing.T, part string, args ...string) subprocess.Program {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return subprocess.Program{
		Path: own, Args: append([]string{"play", part}, args...), Folder: folder(t), Limits: subprocess.Limits{Network: true},
		Env: []string{"GORACE=atexit_sleep_ms=0"}, // the race detector sleeps a second at the end
	}
}

// shell is a program that is a shell: what it does is what is tested.
func shell(t *testing.T, script string) subprocess.Program {
	t.Helper()
	return subprocess.Program{Path: "/bin/sh", Args: []string{"-c", script}, Folder: folder(t), Limits: subprocess.Limits{Network: true}}
}

func folder(t *testing.T) *subprocess.Folder {
	t.Helper()
	f, err := subprocess.NewFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

// run runs the program and gives what it printed.
func run(t *testing.T, p subprocess.Program) ([]string, error) {
	t.Helper()
	var got []string
	p.Line = func(l []byte) { got = append(got, string(l)) }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := subprocess.Run(ctx, p)
	return got, err
}

// gone tells whether a process is there no more, or only its name is, for want
// of somebody to bury it.
func gone(pid string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		_, no := os.Stat("/proc/self")
		return no == nil || !errors.Is(no, os.ErrNotExist)
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X")
}

func soonGone(t *testing.T, pid string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !gone(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("process %s lives on", pid)
			return
		}
	}
}

func exit(t *testing.T, err error) *subprocess.Exit {
	t.Helper()
	e, ok := errors.AsType[*subprocess.Exit](err)
	if !ok {
		t.Fatalf("run = %v, want an exit", err)
	}
	return e
}

func read(t *testing.T, f *subprocess.Folder, name string) string {
	t.Helper()
	r, err := f.OpenFile(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
