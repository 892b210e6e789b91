// Package events serves /api/v2/events: one stream of everything that changes
// in an account and on boards. A Feed reads the changes for all streams of the
// process.
package events

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/board"
	"atelier/internal/file/library"
	"atelier/internal/run/generation"
	"atelier/internal/web/access"
	"atelier/internal/web/api/boards"
	"atelier/internal/web/api/generations"
	"atelier/internal/web/api/me"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

const (
	// maxBoards is the maximum number of boards that one stream follows.
	maxBoards = 8
	// maxEnded is the maximum number of ended runs with which a stream begins.
	maxEnded = 200
	// eventsAtOnce is the maximum number of events of runs that are sent in one
	// write.
	eventsAtOnce = 100
	// retryAfter is how long a client waits before it reconnects.
	retryAfter = time.Second
	// leaveTimeout limits the time in which the end of a stream is recorded.
	leaveTimeout = 5 * time.Second
)

// Handler serves the event stream of an account.
type Handler struct {
	Feed    *Feed
	Boards  *boards.Handler
	Links   library.URLSigner
	Streams *rest.Streams
}

// Routes returns the route of the event stream.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{rest.NewRoute("GET /api/v2/events", access.ForAccount, h.streamEvents)}
}

// streamEvents serves GET /api/v2/events: it streams the states of an account's
// runs, its balance, and boards, until the client disconnects. Opening the
// stream of a board shows the caller to the other viewers of the board.
func (h *Handler) streamEvents(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	request, err := readRequest(call.Params, r.Header)
	if err != nil {
		return err
	}
	release, err := h.Streams.TakeSlot(call.Principal.PersonID)
	if err != nil {
		return err
	}
	defer release()

	ctx := r.Context()
	stream := &accountStream{h: h, call: call, place: place{boards: map[string]int64{}}, resumed: request.last}
	for _, id := range request.boardIDs {
		revision, err := h.Boards.Boards.GetRevision(ctx, call.Principal, id)
		if err != nil {
			return err
		}
		if known, ok := request.revisions[id]; ok {
			revision = known
		}
		stream.place.boards[id] = revision
		stream.followers = append(stream.followers, h.Boards.NewFollower(call, id, revision))
	}
	if r.Method != http.MethodHead {
		leave, err := h.enterBoards(ctx, call, request.boardIDs)
		defer leave()
		if err != nil {
			return err
		}
	}
	if stream.source, err = h.Feed.follow(ctx, call.Principal.AccountID, request.boardIDs); err != nil {
		return err
	}
	defer stream.source.release()

	return h.Streams.SendEvents(w, r, stream.source.changes, func(events *rest.EventWriter) (bool, error) {
		return false, stream.sendChanges(ctx, events)
	})
}

// enterBoards shows the caller on boards until leave is called.
func (h *Handler) enterBoards(ctx context.Context, call *rest.Call, boardIDs []string) (leave func(), err error) {
	streamID := ids.New()
	personID := call.Principal.PersonID
	entered := 0
	leave = func() {
		// The request has ended, and the caller may no longer be authorized.
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		for _, id := range boardIDs[:entered] {
			_ = h.Boards.Boards.LeaveBoard(ctx, personID, id, streamID) // otherwise the presence expires
		}
	}
	for _, id := range boardIDs {
		if err := h.Boards.Boards.EnterBoard(ctx, call.Principal, id, h.Feed.node, streamID); err != nil {
			return leave, err
		}
		entered++
	}
	return leave, nil
}

// streamRequest contains the parameters of a stream.
type streamRequest struct {
	boardIDs  []string
	revisions map[string]int64 // revisions that the client has, by board id
	last      *resumption      // nil without a Last-Event-ID
}

// resumption is the Last-Event-ID of a client that resumes.
type resumption struct {
	place place
	ok    bool // the id is valid
}

