package video_test

import (
	"fmt"
	"os"
	"testing"

	"atelier/internal/engine/subprocess"
)

// TestMain lets the programs of tests reach each other's folders: some note what
// they were called with, and what keeps FFmpeg from other files shall not be the
// sandbox alone.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "video-test-")
		if err == nil {
			err = os.Setenv("TMPDIR", dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		subprocess.SetSandbox(subprocess.Sandbox{Mode: subprocess.SandboxAuto, Write: []string{dir}})
		return m.Run()
	}())
}
