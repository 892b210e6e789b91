package music

import (
	"slices"
	"strings"
)

// keys maps the names of musical keys to their tonics, in semitones above C.
var keys = map[string]int{
	"C": 0, "Db": 1, "D": 2, "Eb": 3, "E": 4, "F": 5, "Gb": 6, "G": 7, "Ab": 8, "A": 9, "Bb": 10, "B": 11,
}

// scale contains seven notes and chord progressions for them. A progression
// names a chord for each bar by the degree of its root; a comma separates two
// chords in one bar. Each scale has its own progressions, which avoid its
// diminished chords.
type scale struct {
	steps  []int // distances of the notes above the tonic, in semitones
	melody []int // degrees that a melody may use, from 0; nil for all
	// open, contrast and cadences are progressions. An open phrase begins on
	// the tonic and ends on another chord. A contrast phrase begins and ends on
	// other chords. A cadence is the bar before the final tonic.
	open, contrast, cadences []string
}

var scales = map[string]scale{
	"major": {
		steps:    []int{0, 2, 4, 5, 7, 9, 11},
		open:     []string{"1 6 4 5", "1 5 6 4,5", "1 3 4 5", "1 4 1 5", "1 6 2 5", "1 4 6 5"},
		contrast: []string{"4 1 4 5", "6 4 1 5", "6 3 4 5", "2 5 1,6 5", "4 5 6 5"},
		cadences: []string{"4,5", "2,5"},
	},
	"minor": {
		steps:    []int{0, 2, 3, 5, 7, 8, 10},
		open:     []string{"1 6 3 7", "1 7 6 7", "1 3 4 7", "1 6 4 5", "1 4 6 5"},
		contrast: []string{"4 1 6 7", "6 3 4 5", "3 7 4 5", "6 4 1 7"},
		cadences: []string{"4,7", "6,7", "4,5"},
	},
	"harmonic-minor": {
		steps:    []int{0, 2, 3, 5, 7, 8, 11},
		open:     []string{"1 4 1 5", "1 6 4 5", "1 6 1 5", "1 4 6 5"},
		contrast: []string{"6 4 1 5", "4 1 6 5", "6 1 4 5"},
		cadences: []string{"4,5", "6,5"},
	},
	"dorian": {
		steps:    []int{0, 2, 3, 5, 7, 9, 10},
		open:     []string{"1 4 1 7", "1 7 4 5", "1 3 4 7", "1 2 4 7"},
		contrast: []string{"3 4 1 7", "4 1 7 5", "7 4 2 5"},
		cadences: []string{"4,7", "4,5", "2,7"},
	},
	"phrygian": {
		steps:    []int{0, 1, 3, 5, 7, 8, 10},
		open:     []string{"1 2 1 7", "1 4 2 7", "1 2 3 2", "1 6 7 2"},
		contrast: []string{"6 4 2 7", "3 2 4 7", "6 7 4 2"},
		cadences: []string{"4,2", "7,2"},
	},
	"lydian": {
		steps:    []int{0, 2, 4, 6, 7, 9, 11},
		open:     []string{"1 2 1 5", "1 2 6 5", "1 3 2 5", "1 6 2 5"},
		contrast: []string{"6 2 5 2", "3 6 2 5", "5 2 6 2"},
		cadences: []string{"2,5", "3,2"},
	},
	"mixolydian": {
		steps:    []int{0, 2, 4, 5, 7, 9, 10},
		open:     []string{"1 7 4 5", "1 4 7 4", "1 2 4 7", "1 7 6 7"},
		contrast: []string{"4 7 4 5", "6 4 7 5", "7 4 6 7"},
		cadences: []string{"7,4", "4,7", "2,7"},
	},
	// Only the melody is pentatonic, because five notes form too few chords.
	"pentatonic": {
		steps:    []int{0, 2, 4, 5, 7, 9, 11},
		melody:   []int{0, 1, 2, 4, 5},
		open:     []string{"1 6 4 5", "1 4 1 5", "1 6 2 5", "1 5 6 4"},
		contrast: []string{"4 1 4 5", "6 4 1 5", "6 2 4 5"},
		cadences: []string{"4,5", "2,5"},
	},
	"pentatonic-minor": {
		steps:    []int{0, 2, 3, 5, 7, 8, 10},
		melody:   []int{0, 2, 3, 4, 6},
		open:     []string{"1 7 1 7", "1 3 4 7", "1 6 3 7", "1 4 7 5"},
		contrast: []string{"3 7 4 5", "4 1 6 7", "6 3 4 7"},
		cadences: []string{"4,7", "4,5", "6,7"},
	},
}

