package replicate_test

import (
	"testing"
	"time"

	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/replicate/replicatetest"
)

func TestAnotherWorkerGoesOn(t *testing.T) {
	w := start(t, replicatetest.Options{Takes: time.Second})
	enginetest.TakesUp(t, enginetest.Trial{Engine: w.engine, Job: painting(official, 1)}, w.Creates)
}
