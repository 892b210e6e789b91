package music

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// ticksPerBeat is the time resolution of the MIDI file: the number of ticks in
// a beat.
const ticksPerBeat = 480

// note is a MIDI note. Its start and length are in ticks.
type note struct {
	at, length      int
	pitch, velocity int
}

// part has the notes of one instrument and its settings.
type part struct {
	name             string
	channel, program int
	pan, reverb      int
	level            float64 // loudness in dB relative to the melody
	notes            []note
}

// tempoChange is a tempo and the tick at which it begins.
type tempoChange struct {
	at             int
	beatsPerMinute float64
}

// score has the notes and tempos of a whole tune.
type score struct {
	beats  int // number of beats per bar
	tempos []tempoChange
	parts  []part
	end    int // end in ticks, after the decay of the last chord
}

// durationSeconds returns the duration of the tune in seconds.
func (s *score) durationSeconds() float64 {
	total := 0.0
	for i, t := range s.tempos {
		until := s.end
		if i+1 < len(s.tempos) {
			until = s.tempos[i+1].at
		}
		total += float64(until-t.at) / ticksPerBeat * 60 / t.beatsPerMinute
	}
	return total
}

// event is a MIDI message at a time in ticks. Messages at the same time are
// ordered by rank.
type event struct {
	at, rank int
	message  []byte
}

// encodeMIDI returns the score as a Standard MIDI File of format 1: a track
// with the tempos, then a track for each part.
func (s *score) encodeMIDI() []byte {
	b := append([]byte("MThd"), 0, 0, 0, 6, 0, 1)
	b = binary.BigEndian.AppendUint16(b, uint16(1+len(s.parts)))
	b = binary.BigEndian.AppendUint16(b, ticksPerBeat)
	lead := []event{{message: []byte{0xff, 0x58, 4, byte(s.beats), 2, 24, 8}}}
	for _, t := range s.tempos {
		beat := uint32(math.Round(60e6 / t.beatsPerMinute)) // length of a beat in microseconds
		lead = append(lead, event{at: t.at, message: []byte{0xff, 0x51, 3, byte(beat >> 16), byte(beat >> 8), byte(beat)}})
	}
	b = s.appendTrack(b, lead)
	for _, p := range s.parts {
		b = s.appendTrack(b, p.midiEvents())
	}
	return b
}

func (p part) midiEvents() []event {
	const volume, pan, reverb, chorus = 7, 10, 91, 93
	ch := byte(p.channel)
	all := []event{
		{message: append([]byte{0xff, 3, byte(len(p.name))}, p.name...)},
		{message: []byte{0xc0 | ch, byte(p.program)}},
	}
	for _, c := range [][2]byte{{volume, 100}, {pan, byte(p.pan)}, {reverb, byte(p.reverb)}, {chorus, 8}} {
		all = append(all, event{message: []byte{0xb0 | ch, c[0], c[1]}})
	}
	for _, n := range p.notes {
		all = append(all,
			event{n.at, 2, []byte{0x90 | ch, byte(n.pitch), byte(n.velocity)}},
			event{n.at + n.length, 1, []byte{0x80 | ch, byte(n.pitch), 0}}) // rank 1 sorts the end of a note before the start of the next note of the same pitch
	}
	return all
}

func (s *score) appendTrack(b []byte, events []event) []byte {
	slices.SortStableFunc(events, func(a, c event) int { return cmp.Or(a.at-c.at, a.rank-c.rank) })
	var body []byte
	now := 0
	for _, e := range events {
		body = append(appendVarInt(body, e.at-now), e.message...)
		now = e.at
	}
	body = append(appendVarInt(body, max(s.end-now, 0)), 0xff, 0x2f, 0)
	b = binary.BigEndian.AppendUint32(append(b, "MTrk"...), uint32(len(body)))
	return append(b, body...)
}

// appendVarInt appends a MIDI variable-length quantity: groups of seven bits,
// highest group first.
func appendVarInt(b []byte, n int) []byte {
	for shift := 21; shift > 0; shift -= 7 {
		if n>>shift != 0 {
			b = append(b, byte(n>>shift)|0x80)
		}
	}
	return append(b, byte(n&0x7f))
}

// sortNotes sorts the notes by time and pitch, and shortens each note that
// overlaps the next one of the same pitch. Otherwise the end of the first note
// would cut off the second.
func (p *part) sortNotes() {
	slices.SortStableFunc(p.notes, func(a, b note) int { return cmp.Or(a.at-b.at, a.pitch-b.pitch) })
	last := map[int]int{} // index in kept of the latest note of each pitch
	kept := p.notes[:0]
	for _, n := range p.notes {
		if i, ok := last[n.pitch]; ok && kept[i].at+kept[i].length > n.at {
			if kept[i].at == n.at { // two notes that begin together become one
				kept[i].length = max(kept[i].length, n.length)
				continue
			}
			kept[i].length = n.at - kept[i].at
		}
		last[n.pitch] = len(kept)
		kept = append(kept, n)
	}
	p.notes = kept
}
