package execengine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/execengine"
	"atelier/internal/engine/subprocess"
)

// secret is in the environment of the tests, and of no program.
const secret = "ATELIER_TEST_SECRET"

// TestMain is the program where an engine started us.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "program" {
		program()
		os.Exit(0)
	}
	if err := os.Setenv(secret, "hunter2"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// taskInput is what the program is told, as it sees it.
type taskInput struct {
	RunID      string `json:"run_id"`
	Attempt    int64
	Seed       uint32
	NumResults int `json:"num_results"`
	Output     struct {
		Type      string
		MimeTypes []string `json:"mime_types"`
	}
	With   struct{ Do, Exact string }
	Values map[string]any
	Files  map[string][]struct {
		Path          string
		MimeType      string `json:"mime_type"`
		Size          int64
		Width, Height int
	}
	Folder string
}

func program() {
	text, err := io.ReadAll(os.Stdin)
	check(err)
	var t taskInput
	check(json.Unmarshal(text, &t))
	do, ok := deeds[t.With.Do]
	if !ok {
		fmt.Fprintln(os.Stderr, "nothing to do")
		os.Exit(2)
	}
	if t.With.Do == "repeat" {
		check(os.WriteFile("out/task.json", text, 0o600))
	}
	do(t)
}

// deeds are what the program can do.
var deeds = map[string]func(t taskInput){
	"paint": func(t taskInput) {
		for i := range t.NumResults {
			name := fmt.Sprintf("out/%02d.png", i+1)
			paint(name, color.RGBA{byte(t.Seed), byte(i), byte(t.Seed >> 8), 255})
			tell("progress", (float64(i)+0.5)/float64(t.NumResults))
			if i == 0 { // the others are found at the end
				tell("preview", name)
				tell("output", name)
			}
		}
		tell("progress", 1)
	},
	"copy": func(t taskInput) {
		for _, f := range t.Files["picture"] {
			b, err := os.ReadFile(f.Path)
			check(err)
			check(os.WriteFile("out/"+filepath.Base(f.Path), b, 0o600))
		}
	},
	"repeat":      func(taskInput) {},
	"environment": func(taskInput) { write("out/env", strings.Join(os.Environ(), "\n")) },
	"fail":        func(taskInput) { fmt.Fprintln(os.Stderr, "no such luck"); os.Exit(1) },
	"crash":       func(taskInput) { check(syscall.Kill(os.Getpid(), syscall.SIGKILL)); wait() },
	"half": func(taskInput) {
		write("out/1.png", "\x89PNG\r\n\x1a\n")
		os.Exit(1)
	},
	"hang": func(taskInput) {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		tell("progress", 0.1)
		wait()
	},
	"babble": func(taskInput) {
		fmt.Println("loading…\n{\n{}\n[]\nnull\n{\"progress\":\"half\"}\n{\"output\":{}}\n{\"preview\":\"/etc/passwd\"}\n{\"progress\":7}{")
	},
	"flood": func(taskInput) {
		for line := []byte(strings.Repeat(`{"progress":0.5}`+"\n", 4000)); ; {
			_, err := os.Stdout.Write(line)
			check(err)
		}
	},
	"flood without lines": func(taskInput) {
		for line := make([]byte, 1<<20); ; {
			_, err := os.Stdout.Write(line)
			check(err)
		}
	},
	"fill a file": func(taskInput) {
		f, err := os.Create("out/1.png")
		check(err)
		for b := make([]byte, 64<<10); ; {
			_, err := f.Write(b)
			check(err)
		}
	},
	"fill the folder": func(taskInput) {
		for i := 0; ; i++ {
			check(os.WriteFile(fmt.Sprintf("out/%d", i), make([]byte, 64<<10), 0o600))
			time.Sleep(time.Millisecond)
		}
	},
	"large": func(taskInput) { check(os.WriteFile("out/1.png", make([]byte, 8<<20), 0o600)) },
	"announce": func(t taskInput) {
		write("result", "a result")
		check(os.Symlink(filepath.Join(filepath.Dir(t.Folder), "outside"), "out-of-it"))
		check(os.Symlink("..", "parent"))
		check(syscall.Mkfifo("pipe", 0o600))
		tell("output", t.With.Exact)
		wait() // we are ended for it
	},
	"leave": func(t taskInput) {
		switch t.With.Exact {
		case "link":
			check(os.Symlink("/etc/passwd", "out/1.png"))
		case "pipe":
			check(syscall.Mkfifo("out/1.png", 0o600))
		case "hidden":
			write("out/.1.png", "x")
			write("out/sub/1.png", "x")
		case "out is a link":
			check(os.Remove("out"))
			check(os.Symlink("/etc", "out"))
		case "out is gone":
			check(os.Remove("out"))
		}
	},
	"leave a child": func(t taskInput) {
		cmd := exec.Command("/bin/sleep", "100")
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: t.With.Exact == "setsid"}
		check(cmd.Start())
		check(os.Mkdir("out/locked", 0o700))
		check(os.Chmod("out/locked", 0))
		paint("out/1.png", color.White)
	},
	"error": func(t taskInput) {
		fmt.Println(t.With.Exact)
		os.Exit(1)
	},
	"error and no exit code": func(t taskInput) {
		paint("out/1.png", color.White)
		fmt.Println(t.With.Exact)
	},
	"say it twice": func(taskInput) {
		paint("out/1.png", color.White)
		tell("output", "out/1.png")
		tell("output", "out/../out/1.png")
	},
	"many": func(t taskInput) {
		for i := range 2 * t.NumResults {
			paint(fmt.Sprintf("out/%02d.png", i), color.White)
		}
	},
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tell(what string, value any) {
	b, err := json.Marshal(map[string]any{what: value})
	check(err)
	fmt.Println(string(b))
}

func write(name, text string) {
	check(os.MkdirAll(filepath.Dir(name), 0o700))
	check(os.WriteFile(name, []byte(text), 0o600))
}

func paint(name string, c color.Color) {
	m := image.NewRGBA(image.Rect(0, 0, 2, 2))
	m.Set(0, 0, c)
	f, err := os.Create(name)
	check(err)
	check(png.Encode(f, m))
	check(f.Close())
}

// wait is bounded: a test that fails must not leave us for ever.
func wait() { time.Sleep(2 * time.Minute) }

// fixture is an engine whose folders are where the test can see them.
type fixture struct {
	engine *execengine.Engine
	folder string
}

func newFixture(t *testing.T, limits subprocess.Limits) fixture {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := fixture{folder: dir}
	w.engine, err = execengine.New(execengine.Options{
		Command: []string{own, "program"},
		Env:     map[string]string{"OWN": "a b", "GORACE": "atexit_sleep_ms=0"}, // the race detector sleeps a second at the end
		Limits:  limits,
		Folder:  dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w fixture) run(t *testing.T, j engine.Job) (*enginetest.Recorder, error) {
	t.Helper()
	var r enginetest.Recorder
	err := w.engine.Run(t.Context(), j, &r)
	w.clean(t)
	return &r, err
}

// clean proves that neither a folder nor a process is left.
func (w fixture) clean(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(w.folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		pids := w.processes(t)
		if len(pids) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("processes left: %v", pids)
			return
		}
	}
}

// processes are those that work in the folders or were told of them.
func (w fixture) processes(t *testing.T) (pids []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		at, _ := os.Readlink(dir + "/cwd") // "" for a process that is gone
		env, err := os.ReadFile(dir + "/environ")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if strings.HasPrefix(at, w.folder+"/") || strings.Contains(string(env), "="+w.folder+"/") {
			pids = append(pids, dir)
		}
	}
	return pids
}

// job has the program do something; exact says more about it.
func job(do string, exact ...string) engine.Job {
	with := map[string]string{"do": do, "exact": strings.Join(exact, "")}
	b, _ := json.Marshal(with) // strings
	return engine.Job{RunID: "run", Attempt: 1, With: string(b), Seed: 7, NumResults: 1, OutputType: "IMG", MimeTypes: []string{"image/png"}}
}
