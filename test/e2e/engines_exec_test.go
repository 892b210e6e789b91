package e2e

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"atelier/client"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/engine/subprocess"
	"atelier/internal/testkit/watch"
)

// deed is a program that an operator might have, and what becomes of a run of
// it.
type deed struct {
	name    string
	does    string        // for /bin/sh; $GOOD is a picture, {data}, {jobs}, {dir} and {database} are places of the service
	timeout time.Duration // a minute where it is 0
	wants   int           // results, 1 where it is 0
	output  string        // a picture where it is ""

	code string // "" where it succeeds
	made int
	says string // in the error's message
}

// faults are what engines do that they should not.
var faults = []deed{
	{name: "hang", does: `trap '' TERM INT HUP; sleep 100`, timeout: 2 * time.Second, code: "TIMED_OUT"},
	{name: "late", does: `cp $GOOD out/1.png; echo '{"output":"out/1.png"}'; sleep 100`, timeout: 2 * time.Second, wants: 2, code: "TIMED_OUT"},
	{name: "exit", does: `echo "no luck in $GOOD" >&2; exit 3`, code: "ENGINE_FAILED"},
	{name: "segfault", does: `kill -SEGV $$`, code: "ENGINE_FAILED"},
	{name: "half", does: `cp $GOOD out/1.png; echo '{"output":"out/1.png"}'; exit 3`, wants: 2, code: "ENGINE_FAILED"},
	{name: "flood", does: `cat /dev/zero`, timeout: time.Second, code: "TIMED_OUT"},
	{name: "flood-of-lines", does: `yes '{"progress":0.5}'`, timeout: time.Second, code: "TIMED_OUT"},
	{name: "endless-file", does: `cat /dev/zero > out/1.png`, code: "ENGINE_FAILED", says: "exceeded its limit"},
	{name: "endless-files", does: `i=0; while :; do head -c 1000000 /dev/zero > out/$i; i=$((i+1)); sleep 0.01; done`, code: "ENGINE_FAILED", says: "exceeded its limit"},
	// Where nothing holds it, it ends before it takes the machine down.
	{name: "memory", does: `x=0123456789abcdef; i=0; while [ $i -lt 24 ]; do x=$x$x; i=$((i+1)); done; cp $GOOD out/1.png`, code: "ENGINE_FAILED"},
	{name: "traversal", does: `echo '{"output":"../../etc/passwd"}'; sleep 100`, code: "OUTPUT_INVALID"},
	{name: "outside", does: `echo '{"output":"/etc/passwd"}'; sleep 100`, output: "TEXT", code: "OUTPUT_INVALID"},
	{name: "link", does: `ln -s /etc/passwd out/1.txt`, output: "TEXT", code: "OUTPUT_INVALID"},
	{name: "device", does: `ln -s /dev/zero out/1.png`, code: "OUTPUT_INVALID"},
	{name: "pipe", does: `mkfifo out/1.png`, code: "OUTPUT_INVALID"},
	{name: "gone", does: `rm -rf "$HOME" || true`, code: "OUTPUT_INVALID"},
	{name: "page", does: `echo '<html><script>alert(1)</script></html>' > out/1.png`, code: "OUTPUT_INVALID"},
	{name: "mixed", does: `cp $GOOD out/1.png; echo '<html></html>' > out/2.png`, wants: 2, code: "OUTPUT_INVALID"},
	{name: "none", does: `echo '{"progress":1}'`, code: "OUTPUT_INVALID"},
	{name: "words", does: `echo '{"error":{"message":"cannot open /srv/models/x.bin of http://10.0.0.5/x"}}'; exit 1`, code: "ENGINE_FAILED", says: "cannot open … of …"},
	{name: "fewer", does: `cp $GOOD out/1.png; cp $GOOD out/2.png`, wants: 3, made: 2},
	{name: "more", does: `for i in 1 2 3 4 5; do cp $GOOD out/$i.png; done; echo '{"output":"out/4.png"}'; echo '{"output":"out/5.png"}'; echo '{"output":"out/3.png"}'`, wants: 2, made: 2},
	{name: "twice", does: `cp $GOOD out/1.png; echo '{"output":"out/1.png"}'; echo '{"output":"out/../out/1.png"}'`, wants: 3, made: 1},
	{name: "stray", does: `setsid sleep 300 > /dev/null 2>&1 & cp $GOOD out/1.png`, made: 1},
	{name: "locked", does: `cp $GOOD out/1.png; mkdir -p out/a/b; chmod 0 out/a/b out/a`, made: 1},
	{name: "environment", does: `env > out/1.txt`, output: "TEXT", made: 1},
}

