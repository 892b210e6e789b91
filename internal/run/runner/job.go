package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/media"
	"atelier/internal/file/provenance"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

// job is a run that this process works on.
type job struct {
	run    run.Run
	inputs []run.Input
	clock  *workClock // starts at the time of the claim
	slot   *poolSlot
	stop   context.CancelCauseFunc
}

func (j *job) claimOf() run.Lease { return run.Lease{ID: j.run.ID, Attempt: j.run.Attempt} }

// runJob works on a run until the run ends, is put back into the queue, or is
// taken over by another worker.
func (r *Runner) runJob(work context.Context, p *slotPool, j *job) {
	failpoint.Hit("dispatch.after_lease")
	ctx, stop := context.WithCancelCause(work)
	defer stop(nil)
	j.stop = stop
	r.mu.Lock()
	r.current[j] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.current, j)
		r.mu.Unlock()
	}()
	count := r.metrics.countRun(p.name)
	news, unfollow := r.Hub.Follow(j.run.ID)
	defer unfollow()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.watchCancel(ctx, j, news)
	}()
	r.Hub.Notify(j.run.FollowedBy()...)

	out := newSink(work, r, j)
	if j.run.Cancel { // cancelled while another worker had the run
		stop(errCancelled)
	}
	e := r.attemptRun(ctx, p, j, out)
	why := context.Cause(ctx)
	stop(nil)
	<-watched
	out.closeSink(work)
	// The end is written even if the context of the job has ended, but only
	// until the lease expires. After that, another worker may have claimed the
	// run.
	end, cancel := context.WithTimeout(context.WithoutCancel(work), r.Lease)
	defer cancel()
	switch {
	case errors.Is(why, errLost):
		e = generation.Outcome{}
		r.Log.Warn("run taken over by another worker", "run", j.run.ID, "attempt", j.run.Attempt)
		r.markReturned(end, j)
	case errors.Is(why, errCancelled):
		e = generation.Outcome{State: run.Cancelled}
	case e.State == "": // the worker stops, or the engine's server is unavailable
		if r.returnRun(end, j) {
			e = generation.Outcome{State: run.Cancelled}
		}
	}
	if e.State != run.Succeeded {
		out.dropResults(end)
	}
	if e.State != "" {
		e = r.endRun(end, j, e, out)
	}
	count(e, j.clock.worked())
}

// watchCancel stops the job as soon as its run is cancelled on this node. news
// receives a value after every change of the run.
func (r *Runner) watchCancel(ctx context.Context, j *job, news <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
		now, err := run.Get(ctx, r.DB, j.run.AccountID, j.run.ID)
		if err == nil && now.Cancel && now.Attempt == j.run.Attempt {
			j.stop(errCancelled)
			return
		}
	}
}

// attemptRun calls the engine, repeatedly after temporary errors, and returns
// the outcome of the run. The outcome has no state if the job was interrupted
// or the run must wait for the engine's server.
func (r *Runner) attemptRun(ctx context.Context, p *slotPool, j *job, out *sink) generation.Outcome {
	for try := 0; ; try++ {
		err := r.tryOnce(ctx, p, j, try, out)
		if err == nil {
			return generation.Outcome{State: run.Succeeded, Results: out.closeResults(), Took: j.clock.worked()}
		}
		if ctx.Err() != nil {
			return generation.Outcome{}
		}
		e := engine.AsError(err)
		// If the error comes from another part of this installation, such as
		// the blob store, the engine's server is not the cause.
		serverFault := e.Transient && e.Code == engine.Unavailable && !fault.Is(err, fault.Unavailable)
		if serverFault && try >= len(r.Retry) && r.canWait(ctx, p, j, err) {
			r.Log.Info("model server unavailable; the run waits", "run", j.run.ID, "engine", p.name, "cause", e.Unwrap())
			return generation.Outcome{}
		}
		if !e.Transient || try >= len(r.Retry) {
			// People see only the message of the engine. The message is not
			// logged, because it may repeat the prompt.
			p.recordFailed(r.DB.Now(), e.Code)
			r.Log.Warn("run failed", "run", j.run.ID, "engine", j.run.Engine, "code", string(e.Code), "cause", e.Unwrap())
			return generation.Outcome{State: run.Failed, ErrorCode: string(e.Code), ErrorText: e.Message}
		}
		r.Log.Info("engine failed; trying again", "run", j.run.ID, "engine", p.name, "try", try+1, "code", string(e.Code), "cause", e.Unwrap())
		out.dropResults(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(r.Retry[try]):
		}
	}
}

