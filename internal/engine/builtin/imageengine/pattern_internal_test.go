package imageengine

import (
	"math"
	"testing"
)

// TestMotifsRepeat compares places that are a whole picture apart.
func TestMotifsRepeat(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{160, 160}, {300, 72}, {72, 300}} {
		for _, scale := range []float64{2, 7, 32} {
			for seed := range uint32(3) {
				g := newCellGrid(size[0], size[1], scale, seed)
				for name, at := range map[string]func(u, v float64) rgb{
					"truchet": g.truchetMotif(newRandom(seed)), "cells": g.cellsMotif(newRandom(seed)), "waves": g.wavesMotif(newRandom(seed)), "clouds": g.cloudsMotif(newRandom(seed)),
				} {
					r := newRandom(seed)
					for range 100 {
						u, v := r.Float64()*float64(g.nx), r.Float64()*float64(g.ny)
						here := at(u, v)
						for _, there := range []rgb{at(u+float64(g.nx), v), at(u, v+float64(g.ny)), at(u-float64(g.nx), v)} {
							if far := math.Abs(float64(here.r-there.r)) + math.Abs(float64(here.g-there.g)) + math.Abs(float64(here.b-there.b)); far > 1e-3 {
								t.Fatalf("%s %v, scale %v, seed %d: %v at %.3f,%.3f, but %v a picture further", name, size, scale, seed, here, u, v, there)
							}
						}
					}
				}
			}
		}
	}
}
