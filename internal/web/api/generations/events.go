package generations

import (
	"net/http"
	"strconv"
	"strings"

	"atelier/internal/file/library"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// streamGeneration serves GET /api/v2/generate/{request_id}/events: it streams
// the states of a run until the run has ended. An event contains the current
// state, not a single change: a client that resumes with Last-Event-ID gets the
// states that have changed since that event.
func (h *Handler) streamGeneration(w http.ResponseWriter, r *http.Request) error {
	call, id, err := RunCall(r)
	if err != nil {
		return err
	}
	release, err := h.Streams.TakeSlot(call.Principal.PersonID)
	if err != nil {
		return err
	}
	defer release()
	changes, unfollow := h.Hub.Follow(id)
	defer unfollow()

	rec, err := h.Runs.GetStatus(r.Context(), call.Principal.AccountID, id)
	if err != nil {
		return err
	}
	stream := runStream{links: h.Links, viewerID: call.Principal.PersonID, sent: lastEventID(r.Header)}
	if stream.sent > rec.Revision {
		stream.sent = 0 // the id is not from this run
	}
	if rec.State.IsEnded() && rec.Revision <= stream.sent {
		return rest.NoContent(w) // a 204 prevents browsers from reconnecting
	}

	isFirst := true
	return h.Streams.SendEvents(w, r, changes, func(events *rest.EventWriter) (ended bool, err error) {
		if !isFirst {
			if rec, err = h.Runs.GetStatus(r.Context(), call.Principal.AccountID, id); err != nil {
				return false, err
			}
		}
		isFirst = false
		return stream.sendChanges(events, rec)
	})
}

// lastEventID returns the revision in the Last-Event-ID header, or 0 if it is
// absent or invalid.
func lastEventID(header http.Header) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(header.Get("Last-Event-ID")), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// runStream is the state of one event stream of a run.
type runStream struct {
	links    library.URLSigner
	viewerID string
	sent     int64              // the last revision that was sent
	previous *generation.Record // nil before the first event
}

// sendChanges sends the new events of a run. If there are several, only the
// last one has an id. A client that disconnects before the last event therefore
// receives all of them again.
func (s *runStream) sendChanges(events *rest.EventWriter, rec generation.Record) (ended bool, err error) {
	if rec.Revision <= s.sent {
		return false, nil
	}
	previous := generation.Record{}
	if s.previous != nil {
		previous = *s.previous
	}

	var all []rest.Event
	add := func(name string, data any) { all = append(all, rest.Event{Name: name, Data: data}) }
	if s.previous == nil || rec.Stage() != previous.Stage() || rec.Cancel != previous.Cancel || hasMoved(previous, rec) {
		add("status", rec.RunJSON(s.links, s.viewerID)) // has all steps of a flow
	} else {
		for _, step := range rec.StepsSince(previous) {
			add("step", step.StepJSON(s.links, s.viewerID))
		}
	}
	if rec.Progress != nil && (previous.Progress == nil || *previous.Progress != *rec.Progress) {
		add("progress", wire.GenerationProgress{Progress: rec.ProgressFraction(), Stage: wire.GenerationStage(rec.Stage())})
	}
	if rec.Preview != "" && rec.Preview != previous.Preview {
		add("preview", AsPreview(s.links, rec, s.viewerID))
	}
	if ended = rec.State.IsEnded(); ended {
		add("done", rec.RunJSON(s.links, s.viewerID))
	}
	if len(all) > 0 {
		all[len(all)-1].ID = strconv.FormatInt(rec.Revision, 10)
	}

	s.sent = rec.Revision
	s.previous = &rec
	return ended, events.SendAll(all...)
}

// hasMoved reports whether the position of a run in the queue of its model
// server has changed.
func hasMoved(previous, now generation.Record) bool {
	return previous.IsWaitingAtServer() && now.IsWaitingAtServer() && *previous.ServerPosition != *now.ServerPosition
}

// AsPreview converts the newest preview of a run to its API representation,
// with a URL signed for the viewer.
func AsPreview(links library.URLSigner, rec generation.Record, viewerID string) wire.GenerationPreview {
	return wire.GenerationPreview{
		URL:      links.SignURL(library.KindRunPreview, rec.PreviewRun, library.VariantPreview, viewerID, library.RunNames(rec.Preview).Preview),
		MimeType: PreviewType(rec.Preview),
	}
}

// PreviewType returns the MIME type of a preview image from its storage key.
func PreviewType(key string) string {
	if strings.HasSuffix(key, ".png") {
		return "image/png"
	}
	return "image/jpeg"
}
