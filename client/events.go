package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Event is a server-sent event of the service.
type Event struct {
	ID   string
	Name string
	Data json.RawMessage
}

// Decode decodes the data of the event.
func (e Event) Decode(into any) error {
	if err := json.Unmarshal(e.Data, into); err != nil {
		return fmt.Errorf("decode the event %q: %w", e.Name, err)
	}
	return nil
}

// idleTime is the longest silence of a stream. The service sends a comment more
// often, so a longer silence means that the connection is dead.
const idleTime = time.Minute

// readEvents reads the events of one connection until it ends.
func readEvents(body io.Reader, yield func(Event) bool) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxResponseBytes)
	var e Event
	var data strings.Builder
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			e.ID = value
		case "event":
			e.Name = value
		case "data":
			if data.Len() > 0 {
				data.WriteByte('\n')
			}
			data.WriteString(value)
		case "":
			if len(lines.Text()) > 0 || e.Name == "" && data.Len() == 0 {
				continue // a comment, or an empty line without an event
			}
			e.Data = json.RawMessage(data.String())
			if !yield(e) {
				return nil
			}
			e = Event{ID: e.ID}
			data.Reset()
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// reconnectEvent is the event with which a node of the service that stops ends
// a stream.
const reconnectEvent = "reconnect"

// minStreamTime is the time that a connection must have lasted before its event
// reconnectEvent makes the client connect again without a wait.
const minStreamTime = time.Second

// eventStream is a stream of events that can be connected several times.
type eventStream struct {
	client  *Client
	request *request
	last    string    // id of the last event, which the service continues after
	opened  time.Time // when the service last began to answer
}

// connect opens the stream once and hands its events to yield until it breaks.
// It returns nil only if yield has returned false, errStreamDone after 204:
// there are no more events, and errReconnect if the node of the service stops.
func (s *eventStream) connect(ctx context.Context, yield func(Event) bool) error {
	attempt := *s.request
	attempt.header = s.request.header.Clone()
	if attempt.header == nil {
		attempt.header = http.Header{}
	}
	attempt.header.Set("Accept", "text/event-stream")
	if s.last != "" {
		attempt.header.Set("Last-Event-ID", s.last)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	res, err := s.client.roundTrip(ctx, &attempt)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	s.opened = time.Now()
	if res.StatusCode == http.StatusNoContent {
		return errStreamDone
	}
	body := watchIdle(res.Body, idleTime, cancel)
	defer body.stop()
	told := false
	err = readEvents(body, func(e Event) bool {
		if e.ID != "" {
			s.last = e.ID
		}
		if e.Name == reconnectEvent {
			told = true
			return false
		}
		return yield(e)
	})
	if told {
		return errReconnect
	}
	return err
}

// mayReconnectAtOnce reports whether the client may connect again without a
// wait after err, because the node of the service stops and others are there. A
// connection that was told so right after its start waits like any other.
func (s *eventStream) mayReconnectAtOnce(err error) bool {
	return errors.Is(err, errReconnect) && time.Since(s.opened) >= minStreamTime
}

var (
	errStreamDone = errors.New("the stream has no more events")
	errReconnect  = errors.New("the node of the service stops")
	errIdle       = errors.New("the connection was silent for too long")
)

// idleReader cancels a request if its body is silent for too long.
type idleReader struct {
	from  io.Reader
	timer *time.Timer
	limit time.Duration
}

func watchIdle(from io.Reader, limit time.Duration, cancel context.CancelCauseFunc) *idleReader {
	return &idleReader{from: from, limit: limit, timer: time.AfterFunc(limit, func() { cancel(errIdle) })}
}

// Read implements io.Reader.
func (r *idleReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.timer.Reset(r.limit)
	return n, err
}

func (r *idleReader) stop() { r.timer.Stop() }

// follow iterates over the events of a stream and connects again when it
// breaks, until the loop ends, the service says that there is no more, or the
// attempts are used up.
func (c *Client) follow(ctx context.Context, r *request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		stream := &eventStream{client: c, request: r}
		tries := c.retry.newAttempts()
		for {
			stopped := false
			began := time.Now()
			err := stream.connect(ctx, func(e Event) bool {
				tries.restart()
				stopped = !yield(e, nil)
				return !stopped
			})
			if stopped || errors.Is(err, errStreamDone) {
				return
			}
			if stream.mayReconnectAtOnce(err) {
				tries.restart()
				continue
			}
			if !mayRepeat(err, true) {
				yield(Event{}, contextOr(ctx, err))
				return
			}
			// A stream without events for a while is a success too; one that
			// always breaks at once is not.
			if !stream.opened.Before(began) && time.Since(stream.opened) > c.retry.MaxWait {
				tries.restart()
			}
			if err := tries.wait(ctx, err); err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// Events follows a run (GET /generate/{request_id}/events): its status,
// progress, preview, step and done events. It connects again when the
// connection breaks, and ends after the event "done". Wait is simpler if only
// the end matters.
func (g *RunsCalls) Events(ctx context.Context, id string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range g.client.follow(ctx, &request{method: http.MethodGet, path: runPath(id) + "/events", team: true}) {
			if !yield(e, err) || e.Name == "done" {
				return
			}
		}
	}
}

// Events follows a board (GET /boards/{board_id}/events). after is the revision
// to continue from, as text; "" begins with the board as it is. It connects
// again when the connection breaks.
func (g *BoardsCalls) Events(ctx context.Context, boardID, after string) iter.Seq2[Event, error] {
	r := &request{
		method: http.MethodGet,
		path:   "/boards/" + url.PathEscape(boardID) + "/events",
		header: http.Header{},
		team:   true,
	}
	if after != "" {
		r.header.Set("Last-Event-ID", after)
	}
	return g.client.follow(ctx, r)
}

// AccountEventsParams are the parameters of AccountCalls.Events.
type AccountEventsParams struct {
	// BoardID is a board, or several separated by commas, whose changes are
	// wanted too.
	BoardID string
	// BoardRevision has the revision of each of these boards that the caller
	// knows, in the same order.
	BoardRevision string
}

// Events follows everything that happens in the account (GET /events): runs,
// previews, balances, boards. It connects again when the connection breaks.
func (g *AccountCalls) Events(ctx context.Context, p AccountEventsParams) iter.Seq2[Event, error] {
	query := url.Values{}
	addText(query, "board_id", p.BoardID)
	addText(query, "board_revision", p.BoardRevision)
	return g.client.follow(ctx, &request{method: http.MethodGet, path: "/events", query: query, team: true})
}
