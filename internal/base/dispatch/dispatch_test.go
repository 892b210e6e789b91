package dispatch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"atelier/internal/base/dispatch"
)

func TestLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loop := dispatch.NewLoop()
		stop := make(chan struct{})
		began := time.Now()
		var calls []time.Duration
		go loop.Run(stop, func() time.Duration {
			calls = append(calls, time.Since(began))
			return time.Minute
		})

		time.Sleep(10 * time.Second)
		loop.Wake()
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		close(stop)
		synctest.Wait()
		loop.Wake()
		time.Sleep(time.Hour)

		for i, want := range []time.Duration{0, 10 * time.Second, 70 * time.Second, 130 * time.Second} {
			if i >= len(calls) || calls[i] != want {
				t.Fatalf("calls at %v, want number %d at %v", calls, i, want)
			}
		}
		if len(calls) != 4 {
			t.Errorf("calls at %v, want 4", calls)
		}
	})
}
