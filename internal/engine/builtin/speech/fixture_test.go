package speech_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/speech"
	"atelier/internal/engine/enginetest"
	"atelier/internal/file/media"
)

// fakes are programs in place of eSpeak NG; {} is their folder.
var fakes = map[string]string{
	"fails":   "echo no such voice >&2; exit 1",
	"hangs":   "exec sleep 600",
	"garbles": "echo this is no sound > speech.wav",
	"breaks":  "cp {}/broken.wav speech.wav",
	"floods":  "exec cat /dev/zero > speech.wav",
	"gives":   "exit 0",
	"listens": `printf '%s\n' "$@" > {}/arguments; cat > {}/text; cp {}/minutes.wav speech.wav`,
	"drones":  "cp {}/minutes.wav speech.wav",
	"mumbles": "cp {}/silence.wav speech.wav",
	"once":    "grep -q first && cp {}/minutes.wav speech.wav; exit 0",
}

// programFolder is the folder of the fakes and their files.
var programFolder string

func TestMain(m *testing.M) {
	whole := wav(8000, time.Second, 8000)
	os.Exit(enginetest.RunWithPrograms(m, &programFolder, fakes, map[string][]byte{
		"minutes.wav": wav(8000, 3*time.Minute, 8000), "silence.wav": wav(8000, time.Second, 0), "broken.wav": whole[:len(whole)/2],
	}))
}

// wav is a recording of a hum.
func wav(rate int, long time.Duration, loud int16) []byte {
	n := int(long.Seconds() * float64(rate))
	var b bytes.Buffer
	b.WriteString("RIFF")
	for _, v := range []any{
		uint32(36 + 2*n), []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1),
		uint32(rate), uint32(2 * rate), uint16(2), uint16(16), []byte("data"), uint32(2 * n),
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // to memory
	}
	samples := make([]int16, n)
	for i := range samples {
		samples[i] = loud
		if i/20%2 == 0 {
			samples[i] = -loud
		}
	}
	_ = binary.Write(&b, binary.LittleEndian, samples)
	return b.Bytes()
}

// fake returns the engine with a fake program.
func fake(name string) *speech.Engine {
	return speech.New(filepath.Join(programFolder, name), speech.Options{})
}

// installed returns the engine with eSpeak NG. If it is not installed, the test
// is skipped; with CI set it fails instead.
func installed(t *testing.T) *speech.Engine {
	t.Helper()
	enginetest.RequireInstalled(t, speech.Requirements())
	return speech.New(speech.Requirements()[0].Path, speech.Options{Folder: t.TempDir()})
}

type values = map[string]any

func job(text string, more values) engine.Job {
	v := values{"text": text}
	for key, value := range more {
		v[key] = value
	}
	return engine.Job{RunID: "run-1", Attempt: 1, With: "{}", Values: v, Seed: 5, NumResults: 1, OutputType: "AUDIO", MimeTypes: []string{"audio/wav"}}
}

// spoken runs a job for one result, which has to be a sound that the service
// accepts.
func spoken(t *testing.T, e *speech.Engine, j engine.Job) ([]byte, time.Duration) {
	t.Helper()
	r := enginetest.MustSucceed(t, e, j)
	if len(r.Outputs()) != 1 {
		t.Fatalf("results = %d, want 1", len(r.Outputs()))
	}
	b := r.Outputs()[0]
	return b, examined(t.Context(), t, b)
}

func examined(ctx context.Context, t *testing.T, b []byte) time.Duration {
	t.Helper()
	f, ok := media.Sniff(b[:min(len(b), 512)])
	if !ok {
		t.Fatal("the result is no media file")
	}
	facts, err := media.NewAnalyzer(media.Limits{}).AnalyzeFile(ctx, media.DecodeRequest{}, f, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if facts.MimeType != "audio/wav" || facts.Duration <= 0 {
		t.Fatalf("result = %+v, want sound", facts)
	}
	return facts.Duration
}
