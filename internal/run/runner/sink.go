package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/memory"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
	"atelier/internal/engine"
	"atelier/internal/file/ingest"
	"atelier/internal/file/media"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

// sink receives the results and the progress of a job. Progress is written to
// the database periodically, in the background.
type sink struct {
	r *Runner
	j *job

	mu       sync.Mutex
	want     media.Type
	mark     []byte // statement of origin for results
	taken    []generation.StoredResult
	progress *int64
	position *int64              // position in the queue of the model server; nil if the job is not in that queue
	recorded time.Duration       // time in the queue of the model server that was already added to the start time of the run
	picture  []byte              // preview that is not stored yet
	moved    bool                // progress, position or preview has changed since the last write
	key      string              // blob key of the newest preview
	stored   []string            // blob keys of previews that must be deleted
	shown    int                 // number of previews so far
	closed   bool                // no more results are accepted
	note     string              // latest saved state of the engine
	hold     *memory.Reservation // memory reservation of the engine

	stop chan struct{}
	done chan struct{}
}

// reportEvery is the interval at which changed progress is written.
const reportEvery = 500 * time.Millisecond

// maxPreview is the maximum size of a preview, in bytes.
const maxPreview = 1 << 20

func newSink(ctx context.Context, r *Runner, j *job) *sink {
	s := &sink{
		r:    r,
		j:    j,
		note: j.run.EngineState,
		stop: make(chan struct{}),
		done: make(chan struct{}),
	}
	go s.reportProgress(ctx)
	return s
}

func (s *sink) Progress(fraction float64) {
	if math.IsNaN(fraction) {
		return
	}
	n := int64(math.Round(min(max(fraction, 0), 1) * 1000))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.j.clock.setWaiting(false)
	s.position = nil
	if s.progress == nil || *s.progress != n {
		s.progress = &n
		s.moved = true
	}
}

func (s *sink) Queued(position int) {
	n := int64(max(position, 0))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.j.clock.setWaiting(true)
	s.progress = nil
	if s.position == nil || *s.position != n {
		s.position = &n
		s.moved = true
	}
}

func (s *sink) Preview(picture []byte) {
	if len(picture) == 0 || len(picture) > maxPreview {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.picture = bytes.Clone(picture)
	s.moved = true
}

func (s *sink) Output(ctx context.Context, r engine.Result) error {
	s.mu.Lock()
	want := s.want
	mark := s.mark
	late := s.closed
	full := s.isFull()
	ctx = memory.WithReservation(ctx, s.hold)
	s.mu.Unlock()
	switch {
	case late:
		return errLate
	case full:
		return nil // further results are neither stored nor charged
	}
	one, err := s.r.Intake.IngestFile(ctx, r.Data, ingest.Options{
		MaxBytes:     s.r.OutputBytes,
		Types:        []media.Type{want},
		AllowText:    want == media.Text,
		XMP:          mark,
		VideoPreview: true,
		Decode:       media.DecodeRequest{Owner: s.j.run.PersonID},
	})
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Code != fault.Unavailable {
			return engine.Fail(engine.Invalid, "The result of the tool is invalid: "+f.Message).WithCause(err)
		}
		return wrapAccident("store a result", err)
	}
	s.mu.Lock()
	// While this result was being stored, the sink may have been closed, or
	// other results may have been added.
	late = s.closed
	full = s.isFull()
	if !late && !full {
		s.taken = append(s.taken, generation.StoredResult{StoredFile: one, Note: sanitize.Line(r.Note, engine.MaxNote)})
	}
	first := len(s.taken) == 1
	s.mu.Unlock()
	if late || full {
		s.r.Intake.DiscardFiles(ctx, one)
	}
	if late {
		return errLate
	}
	if first {
		failpoint.Hit("engine.after_first_result")
	}
	return nil
}

// SaveCheckpoint stores the state of the engine. It returns after the state was
// committed, so that the engine can rely on it.
func (s *sink) SaveCheckpoint(ctx context.Context, note string) error {
	if len(note) > engine.MaxCheckpoint {
		return fmt.Errorf("the engine state has %d bytes; the limit is %d", len(note), engine.MaxCheckpoint)
	}
	var ours bool
	err := s.r.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		ours, err = run.SetEngineState(ctx, tx, s.j.claimOf(), note)
		return err
	})
	switch {
	case err != nil:
		return wrapAccident("store the engine state", err)
	case !ours:
		return errLate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note = note
	return nil
}

