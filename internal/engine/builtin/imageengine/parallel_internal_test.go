package imageengine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"atelier/internal/engine"
)

// silent is a stretch of a bar that tells nobody.
func silent() engine.Span { return engine.Span{} }

func TestBandsCoverAllRowsOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 7, 1000} {
		for _, least := range []int{1, 16, 5000} {
			rows := make([]atomic.Int64, n)
			err := eachBand(t.Context(), silent(), n, least, func(from, to int) {
				for y := from; y < to; y++ {
					rows[y].Add(1)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			for y := range rows {
				if got := rows[y].Load(); got != 1 {
					t.Fatalf("%d rows, at least %d: row %d was done %d times", n, least, y, got)
				}
			}
		}
	}
}

func TestBandsEndWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var done atomic.Int64
	err := eachBand(ctx, silent(), 1_000_000, 1, func(from, to int) {
		if done.Add(int64(to-from)) > 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || done.Load() == 1_000_000 {
		t.Errorf("bands = %v after %d rows", err, done.Load())
	}
}

// TestPanicsOfBandsAreTheCallers proves that a mistake ends a job and not the
// program.
func TestPanicsOfBandsAreTheCallers(t *testing.T) {
	t.Parallel()
	for row := range 64 {
		func() {
			defer func() {
				if p := recover(); p != "a mistake" {
					t.Errorf("row %d: recovered %v", row, p)
				}
			}()
			_ = eachBand(t.Context(), silent(), 64, 1, func(from, to int) {
				if from <= row && row < to {
					panic("a mistake")
				}
			})
		}()
	}
}
