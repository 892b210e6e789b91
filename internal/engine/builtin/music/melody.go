package music

import (
	"math/rand/v2"
	"slices"
)

// motif is the rhythm and contour of a bar.
type motif []motifNote

// motifNote is a note of a motif: its time in the bar and its distance from the first note in
// rungs of the ladder.
type motifNote struct{ at, length, rise int }

// melodyNote is a note of the melody at a rung of the ladder.
type melodyNote struct{ at, length, place int }

// parseRhythm parses a pattern of x, - and . into a bar; bar is its length in semiquavers.
func parseRhythm(pattern string, bar int) motif {
	var m motif
	unit := bar / len(pattern)
	for i, letter := range pattern {
		switch {
		case letter == 'x':
			m = append(m, motifNote{at: i * unit, length: unit})
		case letter == '-' && len(m) > 0:
			m[len(m)-1].length += unit
		}
	}
	return m
}

// shapes are contours of a motif, in rungs of the ladder. A longer motif continues with the
// inverted contour.
var shapes = [][]int{
	{0, 1, 2, 1, 0}, {0, -1, -2, -1, 0}, {0, 1, 2, 3, 4}, {0, -1, -2, -3, -2}, {0, 0, 1, 0, -1},
	{0, 2, 1, 0, -1}, {0, 4, 3, 2, 1}, {0, -2, -1, 0, 1}, {0, 1, 0, 2, 1}, {0, 2, 4, 2, 0},
}

func (c *composer) newMotif(r *rand.Rand) motif {
	m := parseRhythm(pickOne(r, c.metre.rhythms), c.bar)
	shape := pickOne(r, shapes)
	for i := range m {
		n := i % (2*len(shape) - 2)
		if n >= len(shape) {
			n = 2*len(shape) - 2 - n
		}
		m[i].rise = shape[n]
	}
	return m
}

// invertMotif turns a motif upside down, which keeps it recognizable.
func (m motif) invertMotif() motif {
	m = slices.Clone(m)
	for i := range m {
		m[i].rise = -m[i].rise
	}
	return m
}

// theme is the melodic material that sections of one letter share.
type theme struct {
	motifs  [3]motif // motifs of the first three bars
	heights [3]int   // their first notes, in rungs above the centre
}

// newThemes makes the themes of a tune. The second and third are derived from the first: its
// rhythm or its contour, at another height.
func (c *composer) newThemes(r *rand.Rand) map[byte]theme {
	one := c.newMotif(r)
	two := c.newMotif(r)
	arc := pickOne(r, [][3]int{{0, 1, 2}, {0, -1, 1}, {1, 0, 2}, {0, 2, 3}, {2, 1, 0}})
	a := theme{motifs: [3]motif{one, one, two}, heights: arc}
	if r.IntN(2) == 0 {
		a.motifs = [3]motif{one, two, one}
	}
	b := theme{motifs: [3]motif{one.invertMotif(), one.invertMotif(), two}, heights: [3]int{3, 4, 2}}
	if r.IntN(2) == 0 {
		fresh := c.newMotif(r)
		b = theme{motifs: [3]motif{fresh, fresh, one}, heights: [3]int{4, 3, 5}}
	}
	d := theme{motifs: [3]motif{two.invertMotif(), c.newMotif(r), two}, heights: [3]int{-2, -1, 3}}
	return map[byte]theme{'A': a, 'B': b, 'C': d}
}

// Rhythms of the bar that ends a phrase.
var (
	pauseRhythms = map[int][]string{4: {"x-x-x---", "x---x---", "x-----..", "x-xxx---"}, 3: {"x-x---", "x---..", "x---x-"}}
	closeRhythms = map[int][]string{4: {"x-----..", "x---x---", "x-x-x---"}, 3: {"x---..", "x-x---"}}
)

