package nodes

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/servers"
)

// previous lets TestPreviousRelease run, which builds a second program.
var previous = flag.Bool("previous", false, "run nodes of the previous release beside new ones")

// previousBinary builds the release that the file PREVIOUS_RELEASE names, a
// commit or a tag, and returns the path of its program and its name. The
// program is kept in the user's cache. It skips the test if the history of the
// repository does not have the release.
func previousBinary(t *testing.T) (binary, name string) {
	t.Helper()
	text, err := os.ReadFile("PREVIOUS_RELEASE")
	if err != nil {
		t.Fatal(err)
	}
	name = strings.TrimSpace(string(text))
	commit, err := exec.Command("git", "rev-parse", "--verify", "--quiet", name+"^{commit}").Output()
	if err != nil {
		t.Skipf("the history of this repository does not have the previous release %s: fetch it with git fetch --unshallow --tags", name)
	}
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, release, err := servers.Cache("previous-release")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	binary = filepath.Join(cache, "atelier-"+strings.TrimSpace(string(commit)))
	if _, err := os.Stat(binary); err == nil {
		return binary, name
	}

	source := t.TempDir()
	for _, script := range []string{
		`cd "$1" && git archive "$2" | tar -x -C "$3"`,
		`cd "$3" && go build -tags failpoint -buildvcs=false -o "$4.new" ./cmd/atelier && mv "$4.new" "$4"`,
	} {
		cmd := exec.Command("/bin/sh", "-ec", script, "sh", strings.TrimSpace(string(root)), name, source, binary)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build the previous release: %v: %s", err, out)
		}
	}
	return binary, name
}

// TestPreviousRelease upgrades an installation node by node under load, as
// operators do: nodes of the previous release go on beside the new one, which
// has migrated the schema. Both accept runs, both work on them, and no request
// fails.
func TestPreviousRelease(t *testing.T) {
	t.Parallel()
	if !*previous {
		t.Skip("building the previous release takes minutes: go test ./test/nodes -run TestPreviousRelease -args -previous")
	}
	binary, name := previousBinary(t)
	c := newClusterOf(t, binary, dbtest.Bare(t, "postgres"))
	oldAPI := c.newNode("old-api", "api", binary)
	oldWorker := c.newNode("old-worker", "worker", binary)
	newAPI := c.newNode("new-api", "api", "")
	newWorker := c.newNode("new-worker", "worker", "")
	token := c.newToken()
	c.commands.binary = "" // from here on, commands are those of the new release

	oldAPI.start(oldAPI.url())
	oldWorker.start(oldAPI.url())
	tool, hash := findTool(t, oldAPI.url(), token)
	onOld := newLoad(oldAPI.url(), token, tool, hash)
	onNew := newLoad(newAPI.url(), token, tool, hash)
	makeRuns := func(phase string, loads ...*load) {
		t.Helper()
		var group sync.WaitGroup
		for _, l := range loads {
			before := l.files.Load()
			group.Go(func() {
				for range 5 {
					if id, ok := l.create(t.Context(), 0); ok {
						l.pollRun(context.WithoutCancel(t.Context()), id)
					}
				}
				if got := l.files.Load() - before; got != 5 {
					l.fail("%s: %d of 5 runs at %s gave a file", phase, got, l.base)
				}
			})
		}
		group.Wait()
	}

	makeRuns("the previous release alone", onOld)
	newAPI.start(newAPI.url()) // migrates
	makeRuns("a new API node beside it, with the old worker", onOld, onNew)
	newWorker.start(newAPI.url())
	makeRuns("both kinds of nodes", onOld, onNew)
	oldWorker.stop()
	makeRuns("with the new worker", onOld, onNew)
	oldAPI.stop()
	makeRuns("the new release alone", onNew)

	t.Logf("previous release %s: %d runs created at its node and %d at the new one", name, onOld.creates.Load(), onNew.creates.Load())
	for _, text := range append(onOld.failures, onNew.failures...) {
		t.Error(text)
	}
	for _, n := range []*node{newAPI, newWorker} {
		n.stop()
	}
	c.check()
	if v := c.do("admin", "audit", "verify"); fmt.Sprint(v["problems"]) != "[]" {
		t.Errorf("audit = %v", v)
	}
}
