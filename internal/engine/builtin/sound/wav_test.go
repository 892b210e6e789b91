package sound_test

import (
	"bytes"
	"slices"
	"testing"

	"atelier/internal/engine/builtin/sound"
)

func TestHeaderComesBack(t *testing.T) {
	t.Parallel()
	b := append(sound.Header(22050, 2, 4), 1, 2, 3, 4, 5, 6, 7, 8)
	r := bytes.NewReader(b)
	f, n, err := sound.Open(r)
	if want := (sound.Format{Bits: 16, Channels: 2, Rate: 22050}); err != nil || f != want || n != 8 || r.Len() != 8 {
		t.Errorf("open = %+v, %d, %v with %d bytes left", f, n, err, r.Len())
	}
	if cap(sound.Header(8000, 1, 1000)) < 44+2000 {
		t.Error("there is no room for the samples")
	}
}

func TestOtherChunks(t *testing.T) {
	t.Parallel()
	b := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt "), 16, 0, 0, 0, 3, 0, 2, 0, 0x44, 0xac, 0, 0, 0, 0, 0, 0, 8, 0, 32, 0)
	b = append(b, "fact\x03\x00\x00\x00abc\x00data\xff\xff\xff\xff"...)
	f, n, err := sound.Open(bytes.NewReader(b))
	if want := (sound.Format{Floats: true, Bits: 32, Channels: 2, Rate: 44100}); err != nil || f != want || n != 0xffffffff {
		t.Errorf("open = %+v, %d, %v", f, n, err)
	}
}

func TestOtherFilesAreNoSound(t *testing.T) {
	t.Parallel()
	good := sound.Header(22050, 1, 0)
	change := func(at int, to byte) []byte {
		b := slices.Clone(good)
		b[at] = to
		return b
	}
	for name, b := range map[string][]byte{
		"nothing":        nil,
		"text":           []byte("this is no recording at all"),
		"half a header":  good[:40],
		"no samples":     good[:36],
		"compressed":     change(20, 2),
		"no channels":    change(22, 0),
		"no format":      append([]byte("RIFF\x00\x00\x00\x00WAVE"), good[36:]...),
		"a small format": append(append([]byte("RIFF\x00\x00\x00\x00WAVE"), "fmt \x02\x00\x00\x00\x01\x00"...), good[36:]...),
		"a large format": change(19, 0x7f),
	} {
		if f, n, err := sound.Open(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: open = %+v, %d, want an error", name, f, n)
		}
	}
}