// good is a program that does as it should.
var good = deed{name: "good", does: `cp $GOOD out/1.png; cp $GOOD out/2.png`, wants: 2, made: 2}

// workshop is an installation whose tools are programs.
type workshop struct {
	*site
	node    *node
	client  *client.Client
	tools   map[string]*client.ToolDetail
	picture []byte // that the programs have
	jobs    string // where they work
	secret  string
	tokens  int
}

// newWorkshop serves a tool for each of the deeds. more is of the backends' file,
// and beside are manifests by name.
func newWorkshop(t *testing.T, engine string, deeds []deed, more string, beside map[string]string, env ...string) *workshop {
	t.Helper()
	w := &workshop{
		site: newSite(t), tools: map[string]*client.ToolDetail{}, tokens: 100_000,
		picture: plainPicture(t, 40, 30, color.NRGBA{200, 30, 60, 255}), secret: "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlY3I=",
	}
	w.database = dbtest.URL(t, engine)
	dir := t.TempDir()
	var err error
	if w.jobs, err = filepath.EvalSymlinks(t.TempDir()); err != nil { // as the kernel names it
		t.Fatal(err)
	}
	manifests := filepath.Join(dir, "tools")
	if err := os.Mkdir(manifests, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "good.png", string(w.picture))
	var backends strings.Builder
	for _, d := range deeds {
		script := filepath.Join(dir, d.name+".sh")
		does := strings.NewReplacer("{data}", w.data, "{jobs}", w.jobs, "{dir}", dir, "{database}", strings.TrimPrefix(w.database, "sqlite://")).Replace(d.does)
		write(t, dir, d.name+".sh", "set -e\n"+does+"\n")
		fmt.Fprintf(&backends, "%s: {engine: exec, command: [/bin/sh, %q], parallel: 2, memory: 64MB, file_bytes: 4MB, folder_bytes: 8MB, environment: {GOOD: %q}}\n",
			d.name, script, filepath.Join(dir, "good.png"))
		write(t, manifests, d.name+".yaml", d.manifest())
	}
	write(t, dir, "backends.yaml", backends.String()+strings.ReplaceAll(more, "DIR", dir))
	for name, text := range beside {
		write(t, manifests, name+".yaml", text)
	}
	w.env = append([]string{
		"ATELIER_CATALOG_BUILTIN=false", "ATELIER_TOOLS=" + manifests, "ATELIER_BACKENDS=" + filepath.Join(dir, "backends.yaml"),
		"ATELIER_ENGINES_FOLDER=" + w.jobs, "ATELIER_SECRET=" + w.secret, "OTHER_API_KEY=sk-of-the-service",
		"ATELIER_LIMITS_CREATE_PER_MINUTE=10000", "ATELIER_LIMITS_CREATE_PER_HOUR=10000", "ATELIER_LIMITS_ACTIVE_RUNS=10000",
	}, env...)
	token := w.token("maker@example.com")
	w.grant("--email", "maker@example.com", w.tokens)
	w.node = w.serve()
	w.node.token = token
	w.client = connect(t, w.node.url, token)
	all := listTools(t, w.client)
	for _, one := range all {
		if w.tools[one.Name], err = w.client.Tools.Get(t.Context(), one.ID); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) != len(deeds)+len(beside) {
		t.Fatalf("tools = %v", all)
	}
	return w
}

