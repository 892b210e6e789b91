package music

// playChords returns the notes of the chord instrument, played in the style of
// the mood.
func (h performer) playChords(voices [][]int) []note {
	var notes []note
	for i, ch := range h.changes {
		v := voices[i]
		if ch.at >= h.last {
			return append(notes, h.playFinalChord(v)...)
		}
		switch h.metre.pulse {
		case brokenChords:
			notes = append(notes, h.playBroken(v, ch)...)
		case struckChords:
			for _, b := range parseRhythm(h.metre.figure, h.bar) {
				if at := ch.at/h.bar*h.bar + b.at; at >= ch.at && at < ch.at+ch.length {
					notes = append(notes, h.playBlock(v, at, min(at+b.length, ch.at+ch.length), -6)...)
				}
			}
		case waltzChords:
			for at := ch.at; at < ch.at+ch.length; at += stepsPerBeat {
				if at%h.bar != 0 {
					notes = append(notes, h.playBlock(v, at, at+stepsPerBeat/2, -8)...)
				}
			}
		}
	}
	return notes
}

// playBlock returns the notes of a chord that are struck almost together, from
// low to high.
func (h performer) playBlock(voices []int, at, until, louder int) []note {
	var notes []note
	for i, pitch := range voices {
		n := h.newNote(at, until, pitch, h.velocityAt(at)-12+louder, 0.9)
		n.at += i * h.mood.loose / 2
		notes = append(notes, n)
	}
	return notes
}

// playBroken returns the notes of a broken chord, one after the other. If the
// figure needs a fourth note and the chord has only three, the lowest note is
// repeated an octave higher.
func (h performer) playBroken(voices []int, ch chordChange) []note {
	var notes []note
	unit := h.bar / len(h.metre.figure)
	for at := ch.at; at < ch.at+ch.length; at += unit {
		n := int(h.metre.figure[at%h.bar/unit] - '0')
		pitch := voices[n%len(voices)] + 12*(n/len(voices))
		// Each note continues to sound while the next ones begin.
		until := min(at+4*unit, ch.at+ch.length)
		notes = append(notes, h.newNote(at, until, pitch, h.velocityAt(at)-14, 0.95))
	}
	return notes
}

// playFinalChord returns the notes of the last chord, slightly spread and
// sustained.
func (h performer) playFinalChord(voices []int) []note {
	var notes []note
	for i, pitch := range voices {
		n := h.newNote(h.last, h.end+stepsPerBeat, pitch, h.mood.loud-8, 1)
		n.at += i * 3 * h.mood.loose
		notes = append(notes, n)
	}
	return notes
}

// playPad returns the notes of the pad, which sustains the chords in the
// background, except in sections with few players.
func (h performer) playPad() []note {
	var notes []note
	var before []int
	for _, ch := range h.changes {
		v := voiceChord(ch.classes[:3], before, h.mood.centre-5)
		before = v
		if h.sectionAt(ch.at).players == 0 {
			continue
		}
		until := ch.at + ch.length
		if ch.at >= h.last {
			until = h.end + stepsPerBeat
		}
		for _, pitch := range v {
			notes = append(notes, h.newNote(ch.at, until, pitch, h.velocityAt(ch.at)-18, 1))
		}
	}
	return notes
}

// playBass returns the notes of the bass: the roots of the chords and,
// depending on the mood, notes between them.
func (h performer) playBass() []note {
	r := h.newRandom(bassStream)
	var notes []note
	before := 43
	for i, ch := range h.changes {
		if h.intro > 0 && ch.at < h.bar {
			continue // only the chords play in the first bar of the intro
		}
		root := bassPitch(ch.classes[0], before)
		before = root
		if ch.at >= h.last {
			return append(notes, h.newNote(h.last, h.end+stepsPerBeat, root, h.mood.loud, 1))
		}
		next := bassPitch(h.changes[i+1].classes[0], root)
		strike := func(at, until, pitch, louder int) {
			notes = append(notes, h.newNote(at, until, pitch, h.velocityAt(at)+louder, 0.9))
		}
		end := ch.at + ch.length
		fifth := bassPitch(ch.classes[2], root+4)
		switch h.mood.stride {
		case rootBass:
			strike(ch.at, end, root, 0)
		case fifthBass:
			half := ch.at + ch.length/2/stepsPerBeat*stepsPerBeat
			if ch.length <= stepsPerBeat || ch.length == h.bar && h.beats == 3 {
				strike(ch.at, end, root, 2)
				break
			}
			strike(ch.at, half, root, 2)
			if ch.length == h.bar && r.IntN(3) == 0 && next != root {
				strike(half, end-stepsPerBeat, fifth, -3)
				strike(end-stepsPerBeat, end, h.approachNote(next, root), -4)
				break
			}
			strike(half, end, fifth, -3)
		case walkingBass:
			third := bassPitch(ch.classes[1], root+4)
			steps := []int{root, third, fifth, third}
			for k := 0; ch.at+k*stepsPerBeat < end; k++ {
				pitch := steps[k%len(steps)]
				if ch.at+(k+1)*stepsPerBeat >= end && k > 0 && next != root {
					pitch = h.approachNote(next, root)
				}
				strike(ch.at+k*stepsPerBeat, ch.at+(k+1)*stepsPerBeat, pitch, -2*(k%2))
			}
		case drivingBass:
			for at := ch.at; at < end; at += stepsPerBeat / 2 {
				pitch := root
				if at == end-stepsPerBeat/2 && next != root {
					pitch = h.approachNote(next, root)
				}
				strike(at, at+stepsPerBeat/2, pitch, -2)
			}
		}
	}
	return notes
}

// bassPitch returns the MIDI pitch of a pitch class in the range of a bass, as
// near as possible to the previous note.
func bassPitch(class, before int) int {
	best := 36 + class%12
	for pitch := 33; pitch <= 52; pitch++ {
		if pitch%12 == class && distanceOf(pitch, before) < distanceOf(best, before) {
			best = pitch
		}
	}
	return best
}

// approachNote returns the note of the scale directly above or below the next
// root, on the side of the current note.
func (h performer) approachNote(next, from int) int {
	step := 1
	if from < next {
		step = -1
	}
	for pitch := next + step; ; pitch += step {
		_, class := divideFloor(pitch-h.key, 12)
		for _, s := range h.scale.steps {
			if s == class {
				return pitch
			}
		}
	}
}
