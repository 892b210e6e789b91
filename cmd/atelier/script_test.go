package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"atelier/internal/engine/comfyui/comfyuitest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"atelier": main})
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
			"revoke":    revokeValue,
			"toolid":    keepToolID,
			"unchanged": runUnchanged,
		},
	})
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