func (d deed) manifest() string {
	output := "{type: IMG, mime_types: [image/png]}"
	if d.output == "TEXT" {
		output = "{type: TEXT, mime_types: [text/plain]}"
	}
	timeout := d.timeout
	if timeout == 0 {
		timeout = time.Minute
	}
	return drawing(d.name, d.name, output, timeout)
}

// drawing is a manifest.
func drawing(name, engine, output string, timeout time.Duration) string {
	return fmt.Sprintf("name: %q\nprice: {type: COST, tokens: %d}\nnum_results: {max: 4}\noutput: %s\nengine: {name: %s}\ntimeout: %v\nfields: [{key: prompt, type: PROMPT, label: Prompt}]\n",
		name, unit, output, engine, timeout)
}

// start starts a run of a tool.
func (w *workshop) start(tool string, results int) *client.Run {
	w.t.Helper()
	run, err := startRun(w.t.Context(), w.client, w.tools[tool], max(1, results), map[string]any{"prompt": "a red fox"})
	if err != nil {
		w.t.Fatalf("%s: %v", tool, err)
	}
	return run
}

// end waits for a run's end.
func (w *workshop) end(id string) *client.Run {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	run, err := w.client.Runs.Wait(ctx, id, client.Watch{})
	if err != nil {
		w.t.Fatal(err)
	}
	return run
}

