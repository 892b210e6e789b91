package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
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

// job is a run that is being worked on here.
type job struct {
	run     run.Run
	inputs  []run.Input
	claimed time.Time
	slot    *poolSlot
	stop    context.CancelCauseFunc
}

func (j *job) claimOf() run.Held { return run.Held{ID: j.run.ID, Attempt: j.run.Attempt} }

// runJob works on a run until it is over, one way or another.
func (r *Runner) runJob(work context.Context, p *pool, j *job) {
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
	r.Hub.Tell(j.run.ID)

	out := newSink(work, r, j)
	if j.run.Cancel { // while it was somebody else's
		stop(errCancelled)
	}
	e := r.attemptRun(ctx, p, j, out)
	why := context.Cause(ctx)
	stop(nil)
	<-watched
	out.closeSink(work)
	// The end is written whatever happened to the job's own context, though not
	// for ever: once its lease is over the run is somebody else's.
	end, cancel := context.WithTimeout(context.WithoutCancel(work), r.Lease)
	defer cancel()
	switch {
	case errors.Is(why, errLost):
		e = generation.Ending{}
		r.Log.Warn("a run was taken over by another worker", "run", j.run.ID, "attempt", j.run.Attempt)
		r.markReturned(end, j)
	case errors.Is(why, errCancelled):
		e = generation.Ending{State: run.Cancelled}
	case e.State == "": // the worker stops, or the engine's server is away
		if r.returnRun(end, j) {
			e = generation.Ending{State: run.Cancelled}
		}
	}
	if e.State != run.Succeeded {
		out.dropResults(end)
	}
	if e.State != "" {
		e = r.endRun(end, j, e, out)
	}
	count(e, r.Now().Sub(j.claimed))
}

// watchCancel ends the job as soon as somebody on this node has cancelled its run.
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

// attemptRun runs the job with all its tries and says how it ended: no state
// where it was broken off.
func (r *Runner) attemptRun(ctx context.Context, p *pool, j *job, out *sink) generation.Ending {
	for try := 0; ; try++ {
		err := r.tryOnce(ctx, p, j, try, out)
		if err == nil {
			return generation.Ending{State: run.Succeeded, Results: out.closeResults(), Took: r.Now().Sub(j.claimed)}
		}
		out.dropResults(ctx)
		if ctx.Err() != nil {
			return generation.Ending{}
		}
		e := engine.As(err)
		// What is unavailable here, such as the blob store, is no server's fault.
		theirs := e.Transient && e.Code == engine.Unavailable && !fault.Is(err, fault.Unavailable)
		if theirs && try >= len(r.Retry) && r.canWait(ctx, p, j, err) {
			r.Log.Info("an engine's server is away; the run waits for it", "run", j.run.ID, "engine", p.name, "cause", e.Unwrap())
			return generation.Ending{}
		}
		if !e.Transient || try >= len(r.Retry) {
			// The person is told only what the engine says. The log is not told
			// that: it may repeat what was asked for.
			r.Log.Warn("a run failed", "run", j.run.ID, "engine", j.run.Engine, "code", string(e.Code), "cause", e.Unwrap())
			return generation.Ending{State: run.Failed, ErrorCode: string(e.Code), ErrorText: e.Message}
		}
		r.Log.Info("an engine failed; it is tried again", "run", j.run.ID, "engine", p.name, "try", try+1, "code", string(e.Code), "cause", e.Unwrap())
		select {
		case <-ctx.Done():
		case <-time.After(r.Retry[try]):
		}
	}
}

// timedOut is the code of runs that took too long, with all their tries.
const timedOut engine.Code = "TIMED_OUT"

// tryOnce runs the job once.
func (r *Runner) tryOnce(ctx context.Context, p *pool, j *job, try int, out *sink) error {
	tool, err := r.Catalog.Version(ctx, j.run.ToolHash)
	if err != nil {
		return wrapAccident("read the tool", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, tool.Timeout-r.Now().Sub(j.claimed), errTimeout)
	defer cancel()
	task := engine.Job{
		RunID:      j.run.ID,
		Attempt:    j.run.Attempt,
		Try:        try,
		With:       tool.Engine.With,
		Seed:       uint32(j.run.Seed),
		NumResults: int(j.run.NumResults),
		OutputType: tool.Output.Type,
		MimeTypes:  tool.Output.MimeTypes,
		Left:       out.engineState(),
	}
	if r.Memory != nil {
		task.Memory = func(ctx context.Context, bytes int64) (func(), error) { return r.reserveMemory(ctx, j, out, bytes) }
	}
	if task.Values, task.Files, err = r.loadInputs(ctx, j); err != nil {
		err = wrapAccident("read the inputs", err)
	} else {
		out.expectResults(media.Type(tool.Output.Type), r.provenanceMark(p, j, tool))
		err = callEngine(ctx, p.Engine, task, out)
	}
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errTimeout):
		return engine.Fail(timedOut, fmt.Sprintf("The tool took longer than %v.", tool.Timeout)).Because(err)
	case err == nil && out.countResults() == 0:
		return engine.Fail(engine.Invalid, "The tool made no result.")
	}
	return err
}

