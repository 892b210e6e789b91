package main

import (
	"os"
	"path/filepath"
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
	})
}
