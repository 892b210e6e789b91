package music

import (
	"math/rand/v2"
)

// finalBeats is the time for the decay of the last chord, in beats of the final
// tempo.
const finalBeats = 5

// The MIDI channels of the parts. General MIDI reserves the tenth channel for
// drums.
const (
	leadChannel = iota
	secondChannel
	chordChannel
	bassChannel
	padChannel
	drumChannel = 9
)

// performScore returns the parts of all instruments. Like a human performance,
// the notes are slightly off the beat and vary in loudness, and the tune slows
// down at the end.
func (c *composer) performScore() *score {
	line := c.composeMelody()
	h := performer{composer: c, r: c.newRandom(performanceStream)}
	s := &score{beats: c.beats, tempos: c.tempoChanges(), end: h.tickAt(c.end) + finalBeats*ticksPerBeat}
	voices := c.voiceChords()
	s.parts = []part{
		{
			name:    "melody",
			channel: leadChannel,
			program: c.band.lead,
			pan:     64,
			reverb:  55,
			notes:   h.playLead(line),
		},
		{
			name:    "chords",
			channel: chordChannel,
			program: c.band.chords,
			pan:     44,
			reverb:  50,
			level:   -6,
			notes:   h.playChords(voices),
		},
		{
			name:    "bass",
			channel: bassChannel,
			program: c.band.bass,
			pan:     64,
			reverb:  25,
			level:   -6,
			notes:   h.playBass(),
		},
	}
	if c.band.second != noProgram {
		s.parts = append(s.parts, part{
			name:    "second",
			channel: secondChannel,
			program: c.band.second,
			pan:     78,
			reverb:  55,
			level:   -8,
			notes:   h.playSecond(line),
		})
	}
	if c.band.pad != noProgram {
		s.parts = append(s.parts, part{
			name:    "pad",
			channel: padChannel,
			program: c.band.pad,
			pan:     84,
			reverb:  70,
			level:   -11,
			notes:   h.playPad(),
		})
	}
	if c.drums && len(c.metre.drums) > 0 {
		s.parts = append(s.parts, part{
			name:    "drums",
			channel: drumChannel,
			pan:     64,
			reverb:  40,
			level:   c.mood.beat,
			notes:   h.playDrums(),
		})
	}
	for i := range s.parts {
		s.parts[i].sortNotes()
	}
	return s
}

// tempoChanges returns the tempos of the tune. The tune slows down before the
// last chord and, depending on the mood, at the ends of phrases.
func (c *composer) tempoChanges() []tempoChange {
	h := performer{composer: c}
	all := []tempoChange{{0, c.tempo}}
	for _, s := range c.sections[:len(c.sections)-1] {
		if c.mood.free == 0 {
			break
		}
		next := (s.first + phraseBars) * c.bar
		all = append(all,
			tempoChange{h.tickAt(next - c.bar/2), c.tempo * (1 - c.mood.free/2)},
			tempoChange{h.tickAt(next - stepsPerBeat), c.tempo * (1 - c.mood.free)},
			tempoChange{h.tickAt(next), c.tempo})
	}
	for beat := range c.beats {
		slower := 1 - 0.16*float64(beat+1)/float64(c.beats)
		all = append(all, tempoChange{h.tickAt(c.last - (c.beats-beat)*stepsPerBeat), c.tempo * slower})
	}
	return append(all, tempoChange{h.tickAt(c.last), min(c.tempo*0.8, 110)})
}

// voiceChords returns the MIDI pitches of each chord, chosen so that each voice
// moves little from chord to chord.
func (c *composer) voiceChords() [][]int {
	all := make([][]int, len(c.changes))
	var before []int
	for i, ch := range c.changes {
		all[i] = voiceChord(ch.classes, before, c.mood.centre-11)
		before = all[i]
	}
	return all
}

// performer converts the composition to notes, with times in ticks.
type performer struct {
	*composer
	r *rand.Rand
}