// composeMelody composes the whole melody.
func (c *composer) composeMelody() []melodyNote {
	r := c.newRandom(melodyStream)
	themes := c.newThemes(r)
	middle := c.ladder.nearestRung(c.mood.centre)
	starts := map[byte][]melodyNote{} // the first two bars of each theme
	var line []melodyNote
	for _, s := range c.sections {
		t := themes[s.theme]
		begin, ok := starts[s.theme]
		if !ok {
			for i := range 2 {
				begin = append(begin, c.placeMotif(t.motifs[i], i, s.first, middle+t.heights[i])...)
			}
			starts[s.theme] = begin
		}
		from := len(line)
		for _, n := range begin {
			n.at += s.first * c.bar
			line = append(line, n)
		}
		for _, n := range c.placeMotif(t.motifs[2], 2, s.first, middle+t.heights[2]) {
			n.at += s.first * c.bar
			line = append(line, n)
		}
		line = c.endPhrase(r, line, s)
		if s.repeats > 0 && !s.last && r.IntN(2) == 0 || s.last {
			line = c.varyPhrase(r, line, from)
		}
	}
	line = c.addPickups(r, line)
	c.smoothLine(line)
	// The last note is the nearest tonic, even if smoothing moved it.
	n := len(c.ladder.rungs)
	octave, _ := divideFloor(line[len(line)-2].place+n/2, n)
	line[len(line)-1].place = octave * n
	return line
}

// placeMotif puts a motif into bar i of a phrase, near a height. Times are relative to the
// phrase's beginning.
func (c *composer) placeMotif(m motif, i, first, height int) []melodyNote {
	var line []melodyNote
	base := 0
	for k, b := range m {
		t := melodyNote{at: i*c.bar + b.at, length: b.length}
		absolute := t
		absolute.at += first * c.bar
		if k == 0 {
			base = c.ladder.nearestChordRung(height, c.chordUnder(absolute).classes)
		}
		t.place = base + b.rise
		if c.isChordNote(absolute) {
			t.place = c.ladder.nearestChordRung(t.place, c.chordUnder(absolute).classes)
		}
		line = append(line, t)
	}
	return line
}

// strongBeat returns the strong beat that a note sounds at. It returns false if there is none.
func (c *composer) strongBeat(t melodyNote) (int, bool) {
	strong := c.bar
	if c.beats == 4 {
		strong = 2 * stepsPerBeat
	}
	if at := (t.at + strong - 1) / strong * strong; at < t.at+t.length {
		return at, true
	}
	return 0, false
}

// isChordNote reports whether a note must belong to the chord: notes on strong beats and long
// notes.
func (c *composer) isChordNote(t melodyNote) bool {
	_, strong := c.strongBeat(t)
	return strong || t.length > stepsPerBeat
}

// chordUnder returns the chord that a note must fit. For a note that is held into a strong beat it
// is the chord there.
func (c *composer) chordUnder(t melodyNote) chordChange {
	if at, strong := c.strongBeat(t); strong {
		return c.chordAt(at)
	}
	return c.chordAt(t.at)
}

// endPhrase ends a phrase on the tonic, or openly.
func (c *composer) endPhrase(r *rand.Rand, line []melodyNote, s section) []melodyNote {
	at := (s.first + phraseBars - 1) * c.bar
	before := &line[len(line)-1]
	if !s.closes {
		place := before.place
		for _, b := range parseRhythm(pickOne(r, pauseRhythms[c.beats]), c.bar) {
			t := melodyNote{at: at + b.at, length: b.length}
			t.place = c.ladder.nearestChordRung(place, c.chordUnder(t).classes)
			place = t.place - 1 + r.IntN(3)
			line = append(line, t)
		}
		return line
	}
	home, _ := divideFloor(before.place+len(c.ladder.rungs)/2, len(c.ladder.rungs))
	home *= len(c.ladder.rungs)
	// The note before leads to the tonic by a step.
	before.place = c.ladder.nearestChordRung(home+1, c.chordUnder(*before).classes)
	if s.last {
		return append(line, melodyNote{at: at, length: c.bar, place: home})
	}
	m := parseRhythm(pickOne(r, closeRhythms[c.beats]), c.bar)
	for i, b := range m {
		place := home // the last note is the tonic; notes before it may be above
		if i < len(m)-1 {
			place += 2 - i%2
		}
		t := melodyNote{at: at + b.at, length: b.length, place: place}
		if c.isChordNote(t) {
			t.place = c.ladder.nearestChordRung(t.place, c.chordUnder(t).classes)
		}
		line = append(line, t)
	}
	line[len(line)-1].place = home
	return line
}