// tryOnce calls the engine once. try is the number of earlier calls.
func (r *Runner) tryOnce(ctx context.Context, p *slotPool, j *job, try int, out *sink) error {
	tool, err := r.Catalog.ToolVersion(ctx, j.run.ToolHash)
	if err != nil {
		return wrapAccident("read the tool", err)
	}
	ctx, cancel := j.clock.limitTry(ctx, tool.Timeout, r.QueueTimeout)
	defer cancel()
	task := engine.Job{
		RunID:           j.run.ID,
		Attempt:         j.run.Attempt,
		Try:             try,
		With:            tool.Engine.With,
		Seed:            uint32(j.run.Seed),
		NumResults:      int(j.run.NumResults),
		OutputType:      tool.Output.Type,
		MimeTypes:       tool.Output.MimeTypes,
		SavedCheckpoint: out.engineState(),
	}
	if r.Memory != nil {
		task.Memory = func(ctx context.Context, bytes int64) (func(), error) { return r.reserveMemory(ctx, j, out, bytes) }
	}
	var mark []byte
	if task.Values, task.Files, err = r.loadInputs(ctx, j); err != nil {
		err = wrapAccident("read the inputs", err)
	} else if mark, err = r.provenanceMark(ctx, j, tool); err == nil {
		out.expectResults(media.Type(tool.Output.Type), mark)
		err = callEngine(ctx, p.Engine, task, out)
	}
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errTimeout):
		return engine.Fail(generation.TimedOut, fmt.Sprintf("The tool took longer than %v.", tool.Timeout)).WithCause(err)
	case err != nil && errors.Is(context.Cause(ctx), errQueueTimeout):
		return engine.Fail(generation.TimedOut, fmt.Sprintf("The run waited for more than %v in the queue of the tool's server. Try again later.", r.QueueTimeout)).WithCause(err)
	case err == nil && out.countResults() == 0:
		return engine.Fail(engine.Invalid, "The tool made no result.")
	}
	return err
}

// provenanceMark returns the statement of origin to embed in results, as an XMP
// packet. It returns nil if statements are turned off.
func (r *Runner) provenanceMark(ctx context.Context, j *job, tool *catalog.Tool) ([]byte, error) {
	if !r.Provenance {
		return nil, nil
	}
	s := provenance.Statement{
		Tool:      tool.Name,
		ToolID:    j.run.ToolID,
		RequestID: j.run.ID,
		Seed:      uint32(j.run.Seed),
		Created:   j.run.Created,
		Trained:   r.isTrained(tool),
	}
	if r.Prompts {
		s.Prompt = j.run.Prompt
	}
	if err := r.Runs.FlowHistory(ctx, j.run, &s, r.isTrained); err != nil {
		return nil, wrapAccident("read the steps of the flow", err)
	}
	return s.XMPPacket(), nil
}

// isTrained reports whether the results of a tool are made by a trained model. If
// neither the manifest says so nor this node has the engine, they count as such.
func (r *Runner) isTrained(t *catalog.Tool) bool {
	if t.Output.Origin != "" {
		return t.Output.Origin == catalog.Trained
	}
	p := r.slotPools[t.Engine.Name]
	return p == nil || p.Trained
}

// wrapAccident wraps an internal error. If the database or the blob store is
// unavailable, the result is a temporary error, after which the engine is
// called again.
func wrapAccident(doing string, err error) error {
	err = fmt.Errorf("%s: %w", doing, err)
	if fault.Is(err, fault.Unavailable) {
		return engine.FailTransient(engine.Unavailable, "The tool could not be run. Try again later.").WithCause(err)
	}
	return err
}

// callEngine calls the engine and returns a panic as an error. After ctx has
// ended, it waits for the engine only for stopWait.
func callEngine(ctx context.Context, e engine.Engine, task engine.Job, out *sink) error {
	ended := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			ended <- err
		}()
		failpoint.Hit("engine.after_start")
		err = e.Run(ctx, task, out)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(stopWait):
		return errors.New("the engine did not return after its context was cancelled")
	}
}