// parseProgression parses a progression. It returns the degrees of the chords
// in each bar, from 0.
func parseProgression(text string) [][]int {
	var bars [][]int
	for bar := range strings.FieldsSeq(text) {
		var degrees []int
		for degree := range strings.SplitSeq(bar, ",") {
			degrees = append(degrees, int(degree[0]-'1'))
		}
		bars = append(bars, degrees)
	}
	return bars
}

// semitonesOf returns the distance of a degree from the tonic, in semitones.
// The degree may be in any octave.
func (s scale) semitonesOf(d int) int {
	octave, rest := divideFloor(d, len(s.steps))
	return 12*octave + s.steps[rest]
}

// divideFloor returns the quotient, rounded down, and the remainder, which is
// never negative.
func divideFloor(n, by int) (quotient, rest int) {
	rest = ((n % by) + by) % by
	return (n - rest) / by, rest
}

// chordClasses returns the pitch classes of a chord on a degree of the scale,
// root first. The chord has size notes.
func (s scale) chordClasses(key, degree, size int) []int {
	classes := make([]int, size)
	for i := range classes {
		_, classes[i] = divideFloor(key+s.semitonesOf(degree+2*i), 12)
	}
	return classes
}

// ladder has the notes that a melody may use. A note's number is its rung: rung
// 0 is the tonic near the middle of the keyboard, rung 1 the next higher note.
type ladder struct {
	tonic int
	rungs []int
}

func (s scale) newLadder(key int) ladder {
	l := ladder{tonic: 60 + key}
	if key > 7 {
		l.tonic -= 12
	}
	for d, step := range s.steps {
		if s.melody == nil || slices.Contains(s.melody, d) {
			l.rungs = append(l.rungs, step)
		}
	}
	return l
}

func (l ladder) pitchAt(place int) int {
	octave, rest := divideFloor(place, len(l.rungs))
	return l.tonic + 12*octave + l.rungs[rest]
}

// nearestRung returns the rung whose pitch is nearest to a MIDI pitch.
func (l ladder) nearestRung(pitch int) int {
	best := 0
	for place := -4 * len(l.rungs); place < 4*len(l.rungs); place++ {
		if distanceOf(l.pitchAt(place), pitch) < distanceOf(l.pitchAt(best), pitch) {
			best = place
		}
	}
	return best
}

// isInChord reports whether the note at a rung belongs to a chord, given by its
// pitch classes.
func (l ladder) isInChord(place int, chord []int) bool {
	_, class := divideFloor(l.pitchAt(place), 12)
	return slices.Contains(chord, class)
}

// nearestChordRung returns the nearest rung whose note belongs to a chord. If
// two are equally near, it returns the lower.
func (l ladder) nearestChordRung(place int, chord []int) int {
	for away := range 2 * len(l.rungs) {
		if l.isInChord(place-away, chord) {
			return place - away
		}
		if l.isInChord(place+away, chord) {
			return place + away
		}
	}
	return place
}

func distanceOf(a, b int) int { return max(a-b, b-a) }

// voiceChord returns the MIDI pitches of a chord, from low to high. It chooses
// the inversion that is nearest to the previous chord and to the centre.
func voiceChord(chord, before []int, centre int) []int {
	var best []int
	least := 1 << 30
	for turn := range chord {
		notes := stackChord(chord, turn, centre-9)
		cost := distanceOf(sumOf(notes), centre*len(notes)) / len(notes)
		for i, n := range notes {
			cost += 3 * voiceDistance(n, i, len(notes), before)
		}
		if cost < least {
			best = notes
			least = cost
		}
	}
	return best
}

// voiceDistance returns the distance in semitones that a voice moves: from its
// previous note, or from the nearest previous note if the number of voices has
// changed.
func voiceDistance(pitch, voice, voices int, before []int) int {
	if len(before) == 0 {
		return 0
	}
	if len(before) == voices {
		return distanceOf(pitch, before[voice])
	}
	least := distanceOf(pitch, before[0])
	for _, b := range before {
		least = min(least, distanceOf(pitch, b))
	}
	return least
}

// stackChord returns the MIDI pitches of a chord in close position above the
// pitch low. turn is the index in chord of the lowest note.
func stackChord(chord []int, turn, low int) []int {
	notes := make([]int, len(chord))
	for i := range notes {
		_, up := divideFloor(chord[(turn+i)%len(chord)]-low, 12)
		low += up
		notes[i] = low
	}
	return notes
}

func sumOf(numbers []int) int {
	n := 0
	for _, v := range numbers {
		n += v
	}
	return n
}
