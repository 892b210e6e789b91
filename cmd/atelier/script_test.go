package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
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
			"id":     keepID,
			"revoke": revokeValue,
		},
	})
}

// keepID keeps the id that the last command printed in a variable: id NAME.
func keepID(ts *testscript.TestScript, _ bool, args []string) {
	var made struct{ ID string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &made))
	ts.Setenv(args[0], made.ID)
}

// revokeValue ends the token that is in a file: revoke FILE.
func revokeValue(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("atelier", "admin", "token", "revoke", "--data", "d", "--json", strings.TrimSpace(ts.ReadFile(args[0]))))
}