// download gives a result's bytes.
func (w *workshop) download(o client.Output) []byte {
	w.t.Helper()
	b, err := readOutput(w.t.Context(), w.client, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// judge holds a run against what was to become of it, and gives what it cost.
func (w *workshop) judge(d deed, run *client.Run) int {
	w.t.Helper()
	status, code, message := client.RunStatusSucceeded, "", ""
	if d.code != "" {
		status = client.RunStatusFailed
	}
	if run.Error != nil {
		code, message = string(run.Error.Code), run.Error.Message
	}
	if run.Status != status || code != d.code || len(run.Outputs) != d.made || run.TokensCharged != int64(d.made*unit) {
		w.t.Errorf("%s: %s %s %q with %d results for %d tokens, want %s %s with %d", d.name, run.Status, code, message, len(run.Outputs), run.TokensCharged, status, d.code, d.made)
	}
	if !strings.Contains(message, d.says) || (d.code == "") != (message == "") {
		w.t.Errorf("%s: says %q, want %q", d.name, message, d.says)
	}
	if strings.Contains(message, "/") {
		w.t.Errorf("%s: says %q, and names a place", d.name, message)
	}
	for _, o := range run.Outputs {
		if b := w.download(o); bytes.Contains(b, []byte("root:")) {
			w.t.Errorf("%s: a result has a file of the machine: %q", d.name, b)
		} else if d.name == "environment" {
			w.private(string(b))
		}
	}
	return d.made * unit
}

// private fails the test where a program's environment has something of ours.
func (w *workshop) private(env string) {
	w.t.Helper()
	for _, secret := range []string{"ATELIER", w.secret, "sk-of-the-service", w.node.token, w.data, w.database} {
		if strings.Contains(env, secret) {
			w.t.Errorf("the program's environment has %q in it:\n%s", secret, env)
		}
	}
	for line := range strings.Lines(env) {
		name, _, _ := strings.Cut(line, "=")
		// The last are of the shell.
		if !slices.Contains([]string{"GOOD", "HOME", "LANG", "PATH", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"}, name) {
			w.t.Errorf("the program's environment has %q in it", line)
		}
	}
}

// tidy fails the test unless nothing is left of any run but what it made, and
// so much was paid.
func (w *workshop) tidy(paid int) {
	w.t.Helper()
	if left, err := os.ReadDir(w.jobs); err != nil || len(left) > 0 {
		w.t.Errorf("folders of jobs: %v, %v; want none", left, err)
	}
	if all := w.processes(); len(all) > 0 {
		w.t.Errorf("these processes are left: %v", all)
	}
	if tokens, held := w.node.balance(w.node.token, ""); tokens != float64(w.tokens-paid) || held != 0 {
		w.t.Errorf("balance = %v with %v held, want %d", tokens, held, w.tokens-paid)
	}
	w.keptFiles()
	w.check()
}

// processes are those that work in the folders of jobs, or were told of one,
// where the system says.
func (w *workshop) processes() (all []string) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, dir := range dirs {
		at, _ := os.Readlink(filepath.Join(dir, "cwd")) // "" for one that is gone
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if strings.HasPrefix(at, w.jobs+"/") || bytes.Contains(env, []byte("="+w.jobs+"/")) {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			all = append(all, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return all
}

// TestFaultsOfPrograms has programs do all that they should not: runs end,
// nothing is held or left behind, each is paid once and for what it gave, and
// the worker goes on. The long run has 20 rounds.
func TestFaultsOfPrograms(t *testing.T) {
	t.Parallel()
	rounds := 1
	if text := os.Getenv("ATELIER_TEST_FAULTS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t, engine, append(slices.Clone(faults), good), "", nil)
			paid := 0
			for range rounds {
				started := map[string]deed{}
				for _, d := range append(slices.Clone(faults), good) {
					started[w.start(d.name, d.wants).RequestID] = d
				}
				for id, d := range started {
					paid += w.judge(d, w.end(id))
				}
			}
			w.tidy(paid)
			// Whatever they did, the one after them is as the first.
			w.tidy(paid + w.judge(good, w.end(w.start(good.name, good.wants).RequestID)))
			w.node.stop()
		})
	}
}

// TestCuriousPrograms has programs look for what is not theirs while another job
// works beside them.
func TestCuriousPrograms(t *testing.T) {
	t.Parallel()
	if subprocess.SandboxName() == "" {
		t.Skip("this system has no sandbox")
	}
	spies := map[string]string{
		"data": `ls {data}`, "database": `cat {database}`, "backends": `cat {dir}/backends.yaml`, "beside": `cat {dir}/waits.sh`,
		"jobs": `ls {jobs}`, "job": `cat {jobs}/atelier-job-*/secret`, "environment": `cat /proc/$(ps -o ppid= -p $PPID 2>/dev/null || echo $PPID)/environ`,
		"every-environment": `for f in /proc/[0-9]*/environ; do cat $f 2>/dev/null || true; done | grep -q ATELIER_SECRET`,
		"write":             `echo x > {dir}/new`, "write-data": `echo x > {data}/new`, "write-tmp": `echo x > /tmp/atelier-curious`, "kill": `kill -0 $(pgrep -o atelier)`,
	}
	deeds := []deed{good, {name: "waits", does: `echo hunter2 > secret; while :; do sleep 1; done`}}
	for name, script := range spies {
		deeds = append(deeds, deed{name: name, does: "if (" + script + ") >stolen 2>&1; then mv stolen out/1.txt; else echo refused > out/1.txt; fi", output: "TEXT", made: 1})
	}
	w := newWorkshop(t, "sqlite", deeds, "", nil)
	waiting := w.start("waits", 1)
	watch.Until(t, "the other job", func() bool { left, _ := filepath.Glob(w.jobs + "/*/secret"); return len(left) == 1 })
	for name := range spies {
		run := w.end(w.start(name, 1).RequestID)
		if run.Status != "succeeded" || len(run.Outputs) != 1 {
			t.Errorf("%s: %+v %v", name, run.Status, run.Error)
			continue
		}
		if got := strings.TrimSpace(string(w.download(run.Outputs[0]))); got != "refused" {
			t.Errorf("%s was not refused: %.200q", name, got)
		}
	}
	w.judge(good, w.end(w.start("good", 2).RequestID))
	if _, err := w.client.Runs.Cancel(t.Context(), waiting.RequestID); err != nil {
		t.Fatal(err)
	}
	w.end(waiting.RequestID)
	if !strings.Contains(w.node.stderr.String(), subprocess.SandboxName()) {
		t.Error("the log does not say what keeps programs away")
	}
	w.node.stop()
}

// TestACancelledProgram cancels a run whose program does not want to end.
func TestACancelledProgram(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t, engine, []deed{{
				name: "stubborn", does: `trap '' TERM INT HUP; cp $GOOD out/1.png; echo '{"output":"out/1.png"}'; setsid sleep 300 & sleep 300`,
			}}, "", nil)
			run := w.start("stubborn", 2)
			watch.Until(t, "both sleep", func() bool { return strings.Count(strings.Join(w.processes(), "\n"), "sleep 300") == 2 })
			asked := time.Now()
			if _, err := w.client.Runs.Cancel(t.Context(), run.RequestID); err != nil {
				t.Fatal(err)
			}
			watch.Until(t, "all are gone", func() bool { return len(w.processes()) == 0 })
			watch.Took(t, "the end of the program", time.Since(asked), 3*time.Second)
			if run = w.end(run.RequestID); run.Status != "cancelled" || len(run.Outputs) != 0 || run.TokensCharged != 0 {
				t.Errorf("run = %+v", run)
			}
			watch.Until(t, "its folder is gone", func() bool { left, _ := os.ReadDir(w.jobs); return len(left) == 0 })
			w.tidy(0)
		})
	}
}

