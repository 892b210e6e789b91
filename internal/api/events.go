package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"atelier/internal/api/wire"
	"atelier/internal/generation"
	"atelier/internal/httpd"
	"atelier/internal/library"
)

const (
	// maxStreams is how many event streams one person may have on a node.
	maxStreams = 32
	// Other nodes move runs too, and nobody here hears of it.
	lookEvery = 500 * time.Millisecond
	// aliveEvery is how often a silent stream shows that it lives.
	aliveEvery = 15 * time.Second
	// askEvery is how often a stream asks whether it still may.
	askEvery = 5 * time.Second
)

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
		return rateLimited(askEvery)
	}
	defer leave()
	ctx := r.Context()
	news, stop := s.Hub.Follow(id)
	defer stop()
	rec, err := s.Runs.Status(ctx, c.account.ID, id)
	if err != nil {
		return err
	}
	e := events{w: w, conn: http.NewResponseController(w), s: s, viewerID: c.caller.PersonID, seen: lastEvent(r.Header)}
	if e.seen > rec.Revision {
		e.seen = 0 // this run never sent it
	}
	if rec.State.Ended() && rec.Revision <= e.seen {
		return done(w) // tells browsers not to come back
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies shall pass events on at once
	w.WriteHeader(http.StatusOK)
	look, alive, ask := time.NewTicker(lookEvery), time.NewTicker(aliveEvery), time.NewTicker(askEvery)
	defer look.Stop()
	defer alive.Stop()
	defer ask.Stop()
	stopping := httpd.RecordOf(ctx).Stopping
	for {
		if ended, err := e.tell(rec); err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done():
			return nil // the client left
		case <-stopping:
			return nil // it comes back to another node
		case <-alive.C:
			err = e.send(": alive\n\n")
		case <-ask.C:
			err = c.still(ctx)
		case <-news:
		case <-look.C:
		}
		if err == nil {
			rec, err = s.Runs.Status(ctx, c.account.ID, id)
		}
		if err != nil {
			return err
		}
	}
}

// events writes a stream.
type events struct {
	w        http.ResponseWriter
	conn     *http.ResponseController
	s        *Server
	viewerID string
	seen     int64 // revision
	before   generation.Record
	begun    bool
}

// tell sends what is new about a run. Only the last of several events carries
// the id: who was cut off before it gets all of them again.
func (e *events) tell(rec generation.Record) (ended bool, err error) {
	if rec.Revision <= e.seen {
		return false, nil
	}
	type event struct {
		name string
		data any
	}
	var all []event
	if !e.begun || rec.State != e.before.State || rec.Cancel != e.before.Cancel {
		all = append(all, event{"status", asGeneration(e.s.Links, rec, e.viewerID)})
	}
	if rec.Progress != nil && (e.before.Progress == nil || *e.before.Progress != *rec.Progress) {
		all = append(all, event{"progress", wire.GenerationProgress{Progress: asProgress(rec.Progress), Stage: wire.GenerationStage(rec.State)}})
	}
	if rec.Preview != "" && rec.Preview != e.before.Preview {
		all = append(all, event{"preview", wire.GenerationPreview{
			URL: e.s.Links.URL(library.OfRun, rec.ID, library.Preview, e.viewerID), MimeType: previewType(rec.Preview),
		}})
	}
	if ended = rec.State.Ended(); ended {
		all = append(all, event{"done", asGeneration(e.s.Links, rec, e.viewerID)})
	}
	text := ""
	for i, one := range all {
		data, err := json.Marshal(one.data)
		if err != nil {
			return false, fmt.Errorf("encode event: %w", err)
		}
		if i == len(all)-1 {
			text += fmt.Sprintf("id: %d\n", rec.Revision)
		}
		text += fmt.Sprintf("event: %s\ndata: %s\n\n", one.name, data)
	}
	e.seen, e.before, e.begun = rec.Revision, rec, true
	if text == "" {
		return ended, nil
	}
	return ended, e.send(text)
}

// send writes to the client, who has the usual time to take it.
func (e *events) send(text string) error {
	_ = e.conn.SetWriteDeadline(e.s.Now().Add(aliveEvery)) // a connection without deadlines has none to move
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	return e.conn.Flush()
}

func previewType(key string) string {
	if len(key) > 4 && key[len(key)-4:] == ".png" {
		return "image/png"
	}
	return "image/jpeg"
}