// provenanceMark is what results say about themselves, nil for nothing.
func (r *Runner) provenanceMark(p *pool, j *job, tool *catalog.Tool) []byte {
	if !r.Provenance {
		return nil
	}
	s := provenance.Statement{
		Tool:      tool.Name,
		ToolID:    j.run.ToolID,
		RequestID: j.run.ID,
		Seed:      uint32(j.run.Seed),
		Created:   j.run.Created,
		Trained:   p.Trained,
	}
	if tool.Output.Origin != "" {
		s.Trained = tool.Output.Origin == catalog.Trained
	}
	if r.Prompts {
		s.Prompt = j.run.Prompt
	}
	return s.Packet()
}

// wrapAccident is a failure of ours, which is worth another try where the database
// or the blob store is away.
func wrapAccident(what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	if fault.Is(err, fault.Unavailable) {
		return engine.Again(engine.Unavailable, "The tool could not be run just now.").Because(err)
	}
	return err
}

// callEngine runs the engine. A panic is a failure like any other, and an engine that
// does not end when it is told to is left alone.
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
		return errors.New("the engine did not end when it was told to")
	}
}

// stopWait is how long an engine may take to notice that it shall end.
const stopWait = 5 * time.Second

// endRun ends the run, trying for as long as the lease may last: what was made
// shall not be lost because the database was away for a moment. It gives the
// ending, which is a failure where the results exceed the storage quota.
func (r *Runner) endRun(ctx context.Context, j *job, e generation.Ending, out *sink) generation.Ending {
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		err := r.Runs.End(ctx, j.run, e)
		if err == nil {
			return e
		}
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.StorageQuotaExceeded && e.State == run.Succeeded {
			// Nothing was committed. It fails without cost, and says why.
			out.dropResults(ctx)
			e = generation.Ending{State: run.Failed, ErrorCode: string(f.Code), ErrorText: "The results did not fit into the account's storage."}
			r.Log.Warn("results of a run exceed the storage quota", "run", j.run.ID, "reason", f.Details["reason"])
			continue
		}
		over := errors.Is(err, generation.ErrOver)
		if over || wait > r.Lease/2 || ctx.Err() != nil {
			r.Log.Warn("a run could not be ended here", "run", j.run.ID, "error", err)
			// Where the commit may have happened after all, the sweep decides
			// which files belong to nobody.
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

// returnRun lets another worker have the run at once. It does not where the run
// was cancelled meanwhile: nobody may come for it for long.
func (r *Runner) returnRun(ctx context.Context, j *job) (cancelled bool) {
	var ok bool
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) (err error) { ok, err = run.Requeue(ctx, tx, j.claimOf(), run.Returned); return err })
	if err != nil {
		r.Log.Warn("a run could not be handed back; another worker takes it once its lease ends", "run", j.run.ID, "error", err)
	}
	if ok || err != nil {
		return false
	}
	now, err := run.Get(ctx, r.DB, j.run.AccountID, j.run.ID)
	return err == nil && now.Cancel && now.Attempt == j.run.Attempt
}

// markReturned says that this worker lives although it has lost a run: the run did
// not kill it, so that does not count against the run.
func (r *Runner) markReturned(ctx context.Context, j *job) {
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) error { return run.MarkReturned(ctx, tx, j.claimOf()) })
	if err != nil {
		r.Log.Warn("a lost run counts as a worker's death although the worker lives", "run", j.run.ID, "error", err)
	}
}

// loadInputs gives a job's values and files.
func (r *Runner) loadInputs(ctx context.Context, j *job) (values map[string]any, files map[string][]engine.File, err error) {
	if values, err = decodeValues(j.run.Inputs); err != nil {
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

// decodeValues reads stored inputs: whole numbers as int64, others as float64.
func decodeValues(text string) (map[string]any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return nil, err
	}
	for key, v := range values {
		values[key] = nativeNumber(v)
	}
	return values, nil
}

func nativeNumber(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64() // it was written by us
		return f
	case []any:
		for i := range v {
			v[i] = nativeNumber(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = nativeNumber(v[key])
		}
	}
	return v
}
