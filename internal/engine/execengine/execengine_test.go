package execengine_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/execengine"
	"atelier/internal/engine/subprocess"
	"atelier/internal/testkit/watch"
)

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	paint := job("paint")
	paint.NumResults = 3
	pictures := job("copy")
	pictures.NumResults = 2
	pictures.Files = map[string][]engine.File{"picture": {enginetest.FileFromBytes("image/png", []byte("one")), enginetest.FileFromBytes("image/jpeg", []byte("two"))}}
	for name, j := range map[string]engine.Job{"paint": paint, "copy": pictures} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, subprocess.Limits{})
			enginetest.CheckEngine(t, enginetest.Case{Engine: w.engine, Job: j, Deterministic: true, Seeded: name == "paint"})
			w.clean(t)
		})
	}
}

func TestSigns(t *testing.T) {
	enginetest.CheckProgress(t, enginetest.Case{Engine: newFixture(t, subprocess.Limits{}).engine, Job: job("paint")}, true)
}

func TestFaults(t *testing.T) {
	w := newFixture(t, subprocess.Limits{})
	missing, err := execengine.New(execengine.Options{Command: []string{filepath.Join(w.folder, "program")}, Folder: w.folder})
	if err != nil {
		t.Fatal(err)
	}
	after := func(do string, exact ...string) func(*testing.T) enginetest.Trial {
		return func(*testing.T) enginetest.Trial {
			return enginetest.Trial{Engine: w.engine, Job: job(do, exact...), After: job("paint"), Idle: func() bool { return len(w.processes(t)) == 0 }}
		}
	}
	enginetest.CheckFaults(t, map[enginetest.Fault]func(*testing.T) enginetest.Trial{
		enginetest.Refuses:  after("error", `{"error":{"code":"CONTENT_POLICY_VIOLATION","message":"Not that."}}`),
		enginetest.Fails:    after("fail"),
		enginetest.Busy:     after("error", `{"error":{"code":"ENGINE_UNAVAILABLE","message":"Later."}}`),
		enginetest.Away:     func(*testing.T) enginetest.Trial { return enginetest.Trial{Engine: missing, Job: job("paint")} },
		enginetest.Loses:    after("leave", "out is gone"),
		enginetest.Garbles:  after("babble"),
		enginetest.Breaks:   after("half"),
		enginetest.Floods:   after("large"),
		enginetest.Drips:    after("hang"),
		enginetest.Hangs:    after("hang"),
		enginetest.TimeIsUp: after("hang"),
		enginetest.Restarts: after("crash"),
		enginetest.Fewer:    after("leave"),
	}, nil)
	w.clean(t)
}

// TestTask compares all that the program is told.
func TestTask(t *testing.T) {
	t.Parallel()
	w := newFixture(t, subprocess.Limits{})
	j := job("repeat")
	j.RunID, j.Attempt, j.With = "run 1", 3, `{"do":"repeat","html":"<&>","n":12345678901234567890}`
	j.Values = map[string]any{"prompt": "a fox\n\"$(x)\"", "steps": int64(20), "scale": 7.5, "on": true, "list": []any{"a", int64(1)}}
	picture := enginetest.FileFromBytes("image/jpeg", []byte("jpeg"))
	picture.Width, picture.Height = 640, 480
	j.Files = map[string][]engine.File{"picture": {picture, enginetest.FileFromBytes("application/x-odd", []byte("?"))}}
	r, err := w.run(t, j)
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	if err := json.Unmarshal(r.Outputs()[0], &got); err != nil {
		t.Fatal(err)
	}
	folder, _ := got["folder"].(string)
	if !strings.HasPrefix(folder, w.folder) {
		t.Errorf("folder = %q, want one under %q", folder, w.folder)
	}
	delete(got, "folder")
	if err := json.Unmarshal([]byte(`{"run_id":"run 1","attempt":3,"seed":7,"num_results":1,"output":{"type":"IMG","mime_types":["image/png"]},
		"with":{"do":"repeat","html":"<&>","n":12345678901234567890},
		"values":{"prompt":"a fox\n\"$(x)\"","steps":20,"scale":7.5,"on":true,"list":["a",1]},
		"files":{"picture":[{"path":"in/picture-1.jpg","mime_type":"image/jpeg","size":4,"width":640,"height":480},
			{"path":"in/picture-2.bin","mime_type":"application/x-odd","size":1}]}}`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("task = %v\nwant %v", got, want)
	}
	if !strings.Contains(string(r.Outputs()[0]), j.With) {
		t.Errorf("task = %s, want with as it is: %s", r.Outputs()[0], j.With)
	}
}

func TestEnvironmentHoldsNoSecret(t *testing.T) {
	t.Parallel()
	if os.Getenv(secret) == "" {
		t.Fatal("there is no secret to keep")
	}
	r, err := newFixture(t, subprocess.Limits{}).run(t, job("environment"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(r.Outputs()[0])) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"GORACE", "HOME", "LANG", "OWN", "PATH", "TMPDIR"}) {
		t.Errorf("environment = %q", names)
	}
}

