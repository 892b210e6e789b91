package speech

import (
	"bytes"
	"slices"
	"testing"
)

func TestWAVComesBack(t *testing.T) {
	t.Parallel()
	s := &recording{rate: 22050, samples: []int16{0, 1, -1, 32767, -32768}}
	got, err := parseWAV(bytes.NewReader(s.encodeWAV()))
	if err != nil || got.rate != s.rate || !slices.Equal(got.samples, s.samples) {
		t.Errorf("parse = %+v, %v", got, err)
	}
}

func TestOtherFilesAreNoSound(t *testing.T) {
	t.Parallel()
	good := (&recording{rate: 22050, samples: make([]int16, 100)}).encodeWAV()
	change := func(at int, to byte) []byte {
		b := slices.Clone(good)
		b[at] = to
		return b
	}
	for name, b := range map[string][]byte{
		"nothing":      nil,
		"text":         []byte("this is no recording at all"),
		"a header":     good[:40],
		"half":         good[:100],
		"floats":       change(20, 3),
		"two channels": change(22, 2),
		"8 bits":       change(34, 8),
		"no rate":      change(25, 0),
	} {
		if s, err := parseWAV(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: parse = %+v, want an error", name, s)
		}
	}
}

func TestPolish(t *testing.T) {
	t.Parallel()
	quiet := &recording{rate: 1000, samples: make([]int16, 3000)}
	if quiet.trimAndLevel() {
		t.Error("silence counts as speech")
	}
	for i := range 1000 {
		quiet.samples[1000+i] = int16(1000 - 2000*(i%2))
	}
	if !quiet.trimAndLevel() {
		t.Fatal("speech counts as silence")
	}
	// 50 ms before it, 150 ms behind.
	if n := len(quiet.samples); n != 1200 {
		t.Errorf("samples = %d, want 1200", n)
	}
	if v := quiet.samples[500]; v < 3500 || v > 4000 {
		t.Errorf("sample = %d, want it raised to the level", v)
	}
	faint := &recording{rate: 1000, samples: slices.Repeat([]int16{100, -100}, 500)}
	faint.trimAndLevel()
	if v := faint.samples[500]; v != 400 && v != -400 {
		t.Errorf("sample = %d, want 12 dB more and not all", v)
	}
}
