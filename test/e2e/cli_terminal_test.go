package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

// terminal is a real terminal: a session of tmux with a bash in it.
type terminal struct {
	t      *testing.T
	socket string
	home   string // folder of its person
}

// openTerminal starts a terminal of 100 columns whose shell has the given
// variables, the command atelier, and its completion.
func openTerminal(t *testing.T, env ...string) *terminal {
	t.Helper()
	needProgram(t, "tmux")
	binary, err := program.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(dir, "atelier")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "start", "PS1='$ '\nPATH="+dir+":$PATH\nsource <(atelier completion bash)\nclear\n")
	socket, err := os.MkdirTemp("", "tmux") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	r := &terminal{t: t, socket: filepath.Join(socket, "s"), home: t.TempDir()}
	cmd := exec.Command("tmux", "-S", r.socket, "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "24",
		"bash --noprofile --rcfile "+filepath.Join(dir, "start")+" -i")
	cmd.Dir = r.home
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "HOME=" + r.home, "TERM=xterm-256color", "LANG=C.UTF-8"}, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	t.Cleanup(func() {
		exec.Command("tmux", "-S", r.socket, "kill-server").Run()
		os.RemoveAll(socket)
	})
	r.await("the prompt", `^\$ $`)
	return r
}

// press sends keys, named as tmux names them.
func (r *terminal) press(keys ...string) { r.send(keys...) }

// write types a text.
func (r *terminal) write(text string) { r.send("-l", text) }

// enter types a command line and presses Enter.
func (r *terminal) enter(line string) {
	r.t.Helper()
	r.write(line)
	r.press("Enter")
}

func (r *terminal) send(args ...string) {
	r.t.Helper()
	if out, err := exec.Command("tmux", append([]string{"-S", r.socket, "send-keys"}, args...)...).CombinedOutput(); err != nil {
		r.t.Fatalf("send-keys: %v: %s", err, out)
	}
}

// screen returns what the terminal shows, without the spaces at the ends of
// lines, except behind a prompt.
func (r *terminal) screen() string {
	out, err := exec.Command("tmux", "-S", r.socket, "capture-pane", "-p").Output()
	if err != nil {
		r.t.Fatalf("capture-pane: %v", err)
	}
	text := regexp.MustCompile(`(?m)[ \t]+$`).ReplaceAllString(strings.TrimRight(string(out), "\n"), "")
	return regexp.MustCompile(`(?m)^\$$`).ReplaceAllString(text, "$ ") + "\n"
}

// await waits until a part of the screen matches, and returns the screen.
func (r *terminal) await(what, pattern string) string {
	r.t.Helper()
	match := regexp.MustCompile("(?m)" + pattern)
	var screen string
	isShown := false
	defer func() {
		if !isShown {
			r.t.Logf("the terminal shows:\n%s", screen)
		}
	}()
	watch.Until(r.t, what, func() bool {
		screen = r.screen()
		isShown = match.MatchString(screen)
		return isShown
	})
	return screen
}

// clear empties the screen.
func (r *terminal) clear() {
	r.t.Helper()
	r.enter("clear")
	r.await("an empty screen", `\A\$ \n\z`)
}

// slowTools gives a site two tools of programs: slow, which stops at 40 % until
// it is cancelled, and broken, which fails.
func (s *site) slowTools() {
	s.t.Helper()
	dir := s.t.TempDir()
	manifests := filepath.Join(dir, "tools")
	if err := os.Mkdir(manifests, 0o700); err != nil {
		s.t.Fatal(err)
	}
	write(s.t, dir, "backends.yaml", `
slow: {engine: exec, parallel: 4, command: [/bin/sh, -c, "echo '{\"progress\": 0.4}'; sleep 300"]}
broken: {engine: exec, command: [/bin/sh, -c, "echo '{\"error\": {\"message\": \"The paint is dry.\", \"code\": \"ENGINE_FAILED\"}}'"]}
`)
	for _, name := range []string{"slow", "broken"} {
		write(s.t, manifests, name+".yaml", "name: "+strings.ToUpper(name[:1])+name[1:]+
			"\nprice: {type: COST, tokens: 1}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: "+name+"}\n")
	}
	s.env = append(s.env, "ATELIER_BACKENDS="+filepath.Join(dir, "backends.yaml"), "ATELIER_TOOLS="+manifests)
}

