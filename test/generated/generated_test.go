// Package generated holds the OpenAPI document to the linters and code
// generators that people use: redocly and spectral find nothing wrong with it,
// and the clients that openapi-typescript, openapi-python-client and
// oapi-codegen make from it run tools at the real program.
//
// The linters and generators are installed as package-lock.json and
// requirements.txt say on first use and kept in the user's cache. Where they
// cannot be had the tests are skipped; with CI set they fail instead.
// ATELIER_TEST_GENERATED=skip skips them anywhere.
package generated

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/testkit/servers"
	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

func TestMain(m *testing.M) { program.Main(m) }

const skipVariable = "ATELIER_TEST_GENERATED"

// patience is how long a linter, a generator or a client may take on a machine
// that is busy with other tests.
const patience = 5 * time.Minute

// source is this folder.
var source = sync.OnceValues(func() (string, error) { return servers.Source(context.Background(), "generated") })

// node is where Node.js and its packages are.
type node struct{ program, packages string }

var installNode = sync.OnceValues(func() (node, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	source, err := source()
	if err != nil {
		return node{}, err
	}
	program, packages, err := servers.Node(ctx, source, "generated")
	if err != nil {
		return node{}, fmt.Errorf("redocly, spectral and openapi-typescript: %w", err)
	}
	return node{program, packages}, nil
})

// installPython gives the folder of Python's programs.
var installPython = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	source, err := source()
	if err != nil {
		return "", err
	}
	bin, err := servers.Python(ctx, source, "generated")
	if err != nil {
		return "", fmt.Errorf("openapi-python-client: %w", err)
	}
	return bin, nil
})

