package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/file/library"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

const (
	// maxStreams is how many event streams one person may have on a node.
	maxStreams = 32
	// Other nodes move things too, and nobody here hears of it.
	lookEvery = 500 * time.Millisecond
	// aliveEvery is how often a silent stream shows that it lives.
	aliveEvery = 15 * time.Second
	// askEvery is how often a stream asks whether it still may.
	askEvery = 5 * time.Second
)

// tooManyStreams refuses one more event stream.
func tooManyStreams() error {
	return fault.TooMany("You follow too much at once. Close a stream first.", maxStreams, 0, askEvery)
}

// stream sends events until tell has told the last one, the client leaves, this
// node stops or the caller may no longer. tell looks how things stand and sends
// what is new: at the start, when there are news, and now and then.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, news <-chan struct{}, tell func(*events) (ended bool, err error)) error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies shall pass events on at once
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil // who asks for no events can't wait for the last one
	}
	look := time.NewTicker(lookEvery)
	alive := time.NewTicker(aliveEvery)
	ask := time.NewTicker(askEvery)
	defer look.Stop()
	defer alive.Stop()
	defer ask.Stop()
	ctx := r.Context()
	c := callOf(r)
	e := &events{w: httpd.Patient(w, s.Now, aliveEvery), conn: http.NewResponseController(w)}
	stopping := httpd.RecordOf(ctx).Stopping
	for {
		if ended, err := tell(e); err != nil || ended {
			return err
		}
		var err error
		select {
		case <-ctx.Done():
			return nil // the client left
		case <-stopping:
			return nil // it comes back to another node
		case <-alive.C:
			err = e.send([]byte(": alive\n\n"))
		case <-ask.C:
			err = c.reauthorize(ctx)
		case <-news:
		case <-look.C:
		}
		if err != nil {
			return err
		}
	}
}

// events writes a stream.
type events struct {
	w    io.Writer // gives the client the usual time to take each event
	conn *http.ResponseController
}

// event is one of a stream. Who was cut off after an id gets what came later
// again; 0 is for those that can't be gone on from.
type event struct {
	id   int64
	name string
	data any
}

// tell sends events together.
func (e *events) tell(all ...event) error {
	var text []byte
	for _, one := range all {
		data, err := json.Marshal(one.data)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		if one.id > 0 {
			text = fmt.Appendf(text, "id: %d\n", one.id)
		}
		text = fmt.Appendf(text, "event: %s\ndata: %s\n\n", one.name, data)
	}
	if text == nil {
		return nil
	}
	return e.send(text)
}

// send writes to the client.
func (e *events) send(text []byte) error {
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.conn.Flush()
}

// streamGeneration tells of a run as it moves, until it has ended. The events
// are states and not steps: who comes back with the id of the last event gets
// what has changed since.
func (s *Server) streamGeneration(w http.ResponseWriter, r *http.Request) error {
	c, id, err := runCall(r)
	if err != nil {
		return err
	}
	leave, ok := s.streams.Take(c.caller.PersonID)
	if !ok {
		return tooManyStreams()
	}
	defer leave()
	news, stop := s.Hub.Follow(id)
	defer stop()
	rec, err := s.Runs.Status(r.Context(), c.caller.AccountID, id)
	if err != nil {
		return err
	}
	t := runTale{s: s, viewerID: c.caller.PersonID, seen: lastEvent(r.Header)}
	if t.seen > rec.Revision {
		t.seen = 0 // this run never sent it
	}
	if rec.State.Ended() && rec.Revision <= t.seen {
		return done(w) // tells browsers not to come back
	}
	return s.stream(w, r, news, func(e *events) (ended bool, err error) {
		if t.begun {
			if rec, err = s.Runs.Status(r.Context(), c.caller.AccountID, id); err != nil {
				return false, err
			}
		}
		t.begun = true
		return t.tell(e, rec)
	})
}

// runTale is what somebody was told about a run.
type runTale struct {
	s        *Server
	viewerID string
	seen     int64 // revision
	before   *generation.Record
	begun    bool
}

// tell sends what is new about a run. Only the last of several events carries
// the id: who was cut off before it gets all of them again.
func (t *runTale) tell(e *events, rec generation.Record) (ended bool, err error) {
	if rec.Revision <= t.seen {
		return false, nil
	}
	before := generation.Record{}
	if t.before != nil {
		before = *t.before
	}
	var all []event
	add := func(name string, data any) { all = append(all, event{name: name, data: data}) }
	if t.before == nil || rec.State != before.State || rec.Cancel != before.Cancel {
		add("status", asGeneration(t.s.Links, rec, t.viewerID))
	}
	if rec.Progress != nil && (before.Progress == nil || *before.Progress != *rec.Progress) {
		add("progress", wire.GenerationProgress{Progress: asProgress(rec.Progress), Stage: wire.GenerationStage(rec.State)})
	}
	if rec.Preview != "" && rec.Preview != before.Preview {
		add("preview", wire.GenerationPreview{
			URL: t.s.Links.URL(library.OfRun, rec.ID, library.Preview, t.viewerID, library.RunNames(rec.Preview).Preview), MimeType: previewType(rec.Preview),
		})
	}
	if ended = rec.State.Ended(); ended {
		add("done", asGeneration(t.s.Links, rec, t.viewerID))
	}
	if len(all) > 0 {
		all[len(all)-1].id = rec.Revision
	}
	t.seen = rec.Revision
	t.before = &rec
	return ended, e.tell(all...)
}

func previewType(key string) string {
	if len(key) > 4 && key[len(key)-4:] == ".png" {
		return "image/png"
	}
	return "image/jpeg"
}
