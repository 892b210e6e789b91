package music

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// quarter is a beat in semiquavers, the grid on which everything is composed.
const quarter = 4

// phrase is how many bars belong together.
const phrase = 4

// section is one phrase of the form.
type section struct {
	theme byte // A, B or C; equal ones share their melody
	turn  int  // how often the theme was heard before
	first int  // bar
	shut  bool // it ends at home
	last  bool
	full  int // how many play: 0 to 3
}

// forms are the phrases of a tune, by their number. A capital letter closes.
var forms = map[int]string{
	2: "aA", 3: "abA", 4: "aAbA", 5: "aAbbA", 6: "aAbabA", 7: "aAbAcbA", 8: "aAbAcbaA",
}

// change is a chord and when it begins, in semiquavers.
type change struct {
	at, length int
	degree     int
	classes    []int // root first
}

// composer is a tune on its way.
type composer struct {
	wish
	mood     mood
	metre    metre
	scale    scale
	band     ensemble
	ladder   ladder
	beats    int
	bar      int // semiquavers in one
	intro    int // bars before the first phrase
	sections []section
	changes  []change
	last     int // where the last chord begins
	end      int // in semiquavers, without what rings on
}

// chance gives a source of its own to each part of the work, so that one part
// does not change what another comes to.
func (c *composer) chance(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(c.seed), stream))
}

const (
	ofPlan uint64 = iota + 1
	ofChords
	ofMelody
	ofBass
	ofHands
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// compose writes the tune that the wish describes.
func compose(w wish) *score {
	c := &composer{wish: w, mood: moods[w.mood]}
	c.prepare()
	return c.perform()
}

// prepare decides about everything but the notes.
func (c *composer) prepare() {
	r := c.chance(ofPlan)
	name := pick(r, c.mood.scales)
	if c.wish.scale != "" {
		name = c.wish.scale
	}
	c.scale = scales[name]
	c.beats = pick(r, c.mood.beats)
	c.metre = c.mood.metres[c.beats]
	c.band = pick(r, c.mood.bands)
	if c.ensemble != "" {
		c.band = ensembles[c.ensemble]
	}
	if c.tempo == 0 {
		c.tempo = c.mood.tempo + float64(r.IntN(9)-4)
	}
	c.ladder = c.scale.ladder(c.key)
	c.bar = c.beats * quarter
	c.plan()
	c.harmonise()
}

// plan lays out the form: two bars to begin with where there is room, then the
// phrases.
func (c *composer) plan() {
	if c.bars > minBars {
		c.intro = 2
	}
	heard := map[byte]int{}
	form := forms[c.bars/phrase]
	for i := range len(form) {
		theme := form[i] &^ 0x20
		s := section{
			theme: theme,
			turn:  heard[theme],
			first: c.intro + phrase*i,
			shut:  form[i] == theme,
			last:  i == len(form)-1,
		}
		heard[theme]++
		switch { // it grows, and the middle differs from what is around it
		case s.last || theme == 'C':
			s.full = 3
		case theme == 'B', s.turn > 1:
			s.full = 2
		default:
			s.full = min(i, 1)
		}
		c.sections = append(c.sections, s)
	}
	c.end = (c.intro + c.bars) * c.bar
	c.last = c.end - c.bar
}

// harmonise finds the chords. Phrases of one theme begin alike, and the form
// says how each ends.
func (c *composer) harmonise() {
	r := c.chance(ofChords)
	themes := map[byte][][]int{'A': progression(c.likely(r, c.scale.open))}
	for _, theme := range []byte("BC") {
		themes[theme] = progression(c.likely(r, c.scale.contrast))
	}
	for bar := range c.intro {
		c.change(bar, themes['A'][0][:1])
	}
	for _, s := range c.sections {
		bars := slices.Clone(themes[s.theme])
		if s.shut {
			bars[2] = progression(pick(r, c.scale.cadences))[0]
			bars[3] = []int{0}
		}
		for i, degrees := range bars {
			c.change(s.first+i, degrees)
		}
	}
}

// likely picks a progression, rather one with chords that the mood favours.
func (c *composer) likely(r *rand.Rand, from []string) string {
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
	return pick(r, weighted)
}

// change puts chords into a bar: the second comes in its middle, in a bar of
// three on its last beat.
func (c *composer) change(bar int, degrees []int) {
	at := bar * c.bar
	second := (c.beats + 1) / 2 * quarter
	for i, d := range degrees {
		size := 3
		if c.mood.colour && d != 0 {
			size = 4
		}
		ch := change{at: at + i*second, length: c.bar - i*second, degree: d, classes: c.scale.chord(c.key, d, size)}
		if i == 0 && len(degrees) > 1 {
			ch.length = second
		}
		c.changes = append(c.changes, ch)
	}
}

// chord gives what sounds at a time.
func (c *composer) chord(at int) change {
	i, found := slices.BinarySearchFunc(c.changes, at, func(ch change, at int) int { return ch.at - at })
	if !found {
		i--
	}
	return c.changes[min(max(i, 0), len(c.changes)-1)]
}

// section gives the phrase of a time; the lead-in has that of one with few
// players.
func (c *composer) section(at int) section {
	i := (at/c.bar - c.intro) / phrase
	if at < c.intro*c.bar {
		return section{}
	}
	return c.sections[min(i, len(c.sections)-1)]
}
