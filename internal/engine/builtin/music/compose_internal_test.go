package music

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// wishes are tunes of every mood and scale, in all keys and lengths.
func wishes() []request {
	var all []request
	seed := uint32(0)
	for _, mood := range slices.Sorted(maps.Keys(moods)) {
		for _, scale := range append(slices.Sorted(maps.Keys(scales)), "") {
			for i := range 4 {
				all = append(all, request{mood: mood, scale: scale, key: int(seed*5) % 12, bars: 8 + int(seed*4)%28, drums: i > 0, seed: seed})
				seed++
			}
		}
	}
	return all
}

// draft gives the composer of a wish, as far as the melody needs it.
func draft(w request) *composer {
	c := &composer{request: w, mood: moods[w.mood]}
	c.chooseSettings()
	return c
}

func TestEveryTuneIsInItsScale(t *testing.T) {
	t.Parallel()
	for _, w := range wishes() {
		c := draft(w)
		for _, p := range c.performScore().parts {
			if p.channel == drumChannel {
				continue
			}
			steps := c.scale.steps
			if p.channel <= secondChannel {
				steps = c.ladder.rungs
			}
			for _, n := range p.notes {
				if _, class := divideFloor(n.pitch-w.key, 12); !slices.Contains(steps, class) {
					t.Fatalf("%+v: %s plays %d, which is not in the scale", w, p.name, n.pitch)
				}
			}
		}
	}
}

func TestEveryPartCanBePlayed(t *testing.T) {
	t.Parallel()
	ranges := map[string][2]int{"melody": {55, 96}, "second": {43, 84}, "chords": {45, 88}, "pad": {50, 84}, "bass": {30, 56}, "drums": {35, 82}}
	for _, w := range wishes() {
		s := composeTune(w)
		for _, p := range s.parts {
			if len(p.notes) == 0 && p.name != "second" {
				t.Errorf("%+v: %s is silent", w, p.name)
			}
			for _, n := range p.notes {
				r := ranges[p.name]
				if n.pitch < r[0] || n.pitch > r[1] || n.velocity < 20 || n.velocity > 122 || n.at < 0 || n.length <= 0 || n.at+n.length > s.end {
					t.Fatalf("%+v: %s plays %+v", w, p.name, n)
				}
			}
		}
		if d := s.durationSeconds(); d < 8 || d > 200 {
			t.Errorf("%+v: takes %.0f s", w, d)
		}
	}
}

func TestEveryTuneEndsAtHome(t *testing.T) {
	t.Parallel()
	for _, w := range wishes() {
		for _, p := range composeTune(w).parts {
			if p.name != "melody" && p.name != "bass" {
				continue
			}
			last := p.notes[len(p.notes)-1]
			if _, class := divideFloor(last.pitch-w.key, 12); class != 0 {
				t.Errorf("%+v: %s ends on %d", w, p.name, last.pitch)
			}
			if last.length < ticksPerBeat*2 {
				t.Errorf("%+v: %s ends after %d ticks", w, p.name, last.length)
			}
		}
	}
}

// TestMelodiesGoWithTheirChords looks at strong times and at long notes, and
// that a note foreign to its chord lies between its neighbours.
func TestMelodiesGoWithTheirChords(t *testing.T) {
	t.Parallel()
	for _, w := range wishes() {
		c := draft(w)
		line := c.composeMelody()
		for i, n := range line {
			in := c.ladder.isInChord(n.place, c.chordUnder(n).classes)
			if !in && c.isChordNote(n) {
				t.Errorf("%+v: %+v is foreign to its chord", w, n)
			}
			if !in && (i == 0 || i == len(line)-1 || distanceOf(n.place, line[i-1].place) > 1 || distanceOf(n.place, line[i+1].place) > 1) {
				t.Errorf("%+v: %+v does not lead anywhere", w, n)
			}
		}
	}
}

func TestMelodiesCanBeSung(t *testing.T) {
	t.Parallel()
	small, all := 0, 0
	for _, w := range wishes() {
		c := draft(w)
		line := c.composeMelody()
		for i := 1; i < len(line); i++ {
			if line[i].at < line[i-1].at+line[i-1].length {
				t.Errorf("%+v: %+v begins before %+v has ended", w, line[i], line[i-1])
			}
			leap := distanceOf(c.ladder.pitchAt(line[i].place), c.ladder.pitchAt(line[i-1].place))
			if leap > 12 {
				t.Errorf("%+v: leaps by %d", w, leap)
			}
			all++
			if leap <= 4 {
				small++
			}
		}
	}
	if small*100 < all*70 {
		t.Errorf("%d of %d moves are small, want most", small, all)
	}
}

