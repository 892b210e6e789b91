package music

import (
	"math/rand/v2"
)

// ringing is how long the last chord dies away, in beats of the final tempo.
const ringing = 5

// The channels of the parts. The tenth has the drums, in General MIDI.
const (
	leadChannel = iota
	secondChannel
	chordChannel
	bassChannel
	padChannel
	drumChannel = 9
)

// perform gives every instrument its part and plays them as people do: not
// quite on time, not equally loud, slower at the end.
func (c *composer) perform() *score {
	line := c.melody()
	h := hands{composer: c, r: c.chance(ofHands)}
	s := &score{beats: c.beats, tempos: c.tempos(), end: h.tick(c.end) + ringing*ticks}
	voices := c.voices()
	s.parts = []part{
		{
			name:    "melody",
			channel: leadChannel,
			program: c.band.lead,
			pan:     64,
			reverb:  55,
			notes:   h.lead(line),
		},
		{
			name:    "chords",
			channel: chordChannel,
			program: c.band.chords,
			pan:     44,
			reverb:  50,
			level:   -6,
			notes:   h.chords(voices),
		},
		{
			name:    "bass",
			channel: bassChannel,
			program: c.band.bass,
			pan:     64,
			reverb:  25,
			level:   -6,
			notes:   h.bass(),
		},
	}
	if c.band.second != nobody {
		s.parts = append(s.parts, part{
			name:    "second",
			channel: secondChannel,
			program: c.band.second,
			pan:     78,
			reverb:  55,
			level:   -8,
			notes:   h.second(line),
		})
	}
	if c.band.pad != nobody {
		s.parts = append(s.parts, part{
			name:    "pad",
			channel: padChannel,
			program: c.band.pad,
			pan:     84,
			reverb:  70,
			level:   -11,
			notes:   h.pad(),
		})
	}
	if c.drums && len(c.metre.drums) > 0 {
		s.parts = append(s.parts, part{
			name:    "drums",
			channel: drumChannel,
			pan:     64,
			reverb:  40,
			level:   c.mood.beat,
			notes:   h.drums(),
		})
	}
	for i := range s.parts {
		s.parts[i].tidy()
	}
	return s
}

// tempos slow down where phrases end, as far as the mood is free, and for good
// before the last chord.
func (c *composer) tempos() []tempo {
	h := hands{composer: c}
	all := []tempo{{0, c.tempo}}
	for _, s := range c.sections[:len(c.sections)-1] {
		if c.mood.free == 0 {
			break
		}
		next := (s.first + phrase) * c.bar
		all = append(all,
			tempo{h.tick(next - c.bar/2), c.tempo * (1 - c.mood.free/2)},
			tempo{h.tick(next - quarter), c.tempo * (1 - c.mood.free)},
			tempo{h.tick(next), c.tempo})
	}
	for beat := range c.beats {
		slower := 1 - 0.16*float64(beat+1)/float64(c.beats)
		all = append(all, tempo{h.tick(c.last - (c.beats-beat)*quarter), c.tempo * slower})
	}
	return append(all, tempo{h.tick(c.last), min(c.tempo*0.8, 110)})
}

// voices gives the notes of each chord, one leading to the next.
func (c *composer) voices() [][]int {
	all := make([][]int, len(c.changes))
	var before []int
	for i, ch := range c.changes {
		all[i] = voicing(ch.classes, before, c.mood.centre-11)
		before = all[i]
	}
	return all
}

// hands turn times of the grid into notes.
type hands struct {
	*composer
	r *rand.Rand
}

// tick gives the time of a semiquaver. With swing, the second quaver of a beat
// comes late.
func (h hands) tick(at int) int {
	beat := at / quarter
	in := at % quarter
	late := h.mood.swing * ticks
	switch in {
	case 1:
		return beat*ticks + int(late/2)
	case 2:
		return beat*ticks + int(late)
	case 3:
		return beat*ticks + int((late+ticks)/2)
	}
	return beat * ticks
}

// play makes a note from at to until, as long as part says of that.
func (h hands) play(at, until, pitch, velocity int, part float64) note {
	from := h.tick(at)
	length := max(int(float64(h.tick(until)-from)*part), ticks/16)
	if at > 0 {
		from += int(float64(h.mood.loose) * max(min(h.r.NormFloat64(), 2), -2) / 2)
	}
	velocity += int(3 * max(min(h.r.NormFloat64(), 2), -2))
	return note{at: max(from, 0), length: length, pitch: pitch, velocity: min(max(velocity, 20), 122)}
}

// swell is how loud a time is: louder in full phrases and towards their third
// bar, and with the beat.
func (h hands) swell(at int) int {
	s := h.section(at)
	v := h.mood.loud + 3*s.full
	if s.theme != 0 {
		v += []int{-2, 1, 4, -1}[min(at/h.bar-s.first, phrase-1)]
	}
	switch {
	case at%h.bar == 0:
		v += 5
	case at%quarter != 0:
		v -= 4
	}
	return v
}

func (h hands) lead(line []tone) []note {
	part := 0.95
	if h.mood.short {
		part = 0.75
	}
	var notes []note
	for i, t := range line {
		until := t.at + t.length
		if i == len(line)-1 {
			until = h.end + quarter
			part = 1
		}
		notes = append(notes, h.play(t.at, until, h.ladder.pitch(t.place), h.swell(t.at)+8, part))
	}
	return notes
}

// second doubles the melody an octave below where most play.
func (h hands) second(line []tone) []note {
	var notes []note
	for _, t := range line {
		if h.section(t.at).full >= 2 {
			notes = append(notes, h.play(t.at, t.at+t.length, h.ladder.pitch(t.place)-12, h.swell(t.at)-4, 0.92))
		}
	}
	return notes
}

func (h hands) drums() []note {
	var notes []note
	hit := func(at, key, velocity int) {
		notes = append(notes, h.play(at, at+1, key, velocity, 0.9))
	}
	loud := map[byte]int{'X': 12, 'x': 0, 'o': -22}
	for bar := h.intro; bar*h.bar < h.last; bar++ {
		s := h.section(bar * h.bar)
		turning := bar == s.first+phrase-1
		for i, line := range h.metre.drums {
			if s.full == 0 && i > 1 && len(h.metre.drums) > 2 {
				continue // few at first
			}
			for step := range h.bar {
				at := bar*h.bar + step
				if more, ok := loud[line.pattern[step]]; ok && !(turning && step >= h.bar-quarter && h.mood.loud > 90) {
					hit(at, line.key, h.swell(at)-6+more)
				}
			}
		}
		if turning && h.mood.loud > 90 { // a fill into what comes
			for i, key := range []int{snare, snare, midTom, lowTom} {
				at := (bar+1)*h.bar - quarter + i
				hit(at, key, h.swell(at)-8+3*i)
			}
		}
		if bar == s.first && s.full >= 2 && h.mood.loud > 90 {
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
