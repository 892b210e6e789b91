package fal_test

import (
	"testing"
	"time"

	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/fal/faltest"
)

func TestAnotherWorkerGoesOn(t *testing.T) {
	w := start(t, faltest.Options{Takes: time.Second})
	enginetest.TakesUp(t, enginetest.Trial{Engine: w.engine, Job: painting(painter, 1)}, w.Creates)
}
