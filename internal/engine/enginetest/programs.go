package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atelier/internal/engine/subprocess"
)

// RunWithPrograms runs the tests of a package whose engine starts a program. It
// writes shell scripts, which tests use instead of the program, and further
// files to a new folder, stores the path of the folder in *folder, and returns
// the exit code for TestMain. In a script {} stands for the path of the folder.
// The sandbox lets the scripts read and write the folder.
//
// All scripts are written before the first program starts. A program that
// starts while a script is open for writing would inherit the open file, and
// the script could not be executed.
func RunWithPrograms(m *testing.M, folder *string, scripts map[string]string, files map[string][]byte) (exitCode int) {
	dir, err := os.MkdirTemp("", "engine-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	*folder = dir
	subprocess.SetSandbox(subprocess.Sandbox{Mode: subprocess.SandboxAuto, Write: []string{dir}})

	write := func(name string, content []byte) bool {
		err := os.WriteFile(filepath.Join(dir, name), content, 0o700)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return err == nil
	}
	for name, text := range scripts {
		if !write(name, []byte("#!/bin/sh\n"+strings.ReplaceAll(text, "{}", dir)+"\n")) {
			return 1
		}
	}
	for name, content := range files {
		if !write(name, content) {
			return 1
		}
	}
	return m.Run()
}
