package music

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// stepsPerBeat is the number of semiquavers in a beat. Everything is composed on this grid.
const stepsPerBeat = 4

// phraseBars is the number of bars in a phrase.
const phraseBars = 4

// section is one phrase of the form.
type section struct {
	theme   byte // A, B or C; sections of one theme share their melody
	repeats int  // how often the theme was played before
	first   int  // index of its first bar
	closes  bool // the section ends on the tonic
	last    bool
	players int // how many instruments play: 0 to 3
}

// forms are the sequences of themes by number of phrases. A capital letter ends on the tonic.
var forms = map[int]string{
	2: "aA", 3: "abA", 4: "aAbA", 5: "aAbbA", 6: "aAbabA", 7: "aAbAcbA", 8: "aAbAcbaA",
}

// chordChange is a chord and its start in semiquavers.
type chordChange struct {
	at, length int
	degree     int
	classes    []int // pitch classes, root first
}

// composer is a tune that is being composed.
type composer struct {
	request
	mood     mood
	metre    metre
	scale    scale
	band     ensemble
	ladder   ladder
	beats    int
	bar      int // semiquavers in a bar
	intro    int // bars before the first phrase
	sections []section
	changes  []chordChange
	last     int // start of the last chord
	end      int // in semiquavers, without the last chord's decay
}

// newRandom returns a separate random source for each part of the work, so that a change to one
// part does not change another.
func (c *composer) newRandom(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(c.seed), stream))
}

const (
	planStream uint64 = iota + 1
	chordStream
	melodyStream
	bassStream
	performanceStream
)

func pickOne[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// composeTune writes the tune that was requested.
func composeTune(w request) *score {
	c := &composer{request: w, mood: moods[w.mood]}
	c.chooseSettings()
	return c.performScore()
}

// chooseSettings decides everything but the notes.
func (c *composer) chooseSettings() {
	r := c.newRandom(planStream)
	name := pickOne(r, c.mood.scales)
	if c.request.scale != "" {
		name = c.request.scale
	}
	c.scale = scales[name]
	c.beats = pickOne(r, c.mood.beats)
	c.metre = c.mood.metres[c.beats]
	c.band = pickOne(r, c.mood.bands)
	if c.ensemble != "" {
		c.band = ensembles[c.ensemble]
	}
	if c.tempo == 0 {
		c.tempo = c.mood.tempo + float64(r.IntN(9)-4)
	}
	c.ladder = c.scale.newLadder(c.key)
	c.bar = c.beats * stepsPerBeat
	c.planForm()
	c.chooseChords()
}

// planForm lays out the form: an intro of two bars if there is room, then the phrases.
func (c *composer) planForm() {
	if c.bars > minBars {
		c.intro = 2
	}
	heard := map[byte]int{}
	form := forms[c.bars/phraseBars]
	for i := range len(form) {
		theme := form[i] &^ 0x20
		s := section{
			theme:   theme,
			repeats: heard[theme],
			first:   c.intro + phraseBars*i,
			closes:  form[i] == theme,
			last:    i == len(form)-1,
		}
		heard[theme]++
		switch { // the tune grows, and its middle section differs from its neighbours
		case s.last || theme == 'C':
			s.players = 3
		case theme == 'B', s.repeats > 1:
			s.players = 2
		default:
			s.players = min(i, 1)
		}
		c.sections = append(c.sections, s)
	}
	c.end = (c.intro + c.bars) * c.bar
	c.last = c.end - c.bar
}

// chooseChords chooses the chords. Phrases of one theme begin alike; the form determines how each
// ends.
func (c *composer) chooseChords() {
	r := c.newRandom(chordStream)
	themes := map[byte][][]int{'A': parseProgression(c.pickProgression(r, c.scale.open))}
	for _, theme := range []byte("BC") {
		themes[theme] = parseProgression(c.pickProgression(r, c.scale.contrast))
	}
	for bar := range c.intro {
		c.addChords(bar, themes['A'][0][:1])
	}
	for _, s := range c.sections {
		bars := slices.Clone(themes[s.theme])
		if s.closes {
			bars[2] = parseProgression(pickOne(r, c.scale.cadences))[0]
			bars[3] = []int{0}
		}
		for i, degrees := range bars {
			c.addChords(s.first+i, degrees)
		}
	}
}

// pickProgression picks a progression. Those with chords that the mood favours are likelier.
func (c *composer) pickProgression(r *rand.Rand, from []string) string {
	var weighted []string
	for _, p := range from {
		weight := 1
		for _, degree := range c.mood.favour {
			weight += 2 * strings.Count(p, string(degree))
		}
		for range weight {
			weighted = append(weighted, p)
		}
	}
	return pickOne(r, weighted)
}

// addChords adds the chords of a bar: the second begins in the middle, or on the last beat of a
// bar of three.
func (c *composer) addChords(bar int, degrees []int) {
	at := bar * c.bar
	second := (c.beats + 1) / 2 * stepsPerBeat
	for i, d := range degrees {
		size := 3
		if c.mood.colour && d != 0 {
			size = 4
		}
		ch := chordChange{at: at + i*second, length: c.bar - i*second, degree: d, classes: c.scale.chordClasses(c.key, d, size)}
		if i == 0 && len(degrees) > 1 {
			ch.length = second
		}
		c.changes = append(c.changes, ch)
	}
}

// chordAt returns the chord at a time.
func (c *composer) chordAt(at int) chordChange {
	i, found := slices.BinarySearchFunc(c.changes, at, func(ch chordChange, at int) int { return ch.at - at })
	if !found {
		i--
	}
	return c.changes[min(max(i, 0), len(c.changes)-1)]
}

// sectionAt returns the section at a time. The intro counts as a section with few players.
func (c *composer) sectionAt(at int) section {
	i := (at/c.bar - c.intro) / phraseBars
	if at < c.intro*c.bar {
		return section{}
	}
	return c.sections[min(i, len(c.sections)-1)]
}
