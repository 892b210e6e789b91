package music

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// stepsPerBeat is the number of semiquavers in a beat. All times in a
// composition are whole numbers of semiquavers.
const stepsPerBeat = 4

// phraseBars is the number of bars in a phrase.
const phraseBars = 4

// section is a phrase of four bars within a tune.
type section struct {
	theme   byte // A, B or C; sections with the same theme have the same melody
	repeats int  // number of earlier sections with the same theme
	first   int  // index of the section's first bar in the tune
	closes  bool // whether the section ends on the tonic
	last    bool
	players int // number from 0 to 3 that determines how many instruments play
}

// forms are the sequences of themes, by the number of phrases of a tune. A
// phrase with a capital letter ends on the tonic.
var forms = map[int]string{
	2: "aA", 3: "abA", 4: "aAbA", 5: "aAbbA", 6: "aAbabA", 7: "aAbAcbA", 8: "aAbAcbaA",
}

// chordChange is a chord with its start and length in semiquavers.
type chordChange struct {
	at, length int
	degree     int
	classes    []int // pitch classes, root first
}

// composer is the state of a tune while it is composed.
type composer struct {
	request
	mood     mood
	metre    metre
	scale    scale
	band     ensemble
	ladder   ladder
	beats    int
	bar      int // length of a bar in semiquavers
	intro    int // number of bars before the first phrase
	sections []section
	changes  []chordChange
	last     int // start of the last chord in semiquavers
	end      int // end of the last bar in semiquavers, without the decay of the last chord
}

// newRandom returns a random generator for one step of composing. Each step has
// its own stream, so that a change to one step does not change other steps.
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

// composeTune composes the requested tune and returns its score.
func composeTune(w request) *score {
	c := &composer{request: w, mood: moods[w.mood]}
	c.chooseSettings()
	return c.performScore()
}

// chooseSettings chooses scale, metre, instruments, tempo, form and chords of
// the tune.
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

// planForm determines the form of the tune: an intro of two bars, unless the
// tune has the minimum length, and then the phrases.
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
		switch { // more instruments play towards the end and in contrasting sections
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

// chooseChords chooses the chords of all bars. Phrases with the same theme
// begin with the same chords; their form determines how they end.
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

// pickProgression picks one of the progressions at random. Progressions with
// chords that the mood favours are more likely.
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

// addChords adds the chords of a bar, given by the degrees of their roots. A
// second chord begins in the middle of the bar, or on the last of three beats.
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

// chordAt returns the chord that sounds at a time in semiquavers.
func (c *composer) chordAt(at int) chordChange {
	i, found := slices.BinarySearchFunc(c.changes, at, func(ch chordChange, at int) int { return ch.at - at })
	if !found {
		i--
	}
	return c.changes[min(max(i, 0), len(c.changes)-1)]
}

// sectionAt returns the section at a time in semiquavers. For the intro it
// returns an empty section, with the fewest players.
func (c *composer) sectionAt(at int) section {
	i := (at/c.bar - c.intro) / phraseBars
	if at < c.intro*c.bar {
		return section{}
	}
	return c.sections[min(i, len(c.sections)-1)]
}
