package speech_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/speech"
	"atelier/internal/engine/enginetest"
)

func TestMissingProgramsAreNamed(t *testing.T) {
	t.Parallel()
	needs := speech.Requirements()
	if len(needs) != 1 || needs[0].Package != "espeak-ng" || needs[0].Path != "" && !filepath.IsAbs(needs[0].Path) {
		t.Errorf("needs = %+v", needs)
	}
}

// TestTextIsNoArgument is not parallel: the fake leaves what it got in one
// place.
func TestTextIsNoArgument(t *testing.T) {
	text := "--version -w /etc/passwd <speak>hello</speak> [[[h@'loU]] \x0130s\x1b[1m\tthere\u0085you"
	spoken(t, fake("listens"), job(text, values{"language": "de", "voice": "woman", "speed": int64(200), "pitch": 30.0, "pause": int64(120)}))
	args, err := os.ReadFile(filepath.Join(programFolder, "arguments"))
	if err != nil {
		t.Fatal(err)
	}
	want := "-b\n1\n--stdin\n-w\nspeech.wav\n-v\nde+f2\n-s\n200\n-p\n30\n-g\n12\n"
	if string(args) != want {
		t.Errorf("arguments = %q, want %q", args, want)
	}
	got, err := os.ReadFile(filepath.Join(programFolder, "text"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "--version -w /etc/passwd <speak>hello</speak> [ [ [h@'loU]] 30s [1m there you"; string(got) != want {
		t.Errorf("text = %q, want %q", got, want)
	}
}

func TestWhatCannotBeSpoken(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("This goes on and on, for ever and a day, until nobody listens any more. ", 20)
	for _, tt := range []struct {
		name    string
		program string
		job     engine.Job
		want    string
	}{
		{"no text", "fails", job("", nil), "contains nothing that can be spoken"},
		{"only space", "fails", job(" \n\t\n ", nil), "contains nothing that can be spoken"},
		{"silence", "mumbles", job("…", nil), "contains nothing that can be spoken"},
		{"much too long a text", "fails", job(strings.Repeat("a", 20_001), nil), "The limit is 20000."},
		{"too long a speech", "drones", job(long, nil), "longer than 10 minutes"},
		{"another language", "fails", job("Hello", values{"language": "en+f2"}), "language is not supported"},
		{"another voice", "fails", job("Hello", values{"voice": "../x"}), "voice does not exist"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := enginetest.MustFail(t, fake(tt.program), tt.job)
			if e.Code != engine.Failed || e.Transient || !strings.Contains(e.Message, tt.want) {
				t.Errorf("failure = %v, want %q", e, tt.want)
			}
		})
	}
}

func TestSettingsThatAreNotThere(t *testing.T) {
	t.Parallel()
	j := job("Hello", nil)
	j.With = `{"voice":"x"}`
	if e := enginetest.MustFail(t, fake("drones"), j); !strings.Contains(e.Message, "not configured correctly") {
		t.Errorf("failure = %v", e)
	}
}

// TestAPieceWithoutSoundIsNotTheOneBefore has a program that speaks once only.
func TestAPieceWithoutSoundIsNotTheOneBefore(t *testing.T) {
	t.Parallel()
	if e := enginetest.MustFail(t, fake("once"), job("The first.\n\nAnother.", nil)); e.Code != engine.Invalid {
		t.Errorf("failure = %v, want one about the result", e)
	}
}

func TestProgressGoesByPieces(t *testing.T) {
	t.Parallel()
	var r enginetest.Recorder
	if err := fake("drones").Run(t.Context(), job("One.\n\nTwo.\n\nThree.", nil), &r); err != nil {
		t.Fatal(err)
	}
	if got := r.Fractions(); len(got) != 6 || got[1] > 0.31 || got[len(got)-1] != 1 {
		t.Errorf("progress = %v, want a step for each piece", got)
	}
	// Three minutes each, with pauses between, and hardly more.
	if d := examined(t.Context(), t, r.Outputs()[0]); d < 9*time.Minute || d > 9*time.Minute+2*time.Second {
		t.Errorf("duration = %v, want about 9m", d)
	}
}

func TestRealSpeech(t *testing.T) {
	t.Parallel()
	e := installed(t)
	b, d := spoken(t, e, job("Good morning. This is the first sentence, and here is another one.", nil))
	if d < 3*time.Second || d > 7*time.Second {
		t.Errorf("duration = %v, want that of two sentences", d)
	}
	s := samples(b)
	if s[0] != 0 || s[len(s)-1] != 0 {
		t.Errorf("ends = %d and %d, want silence", s[0], s[len(s)-1])
	}
	peak, level := levels(s)
	if peak > -0.9 || level < -25 || level > -15 {
		t.Errorf("peak = %.1f dB and level = %.1f dB, want at most -1 and about -20", peak, level)
	}
	// The first word begins soon, and the file ends soon after the last.
	if lead, tail := edges(s); lead > 80*time.Millisecond || tail > 300*time.Millisecond {
		t.Errorf("silence = %v before and %v behind", lead, tail)
	}
	probe(t, b)
}

func TestMarkupIsRead(t *testing.T) {
	t.Parallel()
	e := installed(t)
	_, plain := spoken(t, e, job("hello", nil))
	for _, text := range []string{"<b>hello</b>", "[[h@l'oU]]"} {
		if _, d := spoken(t, e, job(text, nil)); d < plain*3/2 {
			t.Errorf("%q takes %v, without markup %v: it was obeyed, or left out", text, d, plain)
		}
	}
}

func TestWordsOfEveryLanguage(t *testing.T) {
	t.Parallel()
	e := installed(t)
	for language, text := range map[string]string{
		"ar": "الطقس جميل اليوم.", "ca": "Avui fa bon dia.", "cs": "Dnes je krásně.", "da": "Vejret er godt i dag.",
		"de": "Heute ist schönes Wetter.", "el": "Ο καιρός είναι καλός.", "en-gb": "The weather is fine today.",
		"en-us": "The weather is fine today.", "es": "Hoy hace buen tiempo.", "es-419": "Hoy hace buen tiempo.",
		"fi": "Tänään on kaunis ilma.", "fr": "Il fait beau aujourd'hui.", "hi": "आज मौसम अच्छा है।", "hu": "Ma szép idő van.",
		"it": "Oggi fa bel tempo.", "ko": "오늘은 날씨가 좋습니다.", "nb": "Været er fint i dag.", "nl": "Het is mooi weer vandaag.",
		"pl": "Dziś jest ładna pogoda.", "pt": "Hoje está bom tempo.", "pt-br": "Hoje está bom tempo.", "ro": "Astăzi e vreme frumoasă.",
		"ru": "Сегодня хорошая погода.", "sv": "Det är fint väder i dag.", "tr": "Bugün hava güzel.", "uk": "Сьогодні гарна погода.",
		"zh": "今天天气很好。",
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			man, d := spoken(t, e, job(text, values{"language": language}))
			if d < 700*time.Millisecond || d > 4*time.Second {
				t.Errorf("duration = %v: it spells, or leaves out", d)
			}
			// eSpeak NG says nothing where it does not find the variant.
			if woman, _ := spoken(t, e, job(text, values{"language": language, "voice": "woman"})); bytes.Equal(man, woman) {
				t.Error("all voices are the same")
			}
		})
	}
}

func samples(b []byte) []int16 {
	s := make([]int16, (len(b)-44)/2)
	for i := range s {
		s[i] = int16(binary.LittleEndian.Uint16(b[44+2*i:]))
	}
	return s
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

// edges are the silences at both ends.
func edges(s []int16) (lead, tail time.Duration) {
	first, last := 0, len(s)-1
	for s[first] < 300 && s[first] > -300 {
		first++
	}
	for s[last] < 300 && s[last] > -300 {
		last--
	}
	each := time.Second / 22050
	return time.Duration(first) * each, time.Duration(len(s)-last) * each
}

// probe asks somebody else, where there is one.
func probe(t *testing.T, b []byte) {
	t.Helper()
	path, err := exec.LookPath("ffprobe")
	if err != nil {
		return
	}
	cmd := exec.CommandContext(t.Context(), path, "-v", "error", "-show_entries", "stream=codec_name,channels", "-of", "csv=p=0", "-")
	cmd.Stdin = bytes.NewReader(b)
	out, err := cmd.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "pcm_s16le,1" {
		t.Errorf("ffprobe = %q, %v", got, err)
	}
}
