package main

import (
	"errors"
	"strings"
	"testing"

	"atelier/internal/engine/builtin/tiny/kernel"
	"atelier/internal/engine/builtin/tiny/neural"
)

func TestThreadsOfTheModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ cores, wanted, want int }{{4, 0, 4}, {4, 1, 1}, {4, 4, 4}, {4, 2000, 4}} {
		if got := workerThreads(tt.cores, tt.wanted); got != tt.want {
			t.Errorf("%d of %d cores = %d threads, want %d", tt.wanted, tt.cores, got, tt.want)
		}
	}
}

// TestTheDoctorOpensTheModel has it say which kernel computes, or why none does.
func TestTheDoctorOpensTheModel(t *testing.T) {
	t.Parallel()
	k := kernel.Best()
	well := checkPictureModel(k, func() (*neural.Model, error) { return neural.Open(k, 1) })
	if well.State != "ok" || !strings.Contains(well.Detail, k.String()) {
		t.Errorf("finding = %+v", well)
	}
	ill := checkPictureModel(k, func() (*neural.Model, error) { return nil, errors.New("words.bin is damaged") })
	if ill.State != "missing" || !strings.Contains(ill.Detail, "words.bin is damaged") {
		t.Errorf("finding = %+v", ill)
	}
}