// TestThemesComeBack compares the first bar of phrases that share a theme.
func TestThemesComeBack(t *testing.T) {
	t.Parallel()
	same, all := 0, 0
	for _, w := range wishes() {
		c := draft(w)
		line := c.composeMelody()
		sung := func(bar int) map[int]int {
			m := map[int]int{}
			for _, n := range line {
				if n.at/c.bar == bar {
					m[n.at%c.bar] = n.place
				}
			}
			return m
		}
		first := map[byte]map[int]int{}
		for _, s := range c.sections {
			if s.repeats == 0 {
				first[s.theme] = sung(s.first)
				continue
			}
			again := sung(s.first)
			for at, place := range first[s.theme] {
				all++
				if again[at] == place {
					same++
				}
			}
		}
	}
	if same*100 < all*80 {
		t.Errorf("%d of %d notes come back, want most", same, all)
	}
}

func TestVoicesMoveLittle(t *testing.T) {
	t.Parallel()
	moved, voices := 0, 0
	for _, w := range wishes() {
		c := draft(w)
		var before []int
		for _, v := range c.voiceChords() {
			for i := range v {
				if len(before) == len(v) {
					moved += distanceOf(v[i], before[i])
					voices++
				}
			}
			before = v
		}
	}
	if mean := float64(moved) / float64(voices); mean > 2.5 {
		t.Errorf("a voice moves by %.1f semitones, want a step or so", mean)
	}
}

func TestSeedsDecide(t *testing.T) {
	t.Parallel()
	seen := map[string]uint32{}
	for seed := range uint32(50) {
		w := request{mood: "happy", bars: 16, drums: true, seed: seed}
		b := composeTune(w).encodeMIDI()
		if !bytes.Equal(b, composeTune(w).encodeMIDI()) {
			t.Fatalf("seed %d gives two tunes", seed)
		}
		if other, ok := seen[string(b)]; ok {
			t.Errorf("seeds %d and %d give one tune", seed, other)
		}
		seen[string(b)] = seed
	}
}

// TestTunesStay holds a tune to what it was: a seed that somebody kept has to
// give it again, in years and on other machines.
func TestTunesStay(t *testing.T) {
	t.Parallel()
	c := draft(request{mood: "playful", bars: 8, seed: 2026})
	var got []string
	for _, n := range c.composeMelody() {
		got = append(got, fmt.Sprintf("%d:%d", n.at, c.ladder.pitchAt(n.place)))
	}
	const want = "0:72 2:79 6:77 10:76 12:72 16:71 18:72 22:71 24:74 28:72 32:72 34:81 38:76 42:76 44:74 48:72 52:72 56:71 " +
		"64:72 66:79 70:77 74:76 76:72 80:71 82:72 86:71 88:74 92:72 96:72 98:77 102:77 106:76 108:74 112:72"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("tune = %q, want %q", s, want)
	}
}

func TestEveryProgressionIsOneOfItsScale(t *testing.T) {
	t.Parallel()
	for name, s := range scales {
		check := func(text string, bars int) {
			p := parseProgression(text)
			if len(p) != bars {
				t.Errorf("%s: %q has %d bars, want %d", name, text, len(p), bars)
			}
			for _, d := range slices.Concat(p...) {
				if d < 0 || d > 6 {
					t.Fatalf("%s: %q has no degree %d", name, text, d+1)
				}
				if fifth := s.semitonesOf(d+4) - s.semitonesOf(d); fifth != 7 {
					t.Errorf("%s: %q has the chord on %d, whose fifth is %d semitones", name, text, d+1, fifth)
				}
			}
		}
		for _, text := range append(slices.Clone(s.open), s.contrast...) {
			check(text, phraseBars)
		}
		for _, text := range s.cadences {
			check(text, 1)
		}
	}
}

func TestEveryPatternFillsItsBar(t *testing.T) {
	t.Parallel()
	for name, m := range moods {
		for _, scale := range m.scales {
			if _, ok := scales[scale]; !ok {
				t.Errorf("%s likes the scale %s", name, scale)
			}
		}
		for _, beats := range m.beats {
			metre, ok := m.metres[beats]
			if !ok {
				t.Fatalf("%s has nothing for %d beats", name, beats)
			}
			patterns := slices.Clone(metre.rhythms)
			if metre.figure != "" {
				patterns = append(patterns, metre.figure)
			}
			for _, p := range patterns {
				if len(p) != 2*beats && len(p) != 4*beats {
					t.Errorf("%s: %q does not fill %d beats", name, p, beats)
				}
			}
			for _, d := range metre.drums {
				if len(d.pattern) != 4*beats {
					t.Errorf("%s: %q does not fill %d beats", name, d.pattern, beats)
				}
			}
		}
	}
}
