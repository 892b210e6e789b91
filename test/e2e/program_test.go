// Package e2e starts the program and drives it from outside, as its users do.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/api/apitest"
	"atelier/test/program"
)

func TestMain(m *testing.M) { program.Main(m) }

// site is one installation: a data folder and a database.
type site struct {
	t        *testing.T
	data     string
	database string
	env      []string
	files    int // its servers may have open; 0 for as many as we
	made     bool

	// These are of an installation of several nodes.
	bucket    *blobtest.Bucket
	nodesEnv  []string
	oneWorker bool // for tests that fill all places of an engine
}

// each runs fn on a fresh installation with either database.
func each(t *testing.T, fn func(t *testing.T, s *site)) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if engine == "postgres" && s.database == "" {
				s.database = dbtest.Bare(t, engine)
			}
			fn(t, s)
		})
	}
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, data: filepath.Join(t.TempDir(), "data")}
	if *onNodes {
		s.spread()
	}
	return s
}

func (s *site) command(ctx context.Context, args ...string) *exec.Cmd {
	s.t.Helper()
	return s.commandIn(ctx, s.data, args...)
}

// commandIn is command with another data folder.
func (s *site) commandIn(ctx context.Context, data string, args ...string) *exec.Cmd {
	s.t.Helper()
	path, err := program.Binary()
	if err != nil {
		s.t.Fatal(err)
	}
	if args[0] != "generate" { // which talks to a service, wherever its data is
		args = append(args, "--data", data)
		if s.database != "" {
			args = append(args, "--database", s.database)
		}
	}
	cmd := exec.CommandContext(ctx, path, args...)
	if s.files > 0 {
		limit := fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, s.files)
		cmd = exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", limit, path}, args...)...)
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.t.TempDir(), "ATELIER_METRICS_LISTEN=off", "ATELIER_CATALOG_REFRESH=50ms", "ATELIER_SHUTDOWN_DELAY=200ms"}
	cmd.Env = append(cmd.Env, s.nodesEnv...)
	cmd.Env = append(cmd.Env, s.env...)
	return cmd
}

// do runs a command to its end and decodes the JSON it prints.
func (s *site) do(args ...string) map[string]any {
	s.t.Helper()
	v, err := s.try(args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// try is do for commands that may fail. The first one about the people of a site
// that no server has made yet makes it.
func (s *site) try(args ...string) (v map[string]any, err error) {
	s.t.Helper()
	if args[0] == "admin" && !s.made {
		s.made = true
		s.do("migrate")
	}
	cmd := s.command(s.t.Context(), append(args, "--json")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%v: %w: %s%s", args, err, stderr.Bytes(), stdout.Bytes())
	}
	return v, json.Unmarshal(stdout.Bytes(), &v)
}

// token makes a person and gives a token of theirs.
func (s *site) token(email string) string {
	s.t.Helper()
	s.do("admin", "person", "create", "--email", email, "--password", password, "--verified")
	return s.do("admin", "token", "create", "--email", email, "--name", "test")["token"].(string)
}

// check fails the test when an invariant is broken.
func (s *site) check() {
	s.t.Helper()
	if v := s.do("check"); fmt.Sprint(v["violations"]) != "[]" {
		s.t.Errorf("violations: %v", v)
	}
}

// node is a running server, or several that are behind a proxy.
type node struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	token  string
	stderr *watch.Log
	exited chan struct{}
	err    error // after exited

	members  []*node // of several: the API nodes, then the workers; cmd is nil
	stopping *atomic.Bool
	isMember bool
}

// start starts a server and does not wait for it. It is killed with the test.
func (s *site) start(args ...string) (*node, *bufio.Scanner) {
	s.t.Helper()
	return s.launch(s.command(context.Background(), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...), &watch.Log{})
}

// launch starts the command of a server.
func (s *site) launch(cmd *exec.Cmd, stderr *watch.Log) (*node, *bufio.Scanner) {
	s.t.Helper()
	n := &node{t: s.t, cmd: cmd, stderr: stderr, exited: make(chan struct{})}
	stdout, err := n.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	n.cmd.Stderr = n.stderr
	if err := n.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.made = true
	s.t.Cleanup(func() {
		n.cmd.Process.Kill()
		<-n.exited
		if s.t.Failed() && !n.isMember {
			s.t.Logf("stderr of the server:\n%s", n.stderr)
		}
	})
	lines := bufio.NewScanner(stdout)
	return n, lines
}

// wait reaps the process once its output has been read to the end.
func (n *node) wait(lines *bufio.Scanner) {
	for lines.Scan() {
	}
	n.err = n.cmd.Wait()
	close(n.exited)
}

// serve starts a server and waits until it is ready. With -nodes it starts
// several, unless the arguments say what the roles are.
func (s *site) serve(args ...string) *node {
	s.t.Helper()
	if s.bucket != nil && !slices.Contains(args, "--roles") {
		return s.serveNodes(args...)
	}
	return s.serveOne(args...)
}

// serveOne starts one process and waits until it is ready.
func (s *site) serveOne(args ...string) *node {
	s.t.Helper()
	n, lines := s.start(args...)
	s.awaitReady(n, lines)
	return n
}

// serveWith starts a server through another program, which gets the command
// line of the server after its own arguments.
func (s *site) serveWith(through ...string) *node {
	s.t.Helper()
	cmd := s.command(context.Background(), "serve", "--listen", "127.0.0.1:0")
	cmd.Args = append(slices.Clone(through), cmd.Args...)
	path, err := exec.LookPath(through[0])
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Path = path
	n, lines := s.launch(cmd, &watch.Log{})
	s.awaitReady(n, lines)
	return n
}

func (s *site) awaitReady(n *node, lines *bufio.Scanner) {
	s.t.Helper()
	n.url = s.awaitStart(n, n.awaitURL(lines))
}

// awaitURL reads the output of a server to its end. The channel gets the address
// once the server is ready.
func (n *node) awaitURL(lines *bufio.Scanner) <-chan string {
	ready := make(chan string, 1)
	go func() {
		for lines.Scan() {
			if url, ok := strings.CutPrefix(lines.Text(), "atelier: ready "); ok {
				ready <- url
				break
			}
		}
		n.wait(lines)
	}()
	return ready
}

// awaitStart waits until a server is ready and returns its address.
func (s *site) awaitStart(n *node, ready <-chan string) string {
	s.t.Helper()
	select {
	case url := <-ready:
		return url
	case <-n.exited:
		s.t.Fatalf("the server ended: %v\n%s", n.err, n.stderr)
	case <-time.After(3 * time.Minute):
		s.t.Fatalf("the server is not ready\n%s", n.stderr)
	}
	return ""
}

// stop ends the server in order and expects exit status 0.
func (n *node) stop() {
	n.t.Helper()
	if len(n.members) > 0 {
		n.stopAll()
		return
	}
	n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.exited:
	case <-time.After(time.Minute):
		n.t.Fatal("the server does not end within a minute")
	}
	if n.err != nil {
		n.t.Errorf("the server ended with %v\n%s", n.err, n.stderr)
	}
}

