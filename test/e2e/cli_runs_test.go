package e2e

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"atelier/client"
	"atelier/internal/testkit/watch"
)

// countRuns returns the number of a person's runs by their status.
func countRuns(t *testing.T, url, token string) map[client.RunStatus]int {
	t.Helper()
	count := map[client.RunStatus]int{}
	for run, err := range connect(t, url, token).Runs.All(t.Context(), client.RunsListParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		count[run.Status]++
	}
	return count
}

// commandRun is a client command that was started.
type commandRun struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr *watch.Log
}

// startCommand starts a client command without a terminal.
func startCommand(t *testing.T, n *node, args ...string) *commandRun {
	t.Helper()
	r := &commandRun{t: t, cmd: clientCommand(t, t.TempDir(), args...), stdout: &watch.Log{}, stderr: &watch.Log{}}
	r.cmd.Env = append(r.cmd.Env, "ATELIER_SERVICE="+n.url, "ATELIER_TOKEN="+n.token)
	r.cmd.Dir = t.TempDir()
	r.cmd.Stdout = r.stdout
	r.cmd.Stderr = r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// await waits until standard error matches.
func (r *commandRun) await(pattern string) {
	r.t.Helper()
	match := regexp.MustCompile(pattern)
	watch.Until(r.t, pattern, func() bool { return match.MatchString(r.stderr.String()) })
}

// end waits for the end, and fails the test unless the status is the expected
// one and standard error has a text.
func (r *commandRun) end(status int, text string) {
	r.t.Helper()
	err := r.cmd.Wait()
	got := 0
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		got = failed.ExitCode()
	} else if err != nil {
		r.t.Fatal(err)
	}
	if got != status || !strings.Contains(r.stderr.String(), text) {
		r.t.Errorf("%v: status %d, want %d with %q: %s%s", r.cmd.Args[1:], got, status, text, r.stdout, r.stderr)
	}
	if strings.Contains(r.stderr.String()+r.stdout.String(), "\x1b") {
		r.t.Errorf("%v: control sequences where there is no terminal: %q", r.cmd.Args[1:], r.stderr)
	}
}

// TestExitStatuses ends runs in every way that is not success, where the command
// line has no terminal.
func TestExitStatuses(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		s.slowTools()
		n := s.serve()
		n.token = s.token("anna@example.com")
		s.do("admin", "grant", "--email", "anna@example.com", "--tokens", "2")

		failed := startCommand(t, n, "run", "broken")
		failed.end(8, "atelier: ENGINE_FAILED: The paint is dry.")
		failed = startCommand(t, n, "run", "broken", "--json")
		failed.end(8, "The paint is dry.")
		if text := failed.stdout.String(); !strings.Contains(text, `"error":{"code":"ENGINE_FAILED","message":"The paint is dry."}`) {
			t.Errorf("JSON of a failed run: %s", text)
		}

		// Another process cancels the run.
		elsewhere := startCommand(t, n, "run", "slow")
		elsewhere.await(`slow: running 25%`)
		list := startCommand(t, n, "runs", "--status", "pending", "--select", ".data[].request_id")
		list.end(0, "")
		id := strings.TrimSpace(list.stdout.String())
		cancelled := startCommand(t, n, "watch", id)
		cancelled.await(id + `: running`)
		startCommand(t, n, "runs", "cancel", id).end(0, "")
		elsewhere.end(9, "cancelled")
		cancelled.end(9, "cancelled")
		startCommand(t, n, "watch", id).end(9, "cancelled")

		// Without a terminal a signal cancels at once.
		for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			interrupted := startCommand(t, n, "run", "slow", "--repeat", "2")
			interrupted.await(`slow 1: running 25%`)
			interrupted.await(`slow 2: running 25%`)
			if err := interrupted.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			interrupted.end(130, "cancelling…")
		}
		if got := countRuns(t, n.url, n.token); got[client.RunStatusCancelled] != 5 || got[client.RunStatusFailed] != 2 || len(got) != 2 {
			t.Errorf("runs by status = %v, want 5 cancelled and 2 failed", got)
		}

		// Nothing was paid for runs that did not succeed; the account has two
		// tokens still, which are not enough for three runs.
		startCommand(t, n, "run", "gradient", "size=64x64", "--repeat", "2").end(0, "gradient 2: succeeded, 1 token")
		startCommand(t, n, "run", "gradient", "size=64x64").end(4, "gradient cannot run now")
		s.check()
	})
}
