package music

import (
	"math/rand/v2"
	"slices"
)

// motif is the rhythm and the shape of a bar.
type motif []beat

// beat is a note of a motif: its time in the bar and its place above the first
// one's.
type beat struct{ at, length, rise int }

// tone is a note of the melody, at a place of the ladder.
type tone struct{ at, length, place int }

// rhythm reads a pattern of x, - and . into a bar of so many semiquavers.
func rhythm(pattern string, bar int) motif {
	var m motif
	unit := bar / len(pattern)
	for i, letter := range pattern {
		switch {
		case letter == 'x':
			m = append(m, beat{at: i * unit, length: unit})
		case letter == '-' && len(m) > 0:
			m[len(m)-1].length += unit
		}
	}
	return m
}

// shapes are ways that a motif can go, in places of the ladder. A longer motif
// goes on with the shape turned around.
var shapes = [][]int{
	{0, 1, 2, 1, 0}, {0, -1, -2, -1, 0}, {0, 1, 2, 3, 4}, {0, -1, -2, -3, -2}, {0, 0, 1, 0, -1},
	{0, 2, 1, 0, -1}, {0, 4, 3, 2, 1}, {0, -2, -1, 0, 1}, {0, 1, 0, 2, 1}, {0, 2, 4, 2, 0},
}

func (c *composer) motif(r *rand.Rand) motif {
	m := rhythm(pick(r, c.metre.rhythms), c.bar)
	shape := pick(r, shapes)
	for i := range m {
		n := i % (2*len(shape) - 2)
		if n >= len(shape) {
			n = 2*len(shape) - 2 - n
		}
		m[i].rise = shape[n]
	}
	return m
}

// mirrored turns a motif upside down, which keeps it known.
func (m motif) mirrored() motif {
	m = slices.Clone(m)
	for i := range m {
		m[i].rise = -m[i].rise
	}
	return m
}

// theme is what the phrases of a letter have in common.
type theme struct {
	motifs  [3]motif // of the first three bars
	heights [3]int   // where they begin, in places above the middle
}

// themes makes what the tune is about. The second and third theme come from
// the first: its rhythm or its shape, elsewhere.
func (c *composer) themes(r *rand.Rand) map[byte]theme {
	one := c.motif(r)
	two := c.motif(r)
	arc := pick(r, [][3]int{{0, 1, 2}, {0, -1, 1}, {1, 0, 2}, {0, 2, 3}, {2, 1, 0}})
	a := theme{motifs: [3]motif{one, one, two}, heights: arc}
	if r.IntN(2) == 0 {
		a.motifs = [3]motif{one, two, one}
	}
	b := theme{motifs: [3]motif{one.mirrored(), one.mirrored(), two}, heights: [3]int{3, 4, 2}}
	if r.IntN(2) == 0 {
		fresh := c.motif(r)
		b = theme{motifs: [3]motif{fresh, fresh, one}, heights: [3]int{4, 3, 5}}
	}
	d := theme{motifs: [3]motif{two.mirrored(), c.motif(r), two}, heights: [3]int{-2, -1, 3}}
	return map[byte]theme{'A': a, 'B': b, 'C': d}
}

// Rhythms of the bar that ends a phrase.
var (
	pausing = map[int][]string{4: {"x-x-x---", "x---x---", "x-----..", "x-xxx---"}, 3: {"x-x---", "x---..", "x---x-"}}
	closing = map[int][]string{4: {"x-----..", "x---x---", "x-x-x---"}, 3: {"x---..", "x-x---"}}
)

// melody composes the whole line.
func (c *composer) melody() []tone {
	r := c.chance(ofMelody)
	themes := c.themes(r)
	middle := c.ladder.at(c.mood.centre)
	starts := map[byte][]tone{} // the first two bars of each theme
	var line []tone
	for _, s := range c.sections {
		t := themes[s.theme]
		begin, ok := starts[s.theme]
		if !ok {
			for i := range 2 {
				begin = append(begin, c.place(t.motifs[i], i, s.first, middle+t.heights[i])...)
			}
			starts[s.theme] = begin
		}
		from := len(line)
		for _, n := range begin {
			n.at += s.first * c.bar
			line = append(line, n)
		}
		for _, n := range c.place(t.motifs[2], 2, s.first, middle+t.heights[2]) {
			n.at += s.first * c.bar
			line = append(line, n)
		}
		line = c.cadence(r, line, s)
		if s.turn > 0 && !s.last && r.IntN(2) == 0 || s.last {
			line = c.adorn(r, line, from)
		}
	}
	line = c.pickups(r, line)
	c.smooth(line)
	// Whatever was smoothed, it ends at home, and as near as can be.
	n := len(c.ladder.rungs)
	octave, _ := fold(line[len(line)-2].place+n/2, n)
	line[len(line)-1].place = octave * n
	return line
}

