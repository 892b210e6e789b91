package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"atelier/internal/testkit/servers"
	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

// reader follows a document in a folder of their own, which has bin/atelier.
type reader struct {
	t      *testing.T
	folder string
	env    []string
	blocks []string // the document's shell commands that are still to come
	url    string   // the service, which documents call http://localhost:8080
}

// openDocument reads docs/name. It skips the test where a program that the
// document uses is missing.
func openDocument(t *testing.T, name string, programs ...string) *reader {
	t.Helper()
	for _, p := range programs {
		needProgram(t, p)
	}
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, folder: t.TempDir()}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		r.blocks = append(r.blocks, block[1])
	}

	binary, err := program.Binary()
	if err == nil {
		err = os.Mkdir(filepath.Join(r.folder, "bin"), 0o700)
	}
	if err == nil {
		err = os.Symlink(binary, filepath.Join(r.folder, "bin/atelier"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// needProgram returns the path of a program that the documentation uses, and
// skips the test where it is missing.
func needProgram(t *testing.T, name string) string {
	t.Helper()
	return servers.Need(t, name, "ATELIER_TEST_DOCS", func() (string, error) {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s %w: it is not installed (Debian: apt-get install %[1]s)", name, servers.ErrMissing)
		}
		return path, nil
	})
}

// site is the installation in the reader's folder.
func (r *reader) site(env ...string) *site {
	s := newSite(r.t)
	s.data = filepath.Join(r.folder, "data")
	s.env = env
	return s
}

// use lets the next commands speak to n with a token and something to pay with.
func (r *reader) use(s *site, n *node) {
	r.t.Helper()
	token := s.token("reader@example.com")
	s.do("admin", "grant", "--email", "reader@example.com", "--tokens", "100")
	r.url = n.url
	r.env = append(r.env, "ATELIER_TOKEN="+token, "ATELIER_SERVICE="+n.url)
}

// next gives the next block, which must contain part.
func (r *reader) next(part string) string {
	r.t.Helper()
	if len(r.blocks) == 0 || !strings.Contains(r.blocks[0], part) {
		r.t.Fatalf("the document has no commands with %q here: %q", part, r.blocks)
	}
	block := r.blocks[0]
	r.blocks = r.blocks[1:]
	return block
}

// run runs the next block, which must contain part, and gives what it prints.
func (r *reader) run(part string) string {
	r.t.Helper()
	script := r.next(part)
	if r.url != "" {
		script = strings.ReplaceAll(script, "http://localhost:8080", r.url)
	}
	cmd := exec.CommandContext(r.t.Context(), "sh", "-eu", "-c", script)
	cmd.Dir = r.folder
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.folder}, r.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	// What a block leaves running in the background ends with the test. Its output
	// is a file, because a pipe would keep us waiting for it.
	output, err := os.CreateTemp(r.t.TempDir(), "output")
	if err != nil {
		r.t.Fatal(err)
	}
	defer output.Close()
	cmd.Stdout = output
	cmd.Stderr = output
	err = cmd.Run()
	if cmd.Process != nil {
		r.t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	}
	text, _ := os.ReadFile(output.Name())
	if err != nil {
		r.t.Fatalf("%s\n%v: %s", script, err, text)
	}
	return string(text)
}

func TestQuickStart(t *testing.T) {
	t.Parallel()
	r := openDocument(t, "quickstart.md")
	r.next("make run") // TestFirstHour opens the set-up link
	s := r.site()
	n := s.serve()
	r.use(s, n)
	r.next("bin/atelier login")
	r.next("export ATELIER_TOKEN") // r.use has done it

	r.run("run sketch") // TestExamples runs the rest of the page
	if len(r.blocks) > 0 {
		t.Errorf("nobody runs %q", r.blocks)
	}
	s.check()
}

func TestToolDocument(t *testing.T) {
	t.Parallel()
	r := openDocument(t, "tools.md")
	if out := r.run("tools lint my-tools"); !strings.Contains(out, "1 own tool, ") {
		t.Errorf("lint says %q", out)
	}
	r.next("serve --tools my-tools")
	s := r.site()
	n := s.serve("--tools", filepath.Join(r.folder, "my-tools"))
	r.use(s, n)

	if out := r.run("tools show banner"); !strings.Contains(out, "any width and height from 16 to 2048 pixels") || !strings.Contains(out, "banner-2.png") {
		t.Errorf("the commands print %q", out)
	}
	if len(r.blocks) > 0 {
		t.Errorf("nobody runs %q", r.blocks)
	}
}

func TestExecDocument(t *testing.T) {
	t.Parallel()
	r := openDocument(t, "exec.md", "python3")
	r.run("square.py")
	r.next("serve --backends backends.yaml --tools my-tools")
	s := r.site()
	n := s.serve("--backends", filepath.Join(r.folder, "backends.yaml"), "--tools", filepath.Join(r.folder, "my-tools"))
	r.use(s, n)

	r.run("run square")
	if _, err := os.Stat(filepath.Join(r.folder, "out/square.png")); err != nil {
		t.Error(err)
	}
	if len(r.blocks) > 0 {
		t.Errorf("nobody runs %q", r.blocks)
	}
}

func TestWebhookDocument(t *testing.T) {
	t.Parallel()
	r := openDocument(t, "webhooks.md", "curl", "jq", "openssl", "python3")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	for i := range r.blocks {
		r.blocks[i] = strings.ReplaceAll(r.blocks[i], "8443", port)
	}
	r.run("receiver.py")
	settings := strings.Fields(r.next("bin/atelier serve"))
	for i, one := range settings {
		if name, file, ok := strings.Cut(one, "="); ok && name == "SSL_CERT_FILE" {
			settings[i] = name + "=" + filepath.Join(r.folder, file)
		}
	}
	s := r.site(settings[:2]...)
	n := s.serve()
	r.use(s, n)

	r.run("webhook_url")
	watch.Until(t, "the event", func() bool {
		text, _ := os.ReadFile(filepath.Join(r.folder, "received.txt"))
		return strings.HasPrefix(string(text), "generation.succeeded ")
	})
	if len(r.blocks) > 0 {
		t.Errorf("nobody runs %q", r.blocks)
	}
}