// command runs a program in a folder to its end and gives what it printed.
func command(t *testing.T, dir string, environment []string, name string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// copyFiles copies files of this folder.
func copyFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	source, err := source()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// nodeDir makes a folder from which Node.js finds the packages, with files of
// this folder and the document in it.
func (n node) nodeDir(t *testing.T, document []byte, names ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp(n.packages, ".run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	copyFiles(t, dir, names...)
	if err := os.WriteFile(filepath.Join(dir, "openapi.json"), document, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run runs a program of a package with Node.js.
func (n node) run(t *testing.T, dir, program string, arguments ...string) string {
	t.Helper()
	quiet := []string{"REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1"}
	return command(t, dir, quiet, n.program, append([]string{filepath.Join(n.packages, "node_modules", program)}, arguments...)...)
}

// service is a running program with a person who can pay for runs.
type service struct {
	url, token string
	document   []byte
}

// startService starts the program. It is killed with the test.
func startService(t *testing.T) service {
	t.Helper()
	binary, err := program.Binary()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	atelier := func(arguments ...string) *exec.Cmd {
		cmd := exec.Command(binary, append(arguments, "--data", data)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ATELIER_METRICS_LISTEN=off", "ATELIER_SHUTDOWN_DELAY=0s"}
		return cmd
	}

	serve := atelier("serve", "--listen", "127.0.0.1:0")
	var log watch.Log
	serve.Stderr = &log
	stdout, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		serve.Process.Kill()
		serve.Wait()
		if t.Failed() {
			t.Logf("the server's log:\n%s", &log)
		}
	})
	var s service
	for lines := bufio.NewScanner(stdout); s.url == "" && lines.Scan(); {
		s.url, _ = strings.CutPrefix(lines.Text(), "atelier: ready ")
		if !strings.HasPrefix(s.url, "http") {
			s.url = ""
		}
	}
	if s.url == "" {
		t.Fatal("the server ended before it was ready")
	}
	go io.Copy(io.Discard, stdout)

	const email = "anna@example.com"
	for _, arguments := range [][]string{
		{"admin", "person", "create", "--email", email, "--password", "a fox in the snow", "--verified"},
		{"admin", "grant", "--email", email, "--tokens", "100"},
	} {
		if out, err := atelier(arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", arguments, err, out)
		}
	}
	out, err := atelier("admin", "token", "create", "--email", email, "--name", "walk", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Token string }
	if err := json.Unmarshal(out, &made); err != nil {
		t.Fatal(err)
	}
	s.token = made.Token

	res, err := http.Get(s.url + "/api/v2/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if s.document, err = io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("openapi.json = %s, %v", res.Status, err)
	}
	return s
}

func TestGenerated(t *testing.T) {
	t.Parallel()
	s := startService(t)

	t.Run("redocly", func(t *testing.T) {
		t.Parallel()
		n := servers.Need(t, "redocly", skipVariable, installNode)
		dir := n.nodeDir(t, s.document)
		out := n.run(t, dir, "@redocly/cli/bin/cli.js", "lint", "--format", "json", "openapi.json")
		var found struct{ Problems []any }
		if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):strings.LastIndex(out, "}")+1]), &found); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if len(found.Problems) > 0 {
			t.Errorf("redocly finds %s", out)
		}
	})

	t.Run("spectral", func(t *testing.T) {
		t.Parallel()
		n := servers.Need(t, "spectral", skipVariable, installNode)
		dir := n.nodeDir(t, s.document, "spectral.yaml")
		n.run(t, dir, "@stoplight/spectral-cli/dist/index.js", "lint", "--quiet", "--fail-severity", "hint", "--ruleset", "spectral.yaml", "openapi.json")
	})

	t.Run("openapi-typescript", func(t *testing.T) {
		t.Parallel()
		n := servers.Need(t, "openapi-typescript", skipVariable, installNode)
		dir := n.nodeDir(t, s.document, "walk.ts", "tsconfig.json")
		n.run(t, dir, "openapi-typescript/bin/cli.js", "openapi.json", "--output", "schema.d.ts")
		n.run(t, dir, "typescript-native/bin/tsc", "--project", ".")
		command(t, dir, nil, n.program, "walk.js", s.url, s.token)
	})

	t.Run("openapi-python-client", func(t *testing.T) {
		t.Parallel()
		bin := servers.Need(t, "openapi-python-client", skipVariable, installPython)
		dir := t.TempDir()
		copyFiles(t, dir, "walk.py", "python.yaml")
		if err := os.WriteFile(filepath.Join(dir, "openapi.json"), s.document, 0o600); err != nil {
			t.Fatal(err)
		}
		path := []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "PYTHONPATH=" + dir}
		out := command(t, dir, path, filepath.Join(bin, "python"), "-m", "openapi_python_client", "generate", "--path", "openapi.json",
			"--output-path", "atelier_client", "--meta", "none", "--config", "python.yaml", "--fail-on-warning")
		if strings.Contains(out, "Warning") {
			t.Errorf("openapi-python-client warns:\n%s", out)
		}
		command(t, dir, path, filepath.Join(bin, "python"), "walk.py", s.url, s.token)
	})

	t.Run("oapi-codegen", func(t *testing.T) {
		t.Parallel()
		if os.Getenv(skipVariable) == "skip" {
			t.Skipf("oapi-codegen is switched off by %s=skip", skipVariable)
		}
		source, err := source()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		copyFiles(t, dir, "go/go.mod", "go/go.sum", "go/main.go", "go/oapi.yaml")
		if err := os.WriteFile(filepath.Join(dir, "openapi.json"), s.document, 0o600); err != nil {
			t.Fatal(err)
		}
		tools := filepath.Join(source, "..", "..", "build", "tools", "go.mod")
		generator := filepath.Join(dir, "oapi-codegen")
		command(t, source, nil, "go", "build", "-modfile="+tools, "-o", generator, "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen")
		command(t, dir, nil, generator, "-config", "oapi.yaml", "openapi.json")
		command(t, dir, nil, "go", "build", "-gcflags=-N -l", "-o", "walk", ".") // it is compiled to be checked
		command(t, dir, nil, filepath.Join(dir, "walk"), s.url, s.token)
	})
}