// place sets a motif into bar i of a phrase, near a height. Times are from the
// phrase's beginning.
func (c *composer) place(m motif, i, first, height int) []tone {
	var line []tone
	base := 0
	for k, b := range m {
		t := tone{at: i*c.bar + b.at, length: b.length}
		absolute := t
		absolute.at += first * c.bar
		if k == 0 {
			base = c.ladder.near(height, c.under(absolute).classes)
		}
		t.place = base + b.rise
		if c.weighty(absolute) {
			t.place = c.ladder.near(t.place, c.under(absolute).classes)
		}
		line = append(line, t)
	}
	return line
}

// accent gives the strong time that a note sounds at, false where there is
// none.
func (c *composer) accent(t tone) (int, bool) {
	strong := c.bar
	if c.beats == 4 {
		strong = 2 * quarter
	}
	if at := (t.at + strong - 1) / strong * strong; at < t.at+t.length {
		return at, true
	}
	return 0, false
}

// weighty notes are heard as part of the chord: those at strong times, and long
// ones.
func (c *composer) weighty(t tone) bool {
	_, strong := c.accent(t)
	return strong || t.length > quarter
}

// under gives the chord that a note has to agree with. Where it is held into a
// strong time, it is the one there.
func (c *composer) under(t tone) change {
	if at, strong := c.accent(t); strong {
		return c.chord(at)
	}
	return c.chord(t.at)
}

// cadence ends a phrase: with a question, or at home.
func (c *composer) cadence(r *rand.Rand, line []tone, s section) []tone {
	at := (s.first + phrase - 1) * c.bar
	before := &line[len(line)-1]
	if !s.shut {
		place := before.place
		for _, b := range rhythm(pick(r, pausing[c.beats]), c.bar) {
			t := tone{at: at + b.at, length: b.length}
			t.place = c.ladder.near(place, c.under(t).classes)
			place = t.place - 1 + r.IntN(3)
			line = append(line, t)
		}
		return line
	}
	home, _ := fold(before.place+len(c.ladder.rungs)/2, len(c.ladder.rungs))
	home *= len(c.ladder.rungs)
	// The note before leads home by a step.
	before.place = c.ladder.near(home+1, c.under(*before).classes)
	if s.last {
		return append(line, tone{at: at, length: c.bar, place: home})
	}
	m := rhythm(pick(r, closing[c.beats]), c.bar)
	for i, b := range m {
		place := home // the last is home, on the way there it may hang above
		if i < len(m)-1 {
			place += 2 - i%2
		}
		t := tone{at: at + b.at, length: b.length, place: place}
		if c.weighty(t) {
			t.place = c.ladder.near(t.place, c.under(t).classes)
		}
		line = append(line, t)
	}
	line[len(line)-1].place = home
	return line
}

// adorn varies a phrase that was heard before: it fills leaps with the note
// between, and long notes with their neighbour.
func (c *composer) adorn(r *rand.Rand, line []tone, from int) []tone {
	var out []tone
	for i, t := range line[from:] {
		next := from + i + 1
		if next >= len(line) || t.length < quarter || t.length > 2*quarter || r.IntN(3) > 0 {
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
		out = append(out, tone{t.at, t.length - half, t.place}, tone{t.at + t.length - half, half, between})
	}
	return append(line[:from:from], out...)
}

// pickups lead into phrases with two quavers from below, where the bar before
// leaves room.
func (c *composer) pickups(r *rand.Rand, line []tone) []tone {
	var out []tone
	for i, t := range line {
		opens := t.at >= c.bar && t.at == c.section(t.at).first*c.bar && c.section(t.at).theme != 0
		if opens && r.IntN(2) == 0 {
			room := t.at - quarter
			if i > 0 {
				before := &out[len(out)-1]
				if before.at+before.length > room && before.length > quarter && before.at < room {
					before.length = room - before.at
				}
				if before.at+before.length > room {
					out = append(out, t)
					continue
				}
			}
			out = append(out, tone{room, quarter / 2, t.place - 2}, tone{room + quarter/2, quarter / 2, t.place - 1})
		}
		out = append(out, t)
	}
	return out
}

// smooth keeps the line singable: within its range, without wide leaps, and a
// note foreign to its chord only between neighbours.
func (c *composer) smooth(line []tone) {
	octave := len(c.ladder.rungs)
	const below, above, widest = 10, 14, 9
	for i := range line {
		t := &line[i]
		for c.ladder.pitch(t.place) > c.mood.centre+above {
			t.place -= octave
		}
		for c.ladder.pitch(t.place) < c.mood.centre-below {
			t.place += octave
		}
		if i == 0 || i == len(line)-1 {
			continue
		}
		before := line[i-1].place
		if leap := c.ladder.pitch(t.place) - c.ladder.pitch(before); leap > widest || leap < -widest {
			t.place = c.ladder.near((t.place+before)/2, c.under(*t).classes)
		}
	}
	for again := true; again; {
		again = false
		for i := range line[:len(line)-1] {
			t := &line[i]
			chord := c.under(*t).classes
			if c.ladder.in(t.place, chord) {
				continue
			}
			passing := i > 0 && far(t.place, line[i-1].place) <= 1 && far(t.place, line[i+1].place) <= 1
			if c.weighty(*t) || !passing {
				t.place = c.ladder.near(t.place, chord)
				again = true
			}
		}
	}
}
