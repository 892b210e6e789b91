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

// sink takes what an engine makes of one run. What it is told about progress
// reaches the database now and then, in the background.
type sink struct {
	r *Runner
	j *job

	mu       sync.Mutex
	want     media.Type
	mark     []byte // what results say about themselves
	taken    []generation.Made
	progress *int64
	picture  []byte       // a preview to be stored
	moved    bool         // something is to be told
	key      string       // of the preview that is shown
	stored   []string     // keys of previews that are to be deleted
	shown    int          // how many there were
	closed   bool         // the engine should have ended
	note     string       // the engine's last
	hold     *memory.Hold // what the engine has reserved

	stop chan struct{}
	done chan struct{}
}

// reportEvery is how often a run's progress is written down at most.
const reportEvery = 500 * time.Millisecond

// maxPreview is the largest preview that is shown.
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
	if s.progress == nil || *s.progress != n {
		s.progress = &n
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
	ctx = memory.WithHold(ctx, s.hold)
	s.mu.Unlock()
	switch {
	case late:
		return errLate
	case full:
		return nil // more than was asked for is not kept, and not paid
	}
	one, err := s.r.Intake.Take(ctx, r.Data, ingest.Want{
		MaxBytes: s.r.OutputBytes,
		Types:    []media.Type{want},
		Text:     want == media.Text,
		Mark:     mark,
		Frame:    true,
		Turn:     media.Turn{Owner: s.j.run.PersonID},
	})
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Code != fault.Unavailable {
			return engine.Fail(engine.Invalid, "The tool made something that is no result: "+f.Message).Because(err)
		}
		return wrapAccident("store a result", err)
	}
	s.mu.Lock()
	// Others may have come first while this one was stored.
	late = s.closed
	full = s.isFull()
	if !late && !full {
		s.taken = append(s.taken, generation.Made{Taken: one, Note: sanitize.Line(r.Note, engine.MaxRemark)})
	}
	first := len(s.taken) == 1
	s.mu.Unlock()
	if late || full {
		s.r.Intake.Drop(ctx, one)
	}
	if late {
		return errLate
	}
	if first {
		failpoint.Hit("engine.after_first_result")
	}
	return nil
}

// Leave writes the note down at once: the engine goes on when it is safe.
func (s *sink) Leave(ctx context.Context, note string) error {
	if len(note) > engine.MaxNote {
		return fmt.Errorf("a note of %d bytes, at most %d are kept", len(note), engine.MaxNote)
	}
	var ours bool
	err := s.r.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		ours, err = run.SetEngineState(ctx, tx, s.j.claimOf(), note)
		return err
	})
	switch {
	case err != nil:
		return wrapAccident("keep a note", err)
	case !ours:
		return errLate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note = note
	return nil
}

// engineState is what the tries so far left.
func (s *sink) engineState() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note
}

// errLate is for an engine that goes on after its end.
var errLate = errors.New("the run is over")

// setReservation remembers what the engine has reserved: its results are read with it.
func (s *sink) setReservation(h *memory.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = h
}

// isFull tells whether there are as many results as were asked for.
func (s *sink) isFull() bool { return int64(len(s.taken)) >= s.j.run.NumResults }

// expectResults says what the results have to be, and what is written into them.
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

// closeResults gives the results, and takes no more.
func (s *sink) closeResults() []generation.Made {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.taken
}

// dropResults gives up what was taken so far.
func (s *sink) dropResults(ctx context.Context) {
	s.mu.Lock()
	taken := s.taken
	s.taken = nil
	s.moved = s.moved || s.progress != nil
	s.progress = nil
	s.mu.Unlock()
	for _, one := range taken {
		s.r.Intake.Drop(ctx, one.Taken)
	}
}

// reportProgress writes down what has changed until the sink is closed.
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
				s.r.Log.Debug("progress of a run was not written", "run", s.j.run.ID, "error", err)
			}
		}
	}
}

func (s *sink) writeProgress(ctx context.Context) error {
	s.mu.Lock()
	moved := s.moved
	progress := s.progress
	picture := s.picture
	s.moved = false
	s.picture = nil
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
	err := s.r.DB.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := run.SetProgress(ctx, tx, s.j.claimOf(), progress, s.key)
		return err
	})
	if err != nil {
		return err
	}
	s.r.Hub.Tell(s.j.run.ID)
	for len(s.stored) > 1 {
		if err := s.r.Blobs.Delete(ctx, s.stored[0]); err != nil {
			return err
		}
		s.stored = s.stored[1:]
	}
	return nil
}

// closeSink takes no more, ends the reports and takes the last preview away.
func (s *sink) closeSink(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	<-s.done
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.r.Lease)
	defer cancel()
	for _, key := range s.stored {
		if err := s.r.Blobs.Delete(ctx, key); err != nil {
			s.r.Log.Debug("a preview was left for the sweep", "run", s.j.run.ID, "error", err)
		}
	}
}