// engineState returns the state that the engine last saved, in this attempt or
// an earlier one.
func (s *sink) engineState() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note
}

// errLate is returned to an engine that continues after its run has ended.
var errLate = errors.New("the run has ended")

// setReservation sets the memory reservation of the engine, which is also used
// to read its results.
func (s *sink) setReservation(h *memory.Reservation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = h
}

// isFull reports whether there are as many results as requested. The caller
// holds s.mu.
func (s *sink) isFull() bool { return int64(len(s.taken)) >= s.j.run.NumResults }

// expectResults sets the media type of the results and the statement of origin
// to embed in them.
func (s *sink) expectResults(t media.Type, mark []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want = t
	s.mark = mark
}

func (s *sink) countResults() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.taken)
}

// closeResults returns the results. Later results are rejected.
func (s *sink) closeResults() []generation.StoredResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.taken
}

// dropResults deletes the results so far and resets the progress.
func (s *sink) dropResults(ctx context.Context) {
	s.mu.Lock()
	taken := s.taken
	s.taken = nil
	s.moved = s.moved || s.progress != nil || s.position != nil
	s.progress = nil
	s.position = nil
	s.mu.Unlock()
	for _, one := range taken {
		s.r.Intake.DiscardFiles(ctx, one.StoredFile)
	}
}

// reportProgress periodically writes changed progress until the sink is closed.
func (s *sink) reportProgress(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			if err := s.writeProgress(ctx); err != nil {
				s.r.Log.Debug("could not store the progress of a run", "run", s.j.run.ID, "error", err)
			}
		}
	}
}

func (s *sink) writeProgress(ctx context.Context) error {
	s.mu.Lock()
	moved := s.moved
	now := run.Progress{Thousandths: s.progress, ServerPosition: s.position}
	picture := s.picture
	s.moved = false
	s.picture = nil
	waited := s.j.clock.waited()
	s.mu.Unlock()
	if !moved {
		return nil
	}
	if f, ok := media.Sniff(picture); ok && (f.Ext == "jpg" || f.Ext == "png") {
		s.shown++
		key := "preview/" + s.j.run.ID + "/" + strconv.FormatInt(s.j.run.Attempt, 10) + "-" + strconv.Itoa(s.shown) + "." + f.Ext
		if _, err := s.r.Blobs.Put(ctx, key, bytes.NewReader(picture)); err != nil {
			return err
		}
		s.key = key
		s.stored = append(s.stored, key)
	}
	now.Preview = s.key
	now.Waited = waited - s.recorded
	err := s.r.DB.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := run.SetProgress(ctx, tx, s.j.claimOf(), now)
		return err
	})
	if err != nil {
		return err
	}
	s.recorded = waited
	s.r.Hub.Notify(s.j.run.FollowedBy()...)
	for len(s.stored) > 1 {
		if err := s.r.Blobs.Delete(ctx, s.stored[0]); err != nil {
			return err
		}
		s.stored = s.stored[1:]
	}
	return nil
}

// closeSink rejects further results, stops the writing of progress, records the
// time in the server's queue and deletes the stored previews.
func (s *sink) closeSink(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	<-s.done
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.r.Lease)
	defer cancel()
	s.recordWait(ctx)
	for _, key := range s.stored {
		if err := s.r.Blobs.Delete(ctx, key); err != nil {
			s.r.Log.Debug("could not delete a preview; the sweep will delete it", "run", s.j.run.ID, "error", err)
		}
	}
}

// recordWait adds the time in the server's queue that was not recorded yet to
// the start time of the run, so that the duration of the run does not include
// this time.
func (s *sink) recordWait(ctx context.Context) {
	s.mu.Lock()
	s.picture = nil
	s.moved = s.j.clock.waited() > s.recorded
	s.mu.Unlock()
	if err := s.writeProgress(ctx); err != nil {
		s.r.Log.Debug("could not store how long a run waited; its recorded duration includes the wait", "run", s.j.run.ID, "error", err)
	}
}