func TestNoMoreThanAskedFor(t *testing.T) {
	t.Parallel()
	j := job("many")
	j.NumResults = 2
	if r, err := newFixture(t, subprocess.Limits{}).run(t, j); err != nil || r.Offered() != 2 {
		t.Errorf("run = %v with %d results, want 2", err, r.Offered())
	}
}

func TestAResultIsOneHoweverOftenItIsTold(t *testing.T) {
	t.Parallel()
	j := job("say it twice")
	j.NumResults = 3
	if r, err := newFixture(t, subprocess.Limits{}).run(t, j); err != nil || r.Offered() != 1 {
		t.Errorf("run = %v with %d results, want 1", err, r.Offered())
	}
}

// TestProgramsThatGoWrong has every fault end with an error, and nothing left.
func TestProgramsThatGoWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limits subprocess.Limits
		job    engine.Job
		code   engine.Code
		log    string // a part of the cause
	}{
		"fails":                {job: job("fail"), code: engine.Failed, log: "no such luck"},
		"crashes":              {job: job("crash"), code: engine.Failed, log: "signal: killed"},
		"knows no such thing":  {job: job("?"), code: engine.Failed, log: "exit status 2"},
		"with is no JSON":      {job: engine.Job{With: "{", NumResults: 1}, code: engine.Failed},
		"fills a file":         {limits: subprocess.Limits{File: 1 << 20}, job: job("fill a file"), code: engine.Failed, log: "file"},
		"fills the folder":     {limits: subprocess.Limits{Folder: 1 << 20}, job: job("fill the folder"), code: engine.Failed, log: "folder"},
		"climbs up":            {job: job("announce", "../outside"), code: engine.Invalid, log: "outside"},
		"climbs up later":      {job: job("announce", "out/../../outside"), code: engine.Invalid, log: "outside"},
		"absolute":             {job: job("announce", "/etc/passwd"), code: engine.Invalid, log: "outside"},
		"a link out":           {job: job("announce", "out-of-it"), code: engine.Invalid, log: "escapes"},
		"a link up":            {job: job("announce", "parent/outside"), code: engine.Invalid, log: "escapes"},
		"a pipe":               {job: job("announce", "pipe"), code: engine.Invalid, log: "regular"},
		"a folder":             {job: job("announce", "out"), code: engine.Invalid, log: "regular"},
		"no name":              {job: job("announce", ""), code: engine.Invalid},
		"no file":              {job: job("announce", "out/none"), code: engine.Invalid, log: "no such file"},
		"leaves a link":        {job: job("leave", "link"), code: engine.Invalid, log: "escapes"},
		"leaves a pipe":        {job: job("leave", "pipe"), code: engine.Invalid, log: "regular"},
		"leaves hidden things": {job: job("leave", "hidden"), code: engine.Invalid},
		"leaves out a link":    {job: job("leave", "out is a link"), code: engine.Invalid},
		"leaves nothing":       {job: job("leave"), code: engine.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, tt.limits)
			r, err := w.run(t, tt.job)
			e, ok := errors.AsType[*engine.Error](err)
			if !ok || e.Code != tt.code || e.Transient {
				t.Fatalf("run = %v, want %s", err, tt.code)
			}
			if !strings.Contains(e.Error(), tt.log) {
				t.Errorf("the log says %q, want %q in it", e, tt.log)
			}
			if strings.Contains(e.Message, "/") || strings.Contains(e.Message, tt.log) && tt.log != "" {
				t.Errorf("message = %q, want no details", e.Message)
			}
			if n := r.Offered(); n != 0 {
				t.Errorf("results offered = %d, want none", n)
			}
		})
	}
}