func readRequest(params *rest.Params, header http.Header) (streamRequest, error) {
	q := streamRequest{revisions: map[string]int64{}}
	if text := params.ReadText("board_id"); text != "" {
		q.boardIDs = strings.Split(text, ",")
	}
	if len(q.boardIDs) > maxBoards || !isUnique(q.boardIDs) || !allValid(q.boardIDs) {
		params.AddProblem("board_id", "Must be up to 8 different board ids separated by commas.")
	}
	if text := params.ReadText("board_revision"); text != "" {
		for i, number := range strings.Split(text, ",") {
			revision, err := strconv.ParseInt(number, 10, 64)
			if err != nil || revision < 0 || i >= maxBoards {
				params.AddProblem("board_revision", "Must be up to 8 revisions separated by commas.")
				break
			}
			if i < len(q.boardIDs) {
				q.revisions[q.boardIDs[i]] = revision
			}
		}
	}
	if text := strings.TrimSpace(header.Get("Last-Event-ID")); text != "" {
		last, ok := parsePlace(text)
		q.last = &resumption{place: last, ok: ok}
		for id, revision := range last.boards {
			q.revisions[id] = max(q.revisions[id], revision)
		}
	}
	return q, params.Err()
}

func isUnique(all []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(all)))) == len(all)
}

func allValid(all []string) bool {
	return !slices.ContainsFunc(all, func(id string) bool { return !ids.Valid(id) })
}

// accountStream is the state of one event stream.
type accountStream struct {
	h         *Handler
	call      *rest.Call
	source    subscription
	followers []*boards.Follower
	resumed   *resumption // nil if the client does not resume
	place     place       // position up to which everything was sent
	hasBegun  bool
	// first has the revisions of the runs with which the stream began. The feed
	// may still find older states of them.
	first    map[string]int64
	viewers  map[string][]board.ViewerState // as last sent, by board id
	sequence int64                          // sequence number of the account that was last sent
}

// sendChanges sends the new events.
func (s *accountStream) sendChanges(ctx context.Context, events *rest.EventWriter) error {
	if !s.hasBegun {
		if err := s.sendFirst(ctx, events); err != nil {
			return err
		}
		s.hasBegun = true
	}
	if err := s.sendAccount(events); err != nil {
		return err
	}
	for _, follower := range slices.Clone(s.followers) {
		if err := s.sendBoard(ctx, events, follower); err != nil {
			return err
		}
	}
	return nil
}

// sendFirst sends the runs that have not ended, those that have ended since the
// client was disconnected or a moment ago, and the balance. Only the last event
// has an id: a client that is disconnected before it starts over.
func (s *accountStream) sendFirst(ctx context.Context, events *rest.EventWriter) error {
	s.sequence = s.source.sequence
	since := s.h.Feed.DB.Now()
	isLost := s.resumed != nil && (!s.resumed.ok || s.resumed.place.at.After(since.Add(overlap)))
	if s.resumed != nil && !isLost {
		since = s.resumed.place.at
	}
	beginning, err := s.h.Feed.listActivity(ctx, s.call.Principal.AccountID, since.Add(-overlap))
	if err != nil {
		return err
	}

	if err := events.SendRetry(retryAfter); err != nil {
		return err
	}
	var all []rest.Event
	if isLost || s.resumed != nil && beginning.isLost {
		all = append(all, rest.Event{Name: "reset", Data: wire.EventReset{}})
	}
	s.first = make(map[string]int64, len(beginning.runs))
	for _, rec := range beginning.runs {
		s.first[rec.ID] = rec.Revision
		all = s.appendRun(all, rec, rec.Preview != "")
	}
	s.place.at = beginning.at
	all = append(all, rest.Event{Name: "balance", Data: me.AsBalance(s.h.Feed.balanceOf(s.source.account))})
	return s.sendAll(events, all)
}