// tickAt converts a time in semiquavers to ticks. With swing, the second half
// of a beat begins late.
func (h performer) tickAt(at int) int {
	beat := at / stepsPerBeat
	in := at % stepsPerBeat
	late := h.mood.swing * ticksPerBeat
	switch in {
	case 1:
		return beat*ticksPerBeat + int(late/2)
	case 2:
		return beat*ticksPerBeat + int(late)
	case 3:
		return beat*ticksPerBeat + int((late+ticksPerBeat)/2)
	}
	return beat * ticksPerBeat
}

// newNote returns a note that begins at the time at and ends at the time until,
// in semiquavers. part is the fraction of this time during which the note
// sounds. Start and velocity vary slightly at random.
func (h performer) newNote(at, until, pitch, velocity int, part float64) note {
	from := h.tickAt(at)
	length := max(int(float64(h.tickAt(until)-from)*part), ticksPerBeat/16)
	if at > 0 {
		from += int(float64(h.mood.loose) * max(min(h.r.NormFloat64(), 2), -2) / 2)
	}
	velocity += int(3 * max(min(h.r.NormFloat64(), 2), -2))
	return note{at: max(from, 0), length: length, pitch: pitch, velocity: min(max(velocity, 20), 122)}
}

// velocityAt returns the MIDI velocity at a time in semiquavers: higher in
// sections with many players, towards the third bar of a phrase, and on the
// beat.
func (h performer) velocityAt(at int) int {
	s := h.sectionAt(at)
	v := h.mood.loud + 3*s.players
	if s.theme != 0 {
		v += []int{-2, 1, 4, -1}[min(at/h.bar-s.first, phraseBars-1)]
	}
	switch {
	case at%h.bar == 0:
		v += 5
	case at%stepsPerBeat != 0:
		v -= 4
	}
	return v
}

func (h performer) playLead(line []melodyNote) []note {
	part := 0.95
	if h.mood.short {
		part = 0.75
	}
	var notes []note
	for i, t := range line {
		until := t.at + t.length
		if i == len(line)-1 {
			until = h.end + stepsPerBeat
			part = 1
		}
		notes = append(notes, h.newNote(t.at, until, h.ladder.pitchAt(t.place), h.velocityAt(t.at)+8, part))
	}
	return notes
}

// playSecond returns the notes of the second instrument, which plays the melody
// an octave lower in sections with many players.
func (h performer) playSecond(line []melodyNote) []note {
	var notes []note
	for _, t := range line {
		if h.sectionAt(t.at).players >= 2 {
			notes = append(notes, h.newNote(t.at, t.at+t.length, h.ladder.pitchAt(t.place)-12, h.velocityAt(t.at)-4, 0.92))
		}
	}
	return notes
}

func (h performer) playDrums() []note {
	var notes []note
	hit := func(at, key, velocity int) {
		notes = append(notes, h.newNote(at, at+1, key, velocity, 0.9))
	}
	loud := map[byte]int{'X': 12, 'x': 0, 'o': -22}
	for bar := h.intro; bar*h.bar < h.last; bar++ {
		s := h.sectionAt(bar * h.bar)
		turning := bar == s.first+phraseBars-1
		for i, line := range h.metre.drums {
			if s.players == 0 && i > 1 && len(h.metre.drums) > 2 {
				continue // in sections with the fewest players only two drums play
			}
			for step := range h.bar {
				at := bar*h.bar + step
				if more, ok := loud[line.pattern[step]]; ok && !(turning && step >= h.bar-stepsPerBeat && h.mood.loud > 90) {
					hit(at, line.key, h.velocityAt(at)-6+more)
				}
			}
		}
		if turning && h.mood.loud > 90 { // a drum fill leads to the next section
			for i, key := range []int{snare, snare, midTom, lowTom} {
				at := (bar+1)*h.bar - stepsPerBeat + i
				hit(at, key, h.velocityAt(at)-8+3*i)
			}
		}
		if bar == s.first && s.players >= 2 && h.mood.loud > 90 {
			hit(bar*h.bar, crash, h.mood.loud-8)
		}
	}
	final := h.metre.drums[0].key
	hit(h.last, final, h.mood.loud)
	if h.mood.loud > 90 {
		hit(h.last, crash, h.mood.loud)
	}
	return notes
}
