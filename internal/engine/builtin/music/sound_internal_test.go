package music

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// hum is a tone of a second.
func hum(loud, pitch float64) recording {
	s := make(recording, 2*sampleRate)
	for i := range s {
		s[i] = float32(loud * math.Sin(float64(i/2)*pitch*2*math.Pi/sampleRate))
	}
	return s
}

// floatWAV returns a file like those of FluidSynth, with an unknown chunk.
func floatWAV(s recording) []byte {
	le := binary.LittleEndian
	b := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt "), 16, 0, 0, 0, 3, 0, 2, 0)
	b = le.AppendUint32(le.AppendUint32(b, sampleRate), frameBytes*sampleRate)
	b = append(b, frameBytes, 0, 32, 0)
	b = append(b, "fact\x03\x00\x00\x00abc\x00data"...)
	b = le.AppendUint32(b, uint32(4*len(s)))
	for _, v := range s {
		b = le.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func TestParse(t *testing.T) {
	t.Parallel()
	want := hum(2, 440)
	got, err := parseWAV(bytes.NewReader(floatWAV(want)))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("parse = %d samples, %v; want %d", len(got), err, len(want))
	}
}

func TestOtherFilesAreNoSound(t *testing.T) {
	t.Parallel()
	good := floatWAV(hum(1, 440))
	change := func(at int, to byte) []byte {
		b := slices.Clone(good)
		b[at] = to
		return b
	}
	for name, b := range map[string][]byte{
		"nothing":      nil,
		"text":         []byte("this is no recording at all"),
		"a header":     good[:40],
		"half":         good[:len(good)/2],
		"integers":     change(20, 1),
		"one channel":  change(22, 1),
		"another rate": change(24, 0),
		"too long":     change(55, 0xff),
		"no number":    append(slices.Clone(good[:len(good)-4]), 0, 0, 0xc0, 0x7f),
	} {
		if s, err := parseWAV(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: parse = %d samples, want an error", name, len(s))
		}
	}
}

// TestPartsAreAsLoudAsTheyShould mixes instruments of very different force.
func TestPartsAreAsLoudAsTheyShould(t *testing.T) {
	t.Parallel()
	faint, strong := recording(nil).mixIn(hum(0.01, 1000), 0), recording(nil).mixIn(hum(3, 1000), -6)
	if ratio := faint.measureLoudness() / strong.measureLoudness(); math.Abs(ratio-2) > 0.02 {
		t.Errorf("ratio = %.3f, want 6 dB", ratio)
	}
	if low, high := hum(1, 60).measureLoudness(), hum(1, 1000).measureLoudness(); low > high/2 {
		t.Errorf("low tones count %.2f, high ones %.2f", low, high)
	}
	if s := recording(nil).mixIn(make(recording, 1000), 0); len(s) > 0 {
		t.Error("silence was made louder")
	}
}

func TestPolish(t *testing.T) {
	t.Parallel()
	nothing := make(recording, sampleRate)
	if nothing.trimAndLevel() {
		t.Error("silence counts as music")
	}
	s := slices.Concat(make(recording, sampleRate), hum(0.01, 440), make(recording, 3*sampleRate))
	if !s.trimAndLevel() {
		t.Fatal("music counts as silence")
	}
	// A twentieth of a second before it, nothing behind.
	if n := len(s); n < 2*(sampleRate+lead)-20 || n > 2*(sampleRate+lead) {
		t.Errorf("samples = %d, want %d", n, 2*(sampleRate+lead))
	}
	peak := float32(0)
	for _, v := range s {
		peak = max(peak, v)
	}
	if peak < 0.15 || peak > 0.9 {
		t.Errorf("peak = %.2f, want it raised to the level", peak)
	}
	if end := s[len(s)-1]; end != 0 {
		t.Errorf("the end = %v, want silence", end)
	}
}
