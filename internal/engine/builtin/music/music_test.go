package music_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/music"
	"atelier/internal/engine/enginetest"
)

func TestMissingProgramsAreNamed(t *testing.T) {
	t.Parallel()
	needs := music.Requirements()
	if len(needs) != 2 || needs[0].Package != "fluidsynth" || needs[1].Package != "timgm6mb-soundfont" {
		t.Fatalf("needs = %+v", needs)
	}
	for _, n := range needs {
		if n.Path != "" && !filepath.IsAbs(n.Path) {
			t.Errorf("%s is at %q", n.Name, n.Path)
		}
	}
}

func TestWhatCannotBePlayed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		program string
		values  values
		code    engine.Code
		want    string
	}{
		{"no such key", "plays", values{"key": "H"}, engine.Failed, "key does not exist"},
		{"no such scale", "plays", values{"scale": "whole"}, engine.Failed, "scale does not exist"},
		{"no such mood", "plays", values{"mood": "hungry"}, engine.Failed, "mood does not exist"},
		{"no such instruments", "plays", values{"instruments": "kazoo"}, engine.Failed, "instruments do not exist"},
		{"silence", "mumbles", nil, engine.Invalid, "no usable audio"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := enginetest.MustFail(t, fake(tt.program), job(tt.values))
			if e.Code != tt.code || e.Transient || !strings.Contains(e.Message, tt.want) {
				t.Errorf("failure = %v, want %q", e, tt.want)
			}
		})
	}
}

func TestSettingsThatAreNotThere(t *testing.T) {
	t.Parallel()
	j := job(nil)
	j.With = `{"mood":"x"}`
	if e := enginetest.MustFail(t, fake("plays"), j); !strings.Contains(e.Message, "not configured correctly") {
		t.Errorf("failure = %v", e)
	}
}

// TestSoundfontsMayGoAway: FluidSynth itself would play silence.
func TestSoundfontsMayGoAway(t *testing.T) {
	t.Parallel()
	e := music.New(filepath.Join(programFolder, "plays"), "/nowhere/font.sf2", music.Options{})
	if got := enginetest.MustFail(t, e, job(nil)); got.Code != engine.Unavailable || !got.Transient {
		t.Errorf("failure = %v, want one that may be over soon", got)
	}
}

func TestProgressWhileItPlays(t *testing.T) {
	t.Parallel()
	var r enginetest.Recorder
	if err := fake("dawdles").Run(t.Context(), job(nil), &r); err != nil {
		t.Fatal(err)
	}
	// Three parts: a step for each, and one while each is written.
	if got := r.Fractions(); len(got) < 6 || got[len(got)-1] != 1 {
		t.Errorf("progress = %v, want steps on the way", got)
	}
}

func TestRealTune(t *testing.T) {
	t.Parallel()
	b, d := played(t, installed(t), job(values{"mood": "heroic", "instruments": "mood", "tempo": int64(120)}))
	if d < 15*time.Second || d > 22*time.Second {
		t.Errorf("duration = %v, want that of eight bars and a last chord", d)
	}
	s := samples(b)
	peak, level := levels(s)
	if peak > -0.9 || level < -24 || level > -15 {
		t.Errorf("peak = %.1f dB and level = %.1f dB, want at most -1 and about -17", peak, level)
	}
	// It begins soon and fades to nothing.
	if head, _ := levels(s[:44100*2/4]); head < -40 {
		t.Errorf("the first quarter of a second has %.1f dB", head)
	}
	if end, _ := levels(s[len(s)-200:]); end > -60 {
		t.Errorf("the end has %.1f dB", end)
	}
	if left, right := channel(s, 0), channel(s, 1); bytes.Equal(left, right) {
		t.Error("both channels are the same")
	}
	probe(t, b)
}

func samples(b []byte) []int16 {
	s := make([]int16, (len(b)-44)/2)
	for i := range s {
		s[i] = int16(binary.LittleEndian.Uint16(b[44+2*i:]))
	}
	return s
}

func channel(s []int16, which int) []byte {
	var b []byte
	for i := which; i < len(s); i += 2 {
		b = binary.LittleEndian.AppendUint16(b, uint16(s[i]))
	}
	return b
}

// levels are the highest sample and the mean power, in dB of full scale.
func levels(s []int16) (peak, mean float64) {
	var power float64
	for _, v := range s {
		peak = max(peak, math.Abs(float64(v)))
		power += float64(v) * float64(v)
	}
	return 20 * math.Log10(peak/32768), 10 * math.Log10(power/float64(len(s))/32768/32768)
}

// probe asks somebody else, where there is one.
func probe(t *testing.T, b []byte) {
	t.Helper()
	path, err := exec.LookPath("ffprobe")
	if err != nil {
		return
	}
	cmd := exec.CommandContext(t.Context(), path, "-v", "error", "-show_entries", "stream=codec_name,sample_rate,channels", "-of", "csv=p=0", "-")
	cmd.Stdin = bytes.NewReader(b)
	out, err := cmd.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "pcm_s16le,44100,2" {
		t.Errorf("ffprobe = %q, %v", got, err)
	}
}
