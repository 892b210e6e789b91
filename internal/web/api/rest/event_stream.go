package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/throttle"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

const (
	// maxStreams is the maximum number of open event streams of one person on
	// a node.
	maxStreams = 32
	// PollInterval is the time between two reads of the state. Only polling
	// finds changes made by other nodes.
	PollInterval = 500 * time.Millisecond
	// KeepAliveInterval is the time after which a stream without events sends a
	// comment, which keeps the connection open.
	KeepAliveInterval = 15 * time.Second
	// ReauthorizeInterval is the time between two authorization checks of a
	// stream.
	ReauthorizeInterval = 5 * time.Second
	// reconnectSpread is the time over which a node that stops ends its
	// streams, so that their clients do not all connect to another node at
	// once.
	reconnectSpread = 500 * time.Millisecond
	// reconnectRetry is the wait before reconnecting that a node that stops
	// sends to clients that do not know the event reconnectEvent.
	reconnectRetry = 100 * time.Millisecond
	// reconnectEvent is the name of the event with which a node that stops ends
	// a stream. The client should connect again at once, with its Last-Event-ID.
	reconnectEvent = "reconnect"
)

// Streams sends server-sent events and limits the number of streams of each
// person.
type Streams struct {
	Now   func() time.Time
	slots *throttle.Slots
}

// NewStreams returns Streams without open streams.
func NewStreams(now func() time.Time) *Streams {
	return &Streams{Now: now, slots: throttle.NewSlots(maxStreams)}
}

// TakeSlot reserves one of the person's event streams until release is called.
func (s *Streams) TakeSlot(personID string) (release func(), err error) {
	release, ok := s.slots.Take(personID)
	if !ok {
		return nil, fault.TooMany("You have too many open event streams. Close one first.", maxStreams, 0, ReauthorizeInterval)
	}
	return release, nil
}

// SendEvents sends events until update reports the last one, the client
// disconnects, this node stops, or the caller loses access. It calls update at
// the start, after each signal on changes, and periodically; update reads the
// current state and sends the new events. If this node stops, the last event
// tells the client to reconnect.
func (s *Streams) SendEvents(w http.ResponseWriter, r *http.Request, changes <-chan struct{}, update func(*EventWriter) (ended bool, err error)) error {
	SetStreamHeaders(w.Header())
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}

	poll := time.NewTicker(PollInterval)
	keepAlive := time.NewTicker(KeepAliveInterval)
	reauthorize := time.NewTicker(ReauthorizeInterval)
	defer poll.Stop()
	defer keepAlive.Stop()
	defer reauthorize.Stop()

	ctx := r.Context()
	call := CallOf(r)
	events := &EventWriter{w: httpd.NewDeadlineWriter(w, s.Now, KeepAliveInterval), conn: http.NewResponseController(w)}
	stopping := httpd.RecordOf(ctx).Stopping
	var leave <-chan time.Time // nil until this node stops
	for {
		if ended, err := update(events); err != nil || ended {
			return err
		}

		var err error
		select {
		case <-ctx.Done():
			return nil // the client disconnected
		case <-stopping:
			stopping = nil
			leave = time.After(rand.N(reconnectSpread))
		case <-leave:
			return events.sendReconnect()
		case <-keepAlive.C:
			err = events.writeNow([]byte(": alive\n\n"))
		case <-reauthorize.C:
			err = call.Reauthorize(ctx)
		case <-changes:
		case <-poll.C:
		}
		if err != nil {
			return err
		}
	}
}

// SetStreamHeaders sets the headers of a response with server-sent events.
func SetStreamHeaders(header http.Header) {
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // instructs proxies not to buffer events
}

// EventWriter sends server-sent events to one client.
type EventWriter struct {
	w    io.Writer // extends the write deadline with each event
	conn *http.ResponseController
}

// Event is one server-sent event.
type Event struct {
	// ID is the id with which a disconnected client can resume after this
	// event. It is one line of ASCII text. "" means that a client cannot resume
	// after this event.
	ID   string
	Name string
	Data any
}

// SendRetry tells the client how long to wait before it reconnects.
func (e *EventWriter) SendRetry(after time.Duration) error {
	return e.writeNow(fmt.Appendf(nil, "retry: %d\n\n", after.Milliseconds()))
}

// sendReconnect tells the client to connect again at once. The event has no id,
// because the client resumes after the event before it.
func (e *EventWriter) sendReconnect() error {
	if err := e.SendRetry(reconnectRetry); err != nil {
		return err
	}
	return e.SendAll(Event{Name: reconnectEvent, Data: wire.EventReconnect{Reason: "This node of the service stops."}})
}

// SendAll sends events in a single write.
func (e *EventWriter) SendAll(events ...Event) error {
	var text []byte
	for _, one := range events {
		data, err := json.Marshal(one.Data)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		if one.ID != "" {
			text = fmt.Appendf(text, "id: %s\n", one.ID)
		}
		text = fmt.Appendf(text, "event: %s\ndata: %s\n\n", one.Name, data)
	}
	if text == nil {
		return nil
	}
	return e.writeNow(text)
}

// writeNow sends bytes to the client without buffering.
func (e *EventWriter) writeNow(text []byte) error {
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.conn.Flush()
}
