package servers

import (
	"os"
	"os/exec"
	"testing"
)

// NeedShippedPrograms skips the test where a program of the shipped tools is
// missing, with which atelier tools doctor fails and tools are left out. With CI
// set, the test fails.
func NeedShippedPrograms(t testing.TB) {
	t.Helper()
	for _, name := range []string{"ffmpeg", "ffprobe", "espeak-ng", "fluidsynth"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is not installed", name)
			}
			t.Skipf("%s is not installed (Debian: apt-get install ffmpeg espeak-ng fluidsynth timgm6mb-soundfont)", name)
		}
	}
}
