package imageengine

import (
	"context"
	"sync"
	"sync/atomic"

	"atelier/internal/base/lowpriority"
	"atelier/internal/engine"
)

// eachBand processes rows 0 to n-1 on all cores in bands of at least minRows rows (the last band
// may be shorter) and returns when every worker has stopped. The size of bands depends on the
// number of cores; results must not, so do must not depend on where a band begins.
//
// After ctx has ended no worker starts another band, so a band must be short.
func eachBand(ctx context.Context, s engine.Span, n, minRows int, do func(from, to int)) error {
	workers := lowpriority.Cores()
	// Several bands per worker, so that no worker waits long for the last one.
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
			// A panic in this goroutine would end the program. Raised again in the
			// caller's goroutine, it ends only the job.
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
		// One worker reports progress for all.
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

// workerPanic holds the value of a worker's panic.
type workerPanic struct{ value any }
