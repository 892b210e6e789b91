package neural

import (
	"image"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"atelier/internal/engine/builtin/tiny/kernel"
	"atelier/internal/testkit/watch"
)

// A picture that was handed out belongs to its owner alone: the crew, which
// lies down, does not keep it in memory.
func TestPicturesAreLetGo(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 3)
	gone := make(chan string, 2)
	func() {
		in := image.NewNRGBA(image.Rect(0, 0, 9, 5))
		out, err := m.EnlargePicture(t.Context(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		runtime.AddCleanup(in, func(what string) { gone <- what }, "what went in")
		runtime.AddCleanup(out, func(what string) { gone <- what }, "what came out")
	}()
	watch.Until(t, "pictures to be let go", func() bool {
		runtime.GC()
		return len(gone) == 2
	})
}

// Many models, in any order, with faults: nobody waits for ever.
func TestCrewsComeAndGo(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 30 {
				hands := make([]*worker, 1+rng.IntN(4))
				for i := range hands {
					hands[i] = new(worker)
				}
				c := newWorkerPool(hands)
				for range rng.IntN(30) {
					sum, bad := make([]int, rng.IntN(40)), rng.IntN(60)
					err := c.runTask(func() {
						for range 3 {
							c.runParallel(len(sum), func(_ *worker, i int) {
								sum[i]++
								if i == bad {
									panic("fault")
								}
							})
						}
					})
					if (err != nil) != (bad < len(sum)) {
						t.Errorf("%d parts, %d bad: %v", len(sum), bad, err)
					}
					for i, n := range sum {
						if n != 3 && err == nil {
							t.Errorf("part %d was done %d times", i, n)
						}
					}
				}
				c.stopWorkers()
			}
		})
	}
	all.Wait()
}

// Close waits for whoever draws, and may be called again by anybody.
func TestClosingWhileDrawing(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 2)
	o := Order{Prompt: "cat", Steps: 2}
	var all sync.WaitGroup
	_, err := m.DrawPicture(t.Context(), o, func(done, _ int, _ *image.NRGBA) error {
		if done == 1 {
			for range 3 {
				all.Go(m.Close)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	all.Wait()
	if _, err := m.DrawPicture(t.Context(), o, nil); err == nil {
		t.Error("a closed model draws")
	}
	if _, err := m.EnlargePicture(t.Context(), image.NewNRGBA(image.Rect(0, 0, 4, 4)), nil); err == nil {
		t.Error("a closed model enlarges")
	}
}
