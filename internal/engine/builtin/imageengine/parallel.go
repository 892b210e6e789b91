package imageengine

import (
	"context"
	"sync"
	"sync/atomic"

	"atelier/internal/base/lowpriority"
	"atelier/internal/engine"
)

// bands does work for rows 0 to n-1 on all cores: it hands out stretches of at
// least some rows, the last one may be shorter, and returns when nothing runs
// any more. What it does must not depend on where stretches begin, for that
// goes by the number of cores, and results must not.
//
// Nobody takes another stretch once ctx has ended, so each has to be short.
func bands(ctx context.Context, s engine.Span, n, least int, do func(from, to int)) error {
	workers := lowpriority.Cores()
	// Several stretches for each worker, so that none waits long for the last.
	each := max(least, (n+8*workers-1)/(8*workers))
	count := (n + each - 1) / each
	workers = min(workers, count)
	var next, done atomic.Int64
	work := func(told func()) {
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= count {
				return
			}
			do(i*each, min((i+1)*each, n))
			done.Add(1)
			told()
		}
	}
	low := inBackground(ctx)
	if low && workers > 1 {
		lowpriority.AddTurns(workers - 1)
		defer lowpriority.AddTurns(1 - workers)
	}
	var others sync.WaitGroup
	var broken atomic.Value
	for range workers - 1 {
		others.Go(func() {
			// A panic here would end the program; the caller's ends only the job.
			defer func() {
				if p := recover(); p != nil {
					broken.CompareAndSwap(nil, failed{p})
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
		// One of them tells, which is enough.
		work(func() { s.At(float64(done.Load()) / float64(count)) })
	}()
	if p, ok := broken.Load().(failed); ok {
		panic(p.with)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.At(1)
	return nil
}

// failed is what a worker panicked with.
type failed struct{ with any }