// sendAccount sends the changes of runs and of the balance.
func (s *accountStream) sendAccount(events *rest.EventWriter) error {
	n := s.h.Feed.changesSince(s.source.account, s.sequence)
	var all []rest.Event
	for _, c := range n.runs {
		if c.record.Revision >= s.first[c.record.ID] {
			all = s.appendRun(all, c.record, c.previewAt > s.sequence)
		}
	}
	if n.balance != nil {
		all = append(all, rest.Event{Name: "balance", Data: me.AsBalance(*n.balance)})
	}
	s.sequence = n.sequence
	if n.readAt.After(s.place.at) {
		s.place.at = n.readAt
	}
	return s.sendAll(events, all)
}

func (s *accountStream) appendRun(all []rest.Event, rec generation.Record, hasNewPreview bool) []rest.Event {
	viewerID := s.call.Principal.PersonID
	all = append(all, rest.Event{Name: "run", Data: rec.RunJSON(s.h.Links, viewerID)})
	if hasNewPreview && rec.Preview != "" {
		preview := generations.AsPreview(s.h.Links, rec, viewerID)
		all = append(all, rest.Event{Name: "preview", Data: wire.RunPreview{
			RequestID: rec.ID,
			URL:       preview.URL,
			MimeType:  preview.MimeType,
		}})
	}
	return all
}

// sendAll sends events about the account. Only the last one has an id, because
// the client has everything up to the stream's place only after it.
func (s *accountStream) sendAll(events *rest.EventWriter, all []rest.Event) error {
	if len(all) > 0 {
		all[len(all)-1].ID = s.place.String()
	}
	for some := range slices.Chunk(all, eventsAtOnce) {
		if err := events.SendAll(some...); err != nil {
			return err
		}
	}
	return nil
}

// sendBoard sends the changes of a board and of its viewers. A board that was
// deleted is no longer followed.
func (s *accountStream) sendBoard(ctx context.Context, events *rest.EventWriter, follower *boards.Follower) error {
	id := follower.BoardID()
	glimpse := s.h.Feed.glimpseOf(id)
	if !follower.HasSent(glimpse.Revision) {
		ended, err := follower.SendChanges(ctx, func(all ...boards.FollowerEvent) error {
			return events.SendAll(s.asEvents(id, all)...)
		})
		if err != nil {
			return err
		}
		if ended {
			s.followers = slices.DeleteFunc(s.followers, func(f *boards.Follower) bool { return f == follower })
			delete(s.place.boards, id)
			return nil
		}
	}

	sent, hasSent := s.viewers[id]
	if hasSent && isSameAudience(sent, glimpse.Viewers) {
		return nil
	}
	if s.viewers == nil {
		s.viewers = map[string][]board.ViewerState{}
	}
	s.viewers[id] = glimpse.Viewers
	return events.SendAll(rest.Event{Name: "presence", Data: asPresence(id, glimpse.Viewers)})
}

// asEvents converts the events of a board to events of the account.
func (s *accountStream) asEvents(boardID string, all []boards.FollowerEvent) (converted []rest.Event) {
	for _, e := range all {
		if e.Name == "reset" {
			converted = append(converted, rest.Event{Name: "reset", Data: wire.EventReset{BoardID: &boardID}})
			e.Name = "board"
		}
		s.place.boards[boardID] = e.Revision
		converted = append(converted, rest.Event{ID: s.place.String(), Name: e.Name, Data: e.Data})
	}
	return converted
}

func asPresence(boardID string, viewers []board.ViewerState) wire.BoardPresence {
	return wire.BoardPresence{BoardID: boardID, People: rest.Convert(viewers, asViewer)}
}

func asViewer(v board.ViewerState) wire.BoardViewer {
	one := wire.BoardViewer{UID: v.PersonID, Name: v.Name, Selected: rest.ListOrEmpty(v.Selected)}
	if v.Cursor != nil {
		one.Cursor = &wire.BoardPoint{X: v.Cursor.X, Y: v.Cursor.Y}
	}
	return one
}