// kill ends the server as a power cut would.
func (n *node) kill() {
	for _, one := range n.processes() {
		one.cmd.Process.Kill()
	}
	<-n.exited
}

// killed tells whether the process died by SIGKILL.
func killed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

type answer struct {
	*http.Response
	body []byte
}

// get asks the server; every answer is held against the OpenAPI document.
func (n *node) get(path string, header ...string) answer {
	n.t.Helper()
	return n.call("GET", path, "", header...)
}

// call is get with any method, and a JSON body where it is not "".
func (n *node) call(method, path, body string, header ...string) answer {
	n.t.Helper()
	r, err := http.NewRequest(method, n.url+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if n.token != "" {
		r.Header.Set("Authorization", "Bearer "+n.token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := apitest.Client(n.t).Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return answer{res, text}
}

// want decodes an answer that must have this status.
func (a answer) want(t *testing.T, status int) (v map[string]any) {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("%s %s = %d %s, want %d", a.Request.Method, a.Request.URL.Path, a.StatusCode, a.body, status)
	}
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &v); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// code is the code of an error.
func (a answer) code() string {
	var v struct{ Error struct{ Code string } }
	if json.Unmarshal(a.body, &v) != nil {
		return ""
	}
	return v.Error.Code
}

// json asks for a success and decodes it.
func (n *node) json(path string) map[string]any {
	n.t.Helper()
	return n.get(path).want(n.t, 200)
}

// tools pages through the list and gives id by name. between runs after each
// page.
func (n *node) tools(query string, between func(page int)) map[string]string {
	n.t.Helper()
	all := map[string]string{}
	next := ""
	for page := 0; ; page++ {
		list := n.json("/api/v2/tools?" + query + next)
		for _, one := range list["data"].([]any) {
			tool := one.(map[string]any)
			name := tool["name"].(string)
			if _, twice := all[name]; twice {
				n.t.Errorf("%s is listed twice", name)
			}
			all[name] = tool["id"].(string)
		}
		if list["has_more"] == false {
			return all
		}
		next = "&cursor=" + list["next_cursor"].(string)
		if between != nil {
			between(page)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	// Whole at once, as an editor or a deployment does it.
	tmp := filepath.Join(dir, "."+name)
	if err := errors.Join(os.WriteFile(tmp, []byte(text), 0o600), os.Rename(tmp, filepath.Join(dir, name))); err != nil {
		t.Fatal(err)
	}
}

func manifest(name string) string {
	return fmt.Sprintf("name: %q\nprice: {type: FREE}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n", name)
}
