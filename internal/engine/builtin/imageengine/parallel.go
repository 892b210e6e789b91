package imageengine

import (
	"context"
	"sync"
	"sync/atomic"

	"atelier/internal/base/lowpriority"
	"atelier/internal/engine"
)

// eachBand processes rows 0 to n-1 on all cores in bands of at least minRows
// rows (the last band may be shorter) and returns when every worker has
// stopped. The size of the bands depends on the number of cores, but the result
// must not. The function do must therefore compute the same result wherever a
// band begins.
//
// After ctx is cancelled no worker starts another band, but running bands are
// completed, so a band must be short.
func eachBand(ctx context.Context, s engine.Span, n, minRows int, do func(from, to int)) error {
	workers := lowpriority.Cores()
	// Several bands per worker keep the wait for the slowest worker short.
	each := max(minRows, (n+8*workers-1)/(8*workers))
	count := (n + each - 1) / each
	workers = min(workers, count)
	var next, done atomic.Int64

	work := func(report func()) {
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= count {
				return
			}
			do(i*each, min((i+1)*each, n))
			done.Add(1)
			report()
		}
	}
	low := hasLowPriority(ctx)
	if low && workers > 1 {
		lowpriority.AddProcessors(workers - 1)
		defer lowpriority.AddProcessors(1 - workers)
	}
	var others sync.WaitGroup
	var broken atomic.Value
	for range workers - 1 {
		others.Go(func() {
			// A panic in this goroutine would crash the whole program. It is
			// raised again in the caller's goroutine, where it fails only the
			// job.
			defer func() {
				if p := recover(); p != nil {
					broken.CompareAndSwap(nil, workerPanic{p})
				}
			}()
			if low {
				lowpriority.Lower()
			}
			work(func() {})
		})
	}
	func() {
		defer others.Wait()
		// The calling goroutine reports the progress of all workers.
		work(func() { s.ReportProgress(float64(done.Load()) / float64(count)) })
	}()
	if p, ok := broken.Load().(workerPanic); ok {
		panic(p.value)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.ReportProgress(1)
	return nil
}

// workerPanic wraps the value of a worker's panic, because atomic.Value
// requires values of one type.
type workerPanic struct{ value any }
