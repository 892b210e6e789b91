package music

import (
	"math/rand/v2"
	"slices"
)

// motif is a list of the notes of one bar of a melody, as a rhythm and a
// contour.
type motif []motifNote

// motifNote is a note of a motif: its start and length in semiquavers, and its
// distance above the first note, in notes of the scale.
type motifNote struct{ at, length, rise int }

// melodyNote is a note of the melody: its start and length in semiquavers, and
// its rung in the ladder, which lists the notes that a melody may use.
type melodyNote struct{ at, length, place int }

// parseRhythm parses the rhythm of a bar: x begins a note, - continues it, . is
// a rest. bar is the length of the bar in semiquavers.
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

// shapes are possible contours of a motif, in notes of the scale above the
// first note. A motif with more notes repeats the contour, alternately
// backwards and forwards.
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

// invertMotif returns the motif upside down: rising notes fall and falling
// notes rise. The motif remains recognizable.
func (m motif) invertMotif() motif {
	m = slices.Clone(m)
	for i := range m {
		m[i].rise = -m[i].rise
	}
	return m
}

// theme is the melody of the first three bars of all sections with the same
// theme letter.
type theme struct {
	motifs  [3]motif // motifs of the first three bars of a phrase
	heights [3]int   // first notes of the motifs, in notes of the scale above the centre
}

// newThemes returns the three themes of a tune by their letters. The second and
// third reuse motifs of the first, partly inverted, at another height.
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

// Rhythms of the last bar of a phrase, by beats per bar: for phrases that do
// not end on the tonic, and for phrases that do.
var (
	pauseRhythms = map[int][]string{4: {"x-x-x---", "x---x---", "x-----..", "x-xxx---"}, 3: {"x-x---", "x---..", "x---x-"}}
	closeRhythms = map[int][]string{4: {"x-----..", "x---x---", "x-x-x---"}, 3: {"x---..", "x-x---"}}
)

// composeMelody composes the melody of the whole tune.
func (c *composer) composeMelody() []melodyNote {
	r := c.newRandom(melodyStream)
	themes := c.newThemes(r)
	middle := c.ladder.nearestRung(c.mood.centre)
	starts := map[byte][]melodyNote{} // notes of the first two bars of each theme
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
	// Smoothing may have moved the last note. The last note becomes the tonic
	// nearest to the note before.
	n := len(c.ladder.rungs)
	octave, _ := divideFloor(line[len(line)-2].place+n/2, n)
	line[len(line)-1].place = octave * n
	return line
}

// placeMotif returns the notes of a motif in bar i of a phrase, near a height.
// Their times are relative to the start of the phrase; first is the phrase's
// first bar in the tune.
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

// strongBeat returns the time of the first strong beat during a note. It
// returns false if there is none.
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

// isChordNote reports whether a note must belong to the current chord, which
// applies to long notes and to notes that sound on a strong beat.
func (c *composer) isChordNote(t melodyNote) bool {
	_, strong := c.strongBeat(t)
	return strong || t.length > stepsPerBeat
}

// chordUnder returns the chord that a note should fit. If the note lasts into a
// strong beat, this is the chord at that beat.
func (c *composer) chordUnder(t melodyNote) chordChange {
	if at, strong := c.strongBeat(t); strong {
		return c.chordAt(at)
	}
	return c.chordAt(t.at)
}

// endPhrase adds the last bar of a phrase, which ends on the tonic or, if the
// section does not close, on any note of the chord.
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
	// The note before the last bar leads to the tonic by a step.
	before.place = c.ladder.nearestChordRung(home+1, c.chordUnder(*before).classes)
	if s.last {
		return append(line, melodyNote{at: at, length: c.bar, place: home})
	}
	m := parseRhythm(pickOne(r, closeRhythms[c.beats]), c.bar)
	for i, b := range m {
		place := home // the last note is the tonic, earlier notes may be higher
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

// varyPhrase varies a phrase that was played before. It adds a note within
// leaps, and splits long notes that are repeated.
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

// addPickups adds two short notes from below before the first note of some
// phrases, if the previous bar leaves room for them.
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

// smoothLine makes the melody easy to sing: within a limited range and without
// wide leaps. Notes outside of the chord are allowed only as a step between
// their neighbours.
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
