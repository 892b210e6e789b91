package music

import (
	"encoding/binary"
	"math"
	"testing"
)

// heard is what a reader makes of a MIDI file.
type heard struct {
	tracks, notes int
	beats         int // microseconds, the first tempo
	end           int // of the last track, in ticks
}

// listen reads a MIDI file and follows every note to its end.
func listen(t *testing.T, b []byte) heard {
	t.Helper()
	if len(b) < 14 || string(b[:8]) != "MThd\x00\x00\x00\x06" || binary.BigEndian.Uint16(b[8:]) != 1 || binary.BigEndian.Uint16(b[12:]) != ticksPerBeat {
		t.Fatalf("header = %x", b[:min(len(b), 14)])
	}
	h := heard{tracks: int(binary.BigEndian.Uint16(b[10:]))}
	b = b[14:]
	for range h.tracks {
		if string(b[:4]) != "MTrk" {
			t.Fatalf("track = %x", b[:8])
		}
		n := binary.BigEndian.Uint32(b[4:])
		h.follow(t, b[8:8+n])
		b = b[8+n:]
	}
	if len(b) > 0 {
		t.Errorf("%d bytes follow the last track", len(b))
	}
	return h
}

func (h *heard) follow(t *testing.T, b []byte) {
	t.Helper()
	sounding := map[[2]byte]bool{}
	now := 0
	for len(b) > 0 {
		delta := 0
		for more := true; more; b = b[1:] {
			delta = delta<<7 | int(b[0]&0x7f)
			more = b[0]&0x80 != 0
		}
		now += delta
		switch status := b[0]; {
		case status == 0xff:
			if b[1] == 0x51 && h.beats == 0 {
				h.beats = int(b[3])<<16 | int(b[4])<<8 | int(b[5])
			}
			if b[1] == 0x2f {
				h.end = now
				if len(b) != 3 || len(sounding) > 0 {
					t.Errorf("the track ends with %d bytes left and %d notes sounding", len(b)-3, len(sounding))
				}
				return
			}
			b = b[3+int(b[2]):]
		case status&0xf0 == 0xc0:
			b = b[2:]
		case status&0xf0 == 0x90:
			key := [2]byte{status & 0xf, b[1]}
			if sounding[key] {
				t.Errorf("note %d begins twice", b[1])
			}
			sounding[key] = true
			h.notes++
			b = b[3:]
		case status&0xf0 == 0x80:
			key := [2]byte{status & 0xf, b[1]}
			if !sounding[key] {
				t.Errorf("note %d ends twice", b[1])
			}
			delete(sounding, key)
			b = b[3:]
		case status&0xf0 == 0xb0:
			b = b[3:]
		default:
			t.Fatalf("message %x", status)
		}
	}
	t.Error("the track has no end")
}

func TestMIDI(t *testing.T) {
	t.Parallel()
	for _, w := range wishes() {
		w.tempo = 96
		s := composeTune(w)
		h := listen(t, s.encodeMIDI())
		notes := 0
		for _, p := range s.parts {
			notes += len(p.notes)
		}
		if h.tracks != 1+len(s.parts) || h.notes != notes || h.beats != 625_000 || h.end != s.end {
			t.Fatalf("%+v: heard %+v, want %d notes and the end at %d", w, h, notes, s.end)
		}
	}
}

func TestQuantity(t *testing.T) {
	t.Parallel()
	// From the specification of Standard MIDI Files.
	for n, want := range map[int]string{
		0: "\x00", 0x40: "\x40", 0x7f: "\x7f", 0x80: "\x81\x00", 0x2000: "\xc0\x00", 0x3fff: "\xff\x7f",
		0x4000: "\x81\x80\x00", 0x1fffff: "\xff\xff\x7f", 0x200000: "\x81\x80\x80\x00", 0xfffffff: "\xff\xff\xff\x7f",
	} {
		if got := appendVarInt(nil, n); string(got) != want {
			t.Errorf("quantity(%#x) = %x, want %x", n, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	s := score{tempos: []tempoChange{{0, 60}, {4 * ticksPerBeat, 120}}, end: 8 * ticksPerBeat}
	if got := s.durationSeconds(); math.Abs(got-6) > 1e-9 {
		t.Errorf("seconds = %v, want 6", got)
	}
}
