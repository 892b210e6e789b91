package music

import (
	"slices"
	"strings"
)

// keys are tonics, in semitones above C.
var keys = map[string]int{
	"C": 0, "Db": 1, "D": 2, "Eb": 3, "E": 4, "F": 5, "Gb": 6, "G": 7, "Ab": 8, "A": 9, "Bb": 10, "B": 11,
}

// scale is seven notes and what is done with them. Progressions name chords by
// the degree of their root, a bar each; a comma puts two into one bar. They
// avoid diminished chords, so each scale has its own.
type scale struct {
	steps  []int // in semitones above the tonic
	melody []int // the degrees that a melody uses, from 0; nil: all
	// open phrases begin at home and end away from it; contrast ones begin and
	// end away; a cadence is the bar before the tonic.
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
	// The pentatonic scales are for the melody; five notes make too few chords.
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

// progression reads a phrase: the degrees of each bar, from 0.
func progression(text string) [][]int {
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

// degree gives the semitones of a degree above the tonic, for any octave.
func (s scale) degree(d int) int {
	octave, rest := fold(d, len(s.steps))
	return 12*octave + s.steps[rest]
}

// fold is division that rounds down, with its remainder.
func fold(n, by int) (quotient, rest int) {
	rest = ((n % by) + by) % by
	return (n - rest) / by, rest
}

// chord gives the pitch classes of the chord on a degree, root first.
func (s scale) chord(key, degree, size int) []int {
	classes := make([]int, size)
	for i := range classes {
		_, classes[i] = fold(key+s.degree(degree+2*i), 12)
	}
	return classes
}

// ladder is the notes that a melody climbs, a place for each: place 0 is the
// tonic in the middle of the keyboard.
type ladder struct {
	tonic int
	rungs []int
}

func (s scale) ladder(key int) ladder {
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

func (l ladder) pitch(place int) int {
	octave, rest := fold(place, len(l.rungs))
	return l.tonic + 12*octave + l.rungs[rest]
}

// at gives the place nearest to a pitch.
func (l ladder) at(pitch int) int {
	best := 0
	for place := -4 * len(l.rungs); place < 4*len(l.rungs); place++ {
		if far(l.pitch(place), pitch) < far(l.pitch(best), pitch) {
			best = place
		}
	}
	return best
}

// in tells whether a place belongs to a chord.
func (l ladder) in(place int, chord []int) bool {
	_, class := fold(l.pitch(place), 12)
	return slices.Contains(chord, class)
}

// near gives the place of a chord that is nearest, the lower of two.
func (l ladder) near(place int, chord []int) int {
	for away := range 2 * len(l.rungs) {
		if l.in(place-away, chord) {
			return place - away
		}
		if l.in(place+away, chord) {
			return place + away
		}
	}
	return place
}

func far(a, b int) int { return max(a-b, b-a) }

// voicing gives the notes of a chord, low to high, that are the least way from
// those before and not far from the centre.
func voicing(chord, before []int, centre int) []int {
	var best []int
	least := 1 << 30
	for turn := range chord {
		notes := stack(chord, turn, centre-9)
		cost := far(sum(notes), centre*len(notes)) / len(notes)
		for i, n := range notes {
			cost += 3 * way(n, i, len(notes), before)
		}
		if cost < least {
			best = notes
			least = cost
		}
	}
	return best
}

// way is how far a voice moves: from its own note before, or from the nearest
// one where there were more or fewer.
func way(pitch, voice, voices int, before []int) int {
	if len(before) == 0 {
		return 0
	}
	if len(before) == voices {
		return far(pitch, before[voice])
	}
	least := far(pitch, before[0])
	for _, b := range before {
		least = min(least, far(pitch, b))
	}
	return least
}

// stack sets a chord in close position upon its given tone, from low on.
func stack(chord []int, turn, low int) []int {
	notes := make([]int, len(chord))
	for i := range notes {
		_, up := fold(chord[(turn+i)%len(chord)]-low, 12)
		low += up
		notes[i] = low
	}
	return notes
}

func sum(numbers []int) int {
	n := 0
	for _, v := range numbers {
		n += v
	}
	return n
}