// stopWait is how long an engine may take to return after its context has
// ended. After that, the call is abandoned.
const stopWait = 5 * time.Second

// endRun ends the run. If writing to the database fails, it retries while the
// lease may still be valid, so that results are not lost while the database is
// unavailable. endRun returns the outcome, which is a failure if the results
// exceed the storage quota.
func (r *Runner) endRun(ctx context.Context, j *job, e generation.Outcome, out *sink) generation.Outcome {
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		err := r.Runs.EndRun(ctx, j.run, e)
		if err == nil {
			return e
		}
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.StorageQuotaExceeded && e.State == run.Succeeded {
			// Nothing was committed. The run fails and costs nothing.
			out.dropResults(ctx)
			e = generation.Outcome{State: run.Failed, ErrorCode: string(f.Code), ErrorText: "The results did not fit into the account's storage."}
			r.Log.Warn("results exceed the storage quota", "run", j.run.ID, "reason", f.Details["reason"])
			continue
		}
		over := errors.Is(err, generation.ErrNotHeld)
		if over || wait > r.Lease/2 || ctx.Err() != nil {
			r.Log.Warn("could not store the end of a run", "run", j.run.ID, "error", err)
			// After a retry, an earlier attempt may have been committed, so the
			// files must be kept. A periodic clean-up deletes files that no
			// database row refers to.
			if over && wait == 50*time.Millisecond {
				out.dropResults(ctx)
			}
			if over {
				r.markReturned(ctx, j)
			}
			return e
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// returnRun puts the run back into the queue. If the run was cancelled in the
// meantime, it stays with this worker, because another worker might claim it
// much later. cancelled is true in this case.
func (r *Runner) returnRun(ctx context.Context, j *job) (cancelled bool) {
	var ok bool
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) (err error) { ok, err = run.Requeue(ctx, tx, j.claimOf(), run.Returned); return err })
	if err != nil {
		r.Log.Warn("could not return a run to the queue; it is claimed again when its lease expires", "run", j.run.ID, "error", err)
	}
	if ok || err != nil {
		return false
	}
	now, err := run.Get(ctx, r.DB, j.run.AccountID, j.run.ID)
	return err == nil && now.Cancel && now.Attempt == j.run.Attempt
}

// markReturned records that this worker is alive although another worker has
// taken over the run, so that the run does not count as lost by the death of a
// worker.
func (r *Runner) markReturned(ctx context.Context, j *job) {
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) error { return run.MarkReturned(ctx, tx, j.claimOf()) })
	if err != nil {
		r.Log.Warn("could not record that another worker has taken over the run; this attempt counts as failed", "run", j.run.ID, "error", err)
	}
}

// loadInputs returns the input values and input files of a job, by field.
func (r *Runner) loadInputs(ctx context.Context, j *job) (values map[string]any, files map[string][]engine.File, err error) {
	if values, err = catalog.DecodeObject(j.run.Inputs); err != nil {
		return nil, nil, fmt.Errorf("inputs of run: %w", err)
	}
	files = map[string][]engine.File{}
	err = r.DB.Read(ctx, func(tx *sqldb.Tx) error {
		clear(files)
		for _, in := range j.inputs {
			a, err := asset.Get(ctx, tx, in.AssetID)
			if err != nil {
				return err
			}
			var address func() string
			if r.Address != nil {
				address = func() string { return r.Address(a, j.run.PersonID) }
			}
			files[in.Field] = append(files[in.Field], engine.File{
				MimeType: a.MimeType,
				Size:     a.Size,
				Width:    a.Width,
				Height:   a.Height,
				Address:  address,
				Open: func(ctx context.Context) (io.ReadCloser, error) {
					body, err := blob.OpenVerified(ctx, r.Blobs, blob.File{Key: a.Blob, Size: a.Size, SHA256: a.SHA256})
					if err != nil {
						return nil, wrapAccident("open an input", err)
					}
					return body, nil
				},
			})
		}
		return nil
	})
	for field := range files {
		delete(values, field)
	}
	return values, files, err
}
