package music

// chords plays the harmony in the way of the mood.
func (h hands) chords(voices [][]int) []note {
	var notes []note
	for i, ch := range h.changes {
		v := voices[i]
		if ch.at >= h.last {
			return append(notes, h.farewell(v)...)
		}
		switch h.metre.pulse {
		case broken:
			notes = append(notes, h.broken(v, ch)...)
		case struck:
			for _, b := range rhythm(h.metre.figure, h.bar) {
				if at := ch.at/h.bar*h.bar + b.at; at >= ch.at && at < ch.at+ch.length {
					notes = append(notes, h.block(v, at, min(at+b.length, ch.at+ch.length), -6)...)
				}
			}
		case waltz:
			for at := ch.at; at < ch.at+ch.length; at += quarter {
				if at%h.bar != 0 {
					notes = append(notes, h.block(v, at, at+quarter/2, -8)...)
				}
			}
		}
	}
	return notes
}

// block strikes the notes of a chord nearly at once, low ones first.
func (h hands) block(voices []int, at, until, louder int) []note {
	var notes []note
	for i, pitch := range voices {
		n := h.play(at, until, pitch, h.swell(at)-12+louder, 0.9)
		n.at += i * h.mood.loose / 2
		notes = append(notes, n)
	}
	return notes
}

// broken plays a chord note by note, in quavers. A figure of four notes takes
// the root an octave up where the chord has three.
func (h hands) broken(voices []int, ch change) []note {
	var notes []note
	unit := h.bar / len(h.metre.figure)
	for at := ch.at; at < ch.at+ch.length; at += unit {
		n := int(h.metre.figure[at%h.bar/unit] - '0')
		pitch := voices[n%len(voices)] + 12*(n/len(voices))
		// The notes of a chord ring into each other.
		until := min(at+4*unit, ch.at+ch.length)
		notes = append(notes, h.play(at, until, pitch, h.swell(at)-14, 0.95))
	}
	return notes
}

// farewell is the last chord, spread a little and left to ring.
func (h hands) farewell(voices []int) []note {
	var notes []note
	for i, pitch := range voices {
		n := h.play(h.last, h.end+quarter, pitch, h.mood.loud-8, 1)
		n.at += i * 3 * h.mood.loose
		notes = append(notes, n)
	}
	return notes
}

// pad holds chords above the others, where more than the first few play.
func (h hands) pad() []note {
	var notes []note
	var before []int
	for _, ch := range h.changes {
		v := voicing(ch.classes[:3], before, h.mood.centre-5)
		before = v
		if h.section(ch.at).full == 0 {
			continue
		}
		until := ch.at + ch.length
		if ch.at >= h.last {
			until = h.end + quarter
		}
		for _, pitch := range v {
			notes = append(notes, h.play(ch.at, until, pitch, h.swell(ch.at)-18, 1))
		}
	}
	return notes
}

// bass plays the roots and, as the mood goes, what lies between them.
func (h hands) bass() []note {
	r := h.chance(ofBass)
	var notes []note
	before := 43
	for i, ch := range h.changes {
		if h.intro > 0 && ch.at < h.bar {
			continue // the chords are alone for a bar
		}
		root := low(ch.classes[0], before)
		before = root
		if ch.at >= h.last {
			return append(notes, h.play(h.last, h.end+quarter, root, h.mood.loud, 1))
		}
		next := low(h.changes[i+1].classes[0], root)
		strike := func(at, until, pitch, louder int) {
			notes = append(notes, h.play(at, until, pitch, h.swell(at)+louder, 0.9))
		}
		end := ch.at + ch.length
		fifth := low(ch.classes[2], root+4)
		switch h.mood.stride {
		case roots:
			strike(ch.at, end, root, 0)
		case fifths:
			half := ch.at + ch.length/2/quarter*quarter
			if ch.length <= quarter || ch.length == h.bar && h.beats == 3 {
				strike(ch.at, end, root, 2)
				break
			}
			strike(ch.at, half, root, 2)
			if ch.length == h.bar && r.IntN(3) == 0 && next != root {
				strike(half, end-quarter, fifth, -3)
				strike(end-quarter, end, h.approach(next, root), -4)
				break
			}
			strike(half, end, fifth, -3)
		case walking:
			third := low(ch.classes[1], root+4)
			steps := []int{root, third, fifth, third}
			for k := 0; ch.at+k*quarter < end; k++ {
				pitch := steps[k%len(steps)]
				if ch.at+(k+1)*quarter >= end && k > 0 && next != root {
					pitch = h.approach(next, root)
				}
				strike(ch.at+k*quarter, ch.at+(k+1)*quarter, pitch, -2*(k%2))
			}
		case driving:
			for at := ch.at; at < end; at += quarter / 2 {
				pitch := root
				if at == end-quarter/2 && next != root {
					pitch = h.approach(next, root)
				}
				strike(at, at+quarter/2, pitch, -2)
			}
		}
	}
	return notes
}

// low gives a pitch class in the range of a bass, nearest to where it was.
func low(class, before int) int {
	best := 36 + class%12
	for pitch := 33; pitch <= 52; pitch++ {
		if pitch%12 == class && far(pitch, before) < far(best, before) {
			best = pitch
		}
	}
	return best
}

// approach gives the note of the scale beside the next root, from the side
// where the bass is.
func (h hands) approach(next, from int) int {
	step := 1
	if from < next {
		step = -1
	}
	for pitch := next + step; ; pitch += step {
		_, class := fold(pitch-h.key, 12)
		for _, s := range h.scale.steps {
			if s == class {
				return pitch
			}
		}
	}
}
