package main

import (
	"fmt"
	"slices"
	"time"
)

// side is one of two that are compared.
type side struct {
	name string
	// load does as much as it can for a while and says how much a second.
	load func(time.Duration) (float64, error)
}

// compare measures two sides in turns and says whether the ratio is at least
// what it should be, where that is more than 0.
func (b *bench) compare(unit string, a, base side, least float64) error {
	return b.compareRounds(b.rounds, unit, a, base, least)
}

// compareRounds is compare with at most so many rounds.
func (b *bench) compareRounds(most int, unit string, a, base side, least float64) error {
	var rates, bases, ratios []float64
	for i := range min(b.rounds, most) {
		first, second := a, base
		if i%2 == 1 {
			first, second = base, a
		}
		x, err := first.load(b.span)
		if err != nil {
			return fmt.Errorf("%s: %w", first.name, err)
		}
		y, err := second.load(b.span)
		if err != nil {
			return fmt.Errorf("%s: %w", second.name, err)
		}
		if i%2 == 1 {
			x, y = y, x
		}
		rates, bases, ratios = append(rates, x), append(bases, y), append(ratios, x/y)
	}
	ratio := median(ratios)
	bound := ""
	if least > 0 {
		bound = fmt.Sprintf(", at least %.2f: %s", least, b.verdict(a.name, ratio >= least, "BELOW"))
	}
	fmt.Printf("%9.0f %s  %s\n%9.0f %s  %s\n%9.2f ratio%s (rounds %s)\n\n",
		median(rates), unit, a.name, median(bases), unit, base.name, ratio, bound, spread(ratios))
	return nil
}

// verdict is the word for a figure, and keeps those that are not met.
func (b *bench) verdict(name string, met bool, otherwise string) string {
	if met {
		return "ok"
	}
	b.missed = append(b.missed, name)
	return otherwise
}

// times prints how long something took.
func times(what, unit string, all []time.Duration) {
	slices.Sort(all)
	at := func(share float64) time.Duration {
		return all[int(share*float64(len(all)-1))].Round(10 * time.Microsecond)
	}
	fmt.Printf("%9d %s  %s\n%9v median, %v p99, %v longest\n\n", len(all), unit, what, at(0.5), at(0.99), at(1))
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func spread(v []float64) string { return fmt.Sprintf("%.2f to %.2f", slices.Min(v), slices.Max(v)) }