// TestWhatResultsSay looks at what is written into pictures.
func TestWhatResultsSay(t *testing.T) {
	t.Parallel()
	const (
		trained     = "digitalsourcetype/trainedAlgorithmicMedia"
		algorithmic = "digitalsourcetype/algorithmicMedia"
		backends    = `learned: {engine: exec, origin: trained, command: [/bin/sh, "DIR/good.sh"], environment: {GOOD: "DIR/good.png"}}` + "\n"
	)
	of := func(engine, origin string) string {
		return drawing(engine+"-"+origin, engine, "{type: IMG, mime_types: [image/png], origin: "+origin+"}", time.Minute)
	}
	beside := map[string]string{
		"learned":             drawing("learned", "learned", "{type: IMG, mime_types: [image/png]}", time.Minute),
		"learned-algorithmic": of("learned", "algorithmic"),
		"good-trained":        of("good", "trained"),
	}
	kinds := map[string]string{"good": algorithmic, "good-trained": trained, "learned": trained, "learned-algorithmic": algorithmic}
	for _, tt := range []struct {
		name        string
		env         []string
		says, asked bool
	}{
		{"as it comes", nil, true, false},
		{"nothing", []string{"ATELIER_ENGINES_PROVENANCE=false", "ATELIER_ENGINES_PROMPTS=true"}, false, false},
		{"what was asked for", []string{"ATELIER_ENGINES_PROMPTS=true"}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t, "sqlite", []deed{good}, backends, beside, tt.env...)
			for _, tool := range slices.Sorted(maps.Keys(kinds)) {
				run := w.end(w.start(tool, 1).RequestID)
				if run.Status != "succeeded" || len(run.Outputs) != 1 {
					t.Fatalf("%s: %+v %v", tool, run, run.Error)
				}
				b := w.download(run.Outputs[0])
				if same := bytes.Equal(b, w.picture); same == tt.says {
					t.Errorf("%s: the bytes are those of the program: %v", tool, same)
				}
				for text, want := range map[string]bool{
					kinds[tool]: tt.says, run.RequestID: tt.says, w.tools[tool].ID: tt.says, "a red fox": tt.asked,
					trained: tt.says && kinds[tool] == trained, algorithmic: tt.says && kinds[tool] == algorithmic,
				} {
					if has := bytes.Contains(b, []byte(text)); has != want {
						t.Errorf("%s: says %q: %v, want %v", tool, text, has, want)
					}
				}
			}
		})
	}
}