// varyPhrase varies a phrase that was played before: it fills leaps with the note between, and
// long notes with their neighbour.
func (c *composer) varyPhrase(r *rand.Rand, line []melodyNote, from int) []melodyNote {
	var out []melodyNote
	for i, t := range line[from:] {
		next := from + i + 1
		if next >= len(line) || t.length < stepsPerBeat || t.length > 2*stepsPerBeat || r.IntN(3) > 0 {
			out = append(out, t)
			continue
		}
		way := line[next].place - t.place
		between := t.place + 1
		switch {
		case way > 1:
			between = line[next].place - 1
		case way < -1:
			between = line[next].place + 1
		case way != 0:
			out = append(out, t)
			continue
		}
		half := t.length / 2
		out = append(out, melodyNote{t.at, t.length - half, t.place}, melodyNote{t.at + t.length - half, half, between})
	}
	return append(line[:from:from], out...)
}

// addPickups leads into phrases with two quavers from below, if the bar before leaves room.
func (c *composer) addPickups(r *rand.Rand, line []melodyNote) []melodyNote {
	var out []melodyNote
	for i, t := range line {
		opens := t.at >= c.bar && t.at == c.sectionAt(t.at).first*c.bar && c.sectionAt(t.at).theme != 0
		if opens && r.IntN(2) == 0 {
			room := t.at - stepsPerBeat
			if i > 0 {
				before := &out[len(out)-1]
				if before.at+before.length > room && before.length > stepsPerBeat && before.at < room {
					before.length = room - before.at
				}
				if before.at+before.length > room {
					out = append(out, t)
					continue
				}
			}
			out = append(out, melodyNote{room, stepsPerBeat / 2, t.place - 2}, melodyNote{room + stepsPerBeat/2, stepsPerBeat / 2, t.place - 1})
		}
		out = append(out, t)
	}
	return out
}

// smoothLine keeps the melody singable: within its range, without wide leaps, and with notes
// foreign to their chord only between neighbours.
func (c *composer) smoothLine(line []melodyNote) {
	octave := len(c.ladder.rungs)
	const below, above, widest = 10, 14, 9
	for i := range line {
		t := &line[i]
		for c.ladder.pitchAt(t.place) > c.mood.centre+above {
			t.place -= octave
		}
		for c.ladder.pitchAt(t.place) < c.mood.centre-below {
			t.place += octave
		}
		if i == 0 || i == len(line)-1 {
			continue
		}
		before := line[i-1].place
		if leap := c.ladder.pitchAt(t.place) - c.ladder.pitchAt(before); leap > widest || leap < -widest {
			t.place = c.ladder.nearestChordRung((t.place+before)/2, c.chordUnder(*t).classes)
		}
	}
	for again := true; again; {
		again = false
		for i := range line[:len(line)-1] {
			t := &line[i]
			chord := c.chordUnder(*t).classes
			if c.ladder.isInChord(t.place, chord) {
				continue
			}
			passing := i > 0 && distanceOf(t.place, line[i-1].place) <= 1 && distanceOf(t.place, line[i+1].place) <= 1
			if c.isChordNote(*t) || !passing {
				t.place = c.ladder.nearestChordRung(t.place, chord)
				again = true
			}
		}
	}
}
