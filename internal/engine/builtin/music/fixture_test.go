package music_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/music"
	"atelier/internal/engine/enginetest"
	"atelier/internal/file/media"
)

// fakes are programs in place of FluidSynth; {} is their folder.
var fakes = map[string]string{
	"fails":   "echo no such driver >&2; exit 1",
	"hangs":   "exec sleep 600",
	"garbles": "echo this is no sound > tune.wav",
	"breaks":  "cp {}/broken.wav tune.wav",
	"floods":  "exec cat /dev/zero > tune.wav",
	"gives":   "exit 0",
	"plays":   "cp {}/hum.wav tune.wav",
	"mumbles": "cp {}/silence.wav tune.wav",
	"dawdles": "cp {}/hum.wav tune.wav; sleep 0.5",
}

// programFolder is the folder of the fakes and their files.
var programFolder string

func TestMain(m *testing.M) {
	hum := wav(2*time.Second, 0.3)
	os.Exit(enginetest.RunWithPrograms(m, &programFolder, fakes, map[string][]byte{
		"hum.wav": hum, "broken.wav": hum[:len(hum)/2], "silence.wav": wav(time.Second, 0), "font.sf2": []byte("a soundfont"),
	}))
}

// wav is a recording of a hum as FluidSynth would write it.
func wav(long time.Duration, loud float64) []byte {
	const rate = 44100
	n := int(long.Seconds() * rate)
	var b bytes.Buffer
	b.WriteString("RIFF")
	for _, v := range []any{
		uint32(36 + 8*n), []byte("WAVEfmt "), uint32(16), uint16(3), uint16(2),
		uint32(rate), uint32(8 * rate), uint16(8), uint16(32), []byte("data"), uint32(8 * n),
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // to memory
	}
	samples := make([]float32, 2*n)
	for i := range samples {
		samples[i] = float32(loud * math.Sin(float64(i/2)*440*2*math.Pi/rate))
	}
	_ = binary.Write(&b, binary.LittleEndian, samples)
	return b.Bytes()
}

// fake returns the engine with a fake program.
func fake(name string) *music.Engine {
	return music.New(filepath.Join(programFolder, name), filepath.Join(programFolder, "font.sf2"), music.Options{})
}

// installed returns the engine with FluidSynth. If a requirement is not
// installed, the test is skipped; with CI set it fails instead.
func installed(t *testing.T) *music.Engine {
	t.Helper()
	needs := music.Requirements()
	enginetest.RequireInstalled(t, needs)
	return music.New(needs[0].Path, needs[1].Path, music.Options{Folder: t.TempDir()})
}

type values = map[string]any

// job returns a job for a short tune with few instruments.
func job(more values) engine.Job {
	v := values{"bars": int64(8), "tempo": int64(200), "mood": "sad", "instruments": "piano"}
	for key, value := range more {
		v[key] = value
	}
	return engine.Job{RunID: "run-1", Attempt: 1, With: "{}", Values: v, Seed: 5, NumResults: 1, OutputType: "AUDIO", MimeTypes: []string{"audio/wav"}}
}

// played runs a job for one result, which has to be a sound that the service
// accepts.
func played(t *testing.T, e *music.Engine, j engine.Job) ([]byte, time.Duration) {
	t.Helper()
	r := enginetest.MustSucceed(t, e, j)
	if len(r.Outputs()) != 1 {
		t.Fatalf("results = %d, want 1", len(r.Outputs()))
	}
	b := r.Outputs()[0]
	f, ok := media.Sniff(b[:min(len(b), 512)])
	if !ok {
		t.Fatal("the result is no media file")
	}
	facts, err := media.NewAnalyzer(media.Limits{}).AnalyzeFile(t.Context(), media.DecodeRequest{}, f, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if facts.MimeType != "audio/wav" || facts.Duration <= 0 {
		t.Fatalf("result = %+v, want sound", facts)
	}
	return b, facts.Duration
}