// TestTerminal works with the command line in a real terminal: completion, a
// run, bars of runs side by side, and Ctrl-C, which asks and cancels.
func TestTerminal(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		s.slowTools()
		n := s.serve()
		token := s.token("anna@example.com")
		s.do("admin", "grant", "--email", "anna@example.com", "--tokens", "100")
		r := openTerminal(t, "ATELIER_SERVICE="+n.url, "ATELIER_TOKEN="+token)

		// Completion of a tool, a field and a value.
		r.write("atelier run grad")
		r.press("Tab")
		r.await("a tool completed", `^\$ atelier run gradient$`)
		r.write("sty")
		r.press("Tab")
		r.await("a field completed", `^\$ atelier run gradient style=$`)
		r.press("Tab", "Tab")
		screen := r.await("the values of a field", `^linear +radial +mesh\n\$ atelier run gradient style=$`)
		if s.database == "" {
			compareCapture(t, "completion", screen)
		}
		r.write("m")
		r.press("Tab")
		r.await("a value completed", `^\$ atelier run gradient style=mesh$`)
		r.press("C-u") // empties the line; Ctrl-C is a signal, which what is typed next can overtake
		r.await("an empty line", `^\$ \n\z`)
		r.clear()

		// A run, and its result.
		r.enter("atelier run gradient style=mesh size=256x256 seed=7")
		screen = r.await("a result", `(?s)gradient: succeeded, 1 token.*^gradient.png\n\$ $`)
		if s.database == "" {
			compareCapture(t, "run", strings.TrimSuffix(screen, "$ \n"))
		}
		r.clear()

		// Two runs side by side: bars, a question, and cancellation.
		r.enter("atelier run slow --repeat 2; echo status $?")
		r.await("two bars", `^slow 1  \[━+·+\]  40%  running.*\nslow 2  \[━+·+\]  40%  running`)
		r.press("C-c")
		r.await("the question", `^slow: 2 tokens for 2 runs.*\nCancel 2 runs\? \[Y/n\]$`)
		r.enter("n")
		r.await("the bars again", `(?s)Cancel 2 runs\?.*^slow 1  \[━+·+\]  40%  running`)
		r.press("C-c")
		r.await("the second question", `(?s)Cancel 2 runs\?.*Cancel 2 runs\?`)
		r.press("Enter")
		r.await("the end of both", `(?s)slow [12]: cancelled.*slow [12]: cancelled.*^status 130$`)
		r.clear()

		// A second Ctrl-C means yes.
		r.enter("atelier run slow; echo status $?")
		r.await("a bar", `^slow  \[━+·+\]  40%  running`)
		r.press("C-c")
		r.await("the question about one", `^Cancel the run\? \[Y/n\]`)
		r.press("C-c")
		r.await("the end of one", `(?s)slow: cancelled.*^status 130$`)

		if got := countRuns(t, n.url, token); got["cancelled"] != 3 || got["pending"] != 0 {
			t.Errorf("runs by status = %v, want 3 that are cancelled", got)
		}
	})
}

// TestTerminalBars takes the capture of several runs side by side: one has
// succeeded, one runs, the others wait.
func TestTerminalBars(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.oneWorker = true
	n := s.serve()
	token := s.token("anna@example.com")
	s.do("admin", "grant", "--email", "anna@example.com", "--tokens", "100")
	r := openTerminal(t, "ATELIER_SERVICE="+n.url, "ATELIER_TOKEN="+token)
	r.enter(`atelier run sketch prompt="red fox" prompt="owl at night" style=flat style=3d --results 3`)
	screen := r.await("runs in every state", `(?s)sketch \d: succeeded, 3 tokens\n(.*\n)?sketch \d  \[━+·+\] +[0-9]+%  running, about`)
	compareCapture(t, "bars", screen)
	screen = r.await("all results", `^sketch-1-1.png\n(sketch-.*\n){10}sketch-4-3.png\n\$ $`)
	if n := strings.Count(screen, "succeeded"); n != 4 {
		t.Errorf("%d runs succeeded:\n%s", n, screen)
	}
}