func TestMemoryBomb(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux holds this limit")
	}
	// The test's own program may be too large for a small limit, with the
	// race detector in it. So this one is a shell.
	w := newFixture(t, subprocess.Limits{})
	var err error
	w.engine, err = execengine.New(execengine.Options{Command: []string{"/bin/sh", "-c", "dd if=/dev/zero of=/dev/null bs=300M count=1 || exit 7; echo > out/1"}, Limits: subprocess.Limits{Memory: 100 << 20}, Folder: w.folder})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.run(t, job("")); engine.AsError(err).Code != engine.Failed || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("run = %v, want that it failed", err)
	}
}

// TestProgramsWithoutEnd are ended with their job.
func TestProgramsWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, do := range []string{"hang", "flood", "flood without lines"} {
		t.Run(do, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, subprocess.Limits{})
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			began := time.Now()
			var r enginetest.Recorder
			if err := w.engine.Run(ctx, job(do), &r); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("run = %v, want the context's end", err)
			}
			watch.Took(t, "the run", time.Since(began), 3*time.Second)
			if n := len(r.Fractions()); n > 1 {
				t.Errorf("progress was told %d times, want once", n)
			}
			w.clean(t)
		})
	}
}

func TestChildrenAreEnded(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"", "setsid"} {
		if r, err := newFixture(t, subprocess.Limits{}).run(t, job("leave a child", how)); err != nil || r.Offered() != 1 {
			t.Errorf("run = %v with %d results, want 1", err, r.Offered())
		}
	}
}

func TestErrorsOfPrograms(t *testing.T) {
	t.Parallel()
	w := newFixture(t, subprocess.Limits{})
	for _, tt := range []struct {
		line      string
		code      engine.Code
		message   string
		transient bool
	}{
		{`{"error":{"message":"Too dark.","code":"ENGINE_FAILED"}}`, engine.Failed, "Too dark.", false},
		{`{"error":{"message":"Not that.","code":"CONTENT_POLICY_VIOLATION"}}`, engine.Refused, "Not that.", false},
		{`{"error":{"message":"Later.","code":"ENGINE_UNAVAILABLE"}}`, engine.Unavailable, "Later.", true},
		{`{"error":{"message":"Never.","code":"ENGINE_UNAVAILABLE","transient":false}}`, engine.Unavailable, "Never.", false},
		{`{"error":{"message":"Again.","transient":true}}`, engine.Failed, "Again.", true},
		{`{"error":{"code":"OTHER"}}`, engine.Failed, "The tool could not finish.", false},
		{`{"error":{"message":"no\nmodel at /srv/models/a.bin or http://10.0.0.1/x\u0007"}}`, engine.Failed, "no model at … or …", false},
		{`{"error":{"message":"` + strings.Repeat("é", 500) + `"}}`, engine.Failed, strings.Repeat("é", 300) + "…", false},
		{`{"error":"text"}`, engine.Failed, "The tool could not finish.", false},
	} {
		_, err := w.run(t, job("error", tt.line))
		if e := engine.AsError(err); e.Code != tt.code || e.Message != tt.message || e.Transient != tt.transient {
			t.Errorf("%.80s: %s, %q, transient %v", tt.line, e.Code, e.Message, e.Transient)
		}
	}
	if _, err := w.run(t, job("error and no exit code", `{"error":{"message":"Too dark."}}`)); engine.AsError(err).Message != "Too dark." {
		t.Errorf("run = %v, want the program's error", err)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]execengine.Options{
		"no command":    {},
		"relative":      {Command: []string{"sh"}},
		"zero byte":     {Command: []string{"/bin/sh", "a\x00b"}},
		"odd name":      {Command: []string{"/bin/sh"}, Env: map[string]string{"A=B": "hunter2"}},
		"odd value":     {Command: []string{"/bin/sh"}, Env: map[string]string{"A": "hunter2\x00"}},
		"nameless":      {Command: []string{"/bin/sh"}, Env: map[string]string{"": "hunter2"}},
		"relative path": {Command: []string{"./sh"}},
	} {
		if _, err := execengine.New(o); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: new = %v, want an error without values", name, err)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "program")
	e, err := execengine.New(execengine.Options{Command: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	probe := func() engine.Code {
		if err := e.Probe(t.Context()); err != nil {
			return engine.AsError(err).Code
		}
		return ""
	}
	if got := probe(); got != engine.Unavailable {
		t.Errorf("missing: %q", got)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := probe(); got != engine.Unavailable {
		t.Errorf("not executable: %q", got)
	}
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := probe(); got != "" {
		t.Errorf("there: %q", got)
	}
}
