package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/test/visitor"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"atelier": main, "approver": approveLogin})
}

// TestScripts runs the command lines of testdata/script. UPDATE=1 rewrites what
// they expect.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:             filepath.Join("testdata", "script"),
		UpdateScripts:   os.Getenv("UPDATE") != "",
		ContinueOnError: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"comfyui":   func(ts *testscript.TestScript, _ bool, args []string) { startComfyUI(t, ts, args[0]) },
			"id":        keepID,
			"pick":      pickValue,
			"pty":       runInTerminal,
			"revoke":    revokeValue,
			"service":   startService,
			"toolid":    keepToolID,
			"unchanged": runUnchanged,
		},
	})
}

// TestEveryCommandHasScript finds commands that no script runs. A group's default
// command may be run by the group's name.
func TestEveryCommandHasScript(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, file := range files {
		script, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(script.Comment)
	}
	for _, leaf := range commandLine(t).Leaves(false) {
		path := commandPath(leaf)
		if path == "serve" { // startService runs it
			continue
		}
		names := regexp.QuoteMeta(path)
		if group := leaf.Parent; group.DefaultCmd == leaf {
			names += "|" + regexp.QuoteMeta(commandPath(group))
		}
		if !regexp.MustCompile(`(?m)\batelier (` + names + `)( |$|['&])`).MatchString(lines.String()) {
			t.Errorf("no script runs atelier %s", path)
		}
	}
}

// startComfyUI starts a stand-in for a ComfyUI server and writes a file of
// model servers that names it studio: comfyui FILE.
func startComfyUI(t *testing.T, ts *testscript.TestScript, file string) {
	t.Helper()
	s := comfyuitest.Start(t, comfyuitest.Options{})
	ts.Check(os.WriteFile(ts.MkAbs(file), fmt.Appendf(nil, "studio: {engine: comfyui, url: %q}\n", s.URL), 0o600))
}

// keepID keeps the id that the last command printed in a variable: id NAME.
func keepID(ts *testscript.TestScript, _ bool, args []string) {
	var made struct{ ID string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &made))
	ts.Setenv(args[0], made.ID)
}

// keepToolID keeps the id of a tool in the list that the last command printed:
// toolid SLUG NAME.
func keepToolID(ts *testscript.TestScript, _ bool, args []string) {
	var list struct {
		Tools []struct{ ID, Slug string }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
	for _, t := range list.Tools {
		if t.Slug == args[0] {
			ts.Setenv(args[1], t.ID)
		}
	}
}

// startService serves the installation in the folder d, which has the person
// anna@example.com with 1000 tokens, and sets URL to its address: service [VARIABLE=VALUE…].
func startService(ts *testscript.TestScript, _ bool, settings []string) {
	run := func(args ...string) {
		ts.Check(ts.Exec("atelier", append(args, "--data", "d")...))
	}
	run("migrate")
	run("admin", "person", "create", "--email", "anna@example.com", "--password", password, "--verified")
	run("admin", "grant", "--email", "anna@example.com", "--tokens", "1000")
	cmd := exec.Command(lookPath(ts, "atelier"), "serve", "--data", "d", "--listen", "127.0.0.1:0")
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "ATELIER_METRICS_LISTEN=off", "ATELIER_DEVICE_INTERVAL=1s", "ATELIER_SHUTDOWN_DELAY=0s", "ATELIER_LIMITS_CREATE_PER_MINUTE=1000", "PATH="+ts.Getenv("PATH"))
	cmd.Env = append(cmd.Env, settings...)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	log, err := os.Create(ts.MkAbs("service.log"))
	ts.Check(err)
	cmd.Stderr = log
	ts.Check(cmd.Start())
	ts.Defer(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
		log.Close()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "atelier: ready "); ok {
			ts.Setenv("URL", address)
			go io.Copy(io.Discard, out)
			return
		}
	}
	ts.Fatalf("the service did not start:\n%s", ts.ReadFile("service.log"))
}

const password = "correct horse battery"

// lookPath finds a program in the PATH of a script.
func lookPath(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	ts.Fatalf("%s is not installed", name)
	return ""
}

// approveLogin is a browser in which anna approves a sign-in: approver ADDRESS.
func approveLogin() {
	address, err := url.Parse(os.Args[1])
	if err == nil {
		anna := visitor.New(address.Scheme + "://" + address.Host)
		if err = anna.SignIn("anna@example.com", password); err == nil {
			err = anna.Decide(os.Args[1], os.Getenv("REFUSE") == "")
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pickValue keeps the last line that the last command printed in a variable:
// pick NAME.
func pickValue(ts *testscript.TestScript, _ bool, args []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	ts.Setenv(args[0], lines[len(lines)-1])
}

// runInTerminal runs a command in a terminal of 100 columns, and keeps what the
// terminal got in a file: [!] pty FILE COMMAND…
func runInTerminal(ts *testscript.TestScript, neg bool, args []string) {
	script := lookPath(ts, "script")
	quoted := "stty cols 100 rows 30; exec"
	for _, one := range args[1:] {
		quoted += " '" + strings.ReplaceAll(one, "'", `'\''`) + "'"
	}
	err := ts.Exec(script, "-q", "-e", "-c", quoted, ts.MkAbs(args[0]))
	if (err != nil) != neg {
		ts.Fatalf("%v: %v", args[1:], err)
	}
}

// revokeValue ends the token that is in a file: revoke FILE.
func revokeValue(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("atelier", "admin", "token", "revoke", "--data", "d", "--json", strings.TrimSpace(ts.ReadFile(args[0]))))
}

// runUnchanged runs a command that must leave a folder as it is: unchanged DIR
// COMMAND…
func runUnchanged(ts *testscript.TestScript, _ bool, args []string) {
	before := describeFolder(ts, args[0])
	ts.Check(ts.Exec(args[1], args[2:]...))
	if after := describeFolder(ts, args[0]); after != before {
		ts.Fatalf("%s was changed; before:\n%safter:\n%s", args[0], before, after)
	}
}

// describeFolder lists what is in a folder, with times and hashes.
func describeFolder(ts *testscript.TestScript, dir string) string {
	var list strings.Builder
	ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var text []byte
		if info.Mode().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		fmt.Fprintf(&list, "%s %v %v %x\n", path, info.Mode(), info.ModTime().UnixNano(), sha256.Sum256(text))
		return nil
	}))
	return list.String()
}
