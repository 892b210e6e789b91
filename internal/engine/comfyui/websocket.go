package comfyui

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net/url"
	"sync"
	"time"

	"github.com/coder/websocket"

	"atelier/internal/engine"
)

const (
	// dialTimeout limits opening the WebSocket. If opening fails, the job runs
	// without a WebSocket.
	dialTimeout = 5 * time.Second
	// maxMessage is the maximum size of a WebSocket message, in bytes; a longer
	// message closes the WebSocket. maxPreview is the maximum size of a preview
	// picture, in bytes.
	maxMessage = 4 << 20
	maxPreview = 1 << 20
)

// eventSocket receives the server's progress events over a WebSocket. If there
// is no connection, the job runs without progress.
type eventSocket struct {
	conn *websocket.Conn
	out  engine.Sink
	done chan struct{}
	// hint receives a value when the prompt may have ended, so that the prompt
	// is polled at once.
	hint chan struct{}

	mu      sync.Mutex
	prompt  string // id of the prompt whose events are handled; empty if there is none
	running bool   // the server is running the prompt
	steps   *nodeProgress
	part    engine.Span
}

// openSocket opens a WebSocket with the given client id. A second connection
// with the same client id would take over the events of the first, so each job
// has its own id.
func (e *Engine) openSocket(ctx context.Context, clientID string, out engine.Sink) *eventSocket {
	s := &eventSocket{out: out, done: make(chan struct{}), hint: make(chan struct{}, 1)}
	client, header := e.server.HTTPClient()
	header.Del("Origin") // the server refuses requests with a foreign origin
	dial, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	at := e.server.BaseURL().JoinPath("ws")
	at.RawQuery = url.Values{"clientId": {clientID}}.Encode()
	conn, _, err := websocket.Dial(dial, at.String(), &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
	if err != nil {
		close(s.done)
		return s
	}
	conn.SetReadLimit(maxMessage)
	s.conn = conn
	// These flags must be the first message. They make the server send the
	// prompt id with each preview.
	flags := []byte(`{"type":"feature_flags","data":{"supports_preview_metadata":true}}`)
	if err := conn.Write(dial, websocket.MessageText, flags); err != nil {
		_ = conn.CloseNow()
		close(s.done)
		return s
	}
	go s.readMessages(ctx)
	return s
}

// closeSocket closes the connection and waits until the goroutine that reads
// from it has ended.
func (s *eventSocket) closeSocket() {
	if s.conn != nil {
		_ = s.conn.CloseNow()
	}
	<-s.done
}

// followPrompt sets the prompt whose events are handled. weights are the
// weights of its nodes by id, and part receives its progress. If prompt is
// empty, all events are ignored.
func (s *eventSocket) followPrompt(prompt string, weights map[string]float64, part engine.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompt = prompt
	s.running = false
	s.steps = newNodeProgress(weights)
	s.part = part
	select {
	case <-s.hint: // discards a hint for the previous prompt
	default:
	}
}

// reportQueued reports that the prompt waits in the server's queue at the given
// position. It does nothing if an event has meanwhile shown that the prompt is
// running.
func (s *eventSocket) reportQueued(position int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		s.part.ReportQueued(position)
	}
}

// reportRunning reports that the prompt no longer waits in the server's queue.
func (s *eventSocket) reportRunning() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.part.ReportProgress(s.steps.totalFraction())
}

func (s *eventSocket) readMessages(ctx context.Context) {
	defer close(s.done)
	for {
		kind, message, err := s.conn.Read(ctx)
		if err != nil {
			_ = s.conn.CloseNow()
			return
		}
		if kind == websocket.MessageBinary {
			s.handleBinary(message)
		} else {
			s.handleText(message)
		}
	}
}

// event is a WebSocket event about a prompt. It has the fields of all kinds of
// events.
type event struct {
	PromptID string          `json:"prompt_id"`
	Node     *string         `json:"node"`
	Value    float64         `json:"value"`
	Max      float64         `json:"max"`
	Nodes    json.RawMessage `json:"nodes"`
}

// handleText handles a JSON message. It ignores unknown kinds and events of
// other prompts.
func (s *eventSocket) handleText(message []byte) {
	var m struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	var ev event
	if json.Unmarshal(message, &m) != nil || json.Unmarshal(m.Data, &ev) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prompt == "" || ev.PromptID != s.prompt {
		return
	}
	switch m.Type {
	case "execution_start":
		s.running = true
	case "execution_cached":
		var nodes []string
		if json.Unmarshal(ev.Nodes, &nodes) == nil {
			s.steps.markCached(nodes)
		}
	case "executing":
		if s.running = ev.Node != nil; !s.running {
			s.signalEnd()
			return
		}
		s.steps.beginNode(*ev.Node)
	case "progress":
		s.running = true
		if ev.Node != nil {
			s.steps.setProgress(*ev.Node, ev.Value, ev.Max)
		}
	case "progress_state":
		s.running = true
		s.handleState(ev.Nodes)
	case "executed":
		if ev.Node != nil {
			s.steps.setProgress(*ev.Node, 1, 1)
		}
	case "execution_success", "execution_error", "execution_interrupted":
		s.running = false
		s.signalEnd()
		return
	default:
		return
	}
	s.part.ReportProgress(s.steps.totalFraction())
}

// handleState handles an event with the progress of all nodes that have
// started.
func (s *eventSocket) handleState(raw json.RawMessage) {
	var nodes map[string]struct {
		Value float64 `json:"value"`
		Max   float64 `json:"max"`
		State string  `json:"state"`
	}
	if json.Unmarshal(raw, &nodes) != nil {
		return
	}
	for id, n := range nodes {
		if n.State == "finished" {
			n.Value = 1
			n.Max = 1
		}
		s.steps.setProgress(id, n.Value, n.Max)
	}
}

func (s *eventSocket) signalEnd() {
	select {
	case s.hint <- struct{}{}:
	default: // a value is already in the channel
	}
}

// Kinds of binary messages. The first four bytes of a message are its kind.
const (
	plainPreview  = 1 // followed by a uint32 for the format (JPEG or PNG) and the picture
	taggedPreview = 4 // followed by the length of the metadata as a uint32, the metadata as JSON, and the picture
)

// handleBinary handles a preview. A preview without a prompt id is used only
// while the server runs this job's prompt, because the server sends previews
// of prompts without a connected client to all clients.
func (s *eventSocket) handleBinary(message []byte) {
	if len(message) < 8 {
		return
	}
	kind := binary.BigEndian.Uint32(message)
	number := binary.BigEndian.Uint32(message[4:])
	rest := message[8:]
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := s.prompt != "" && s.running
	switch kind {
	case plainPreview:
	case taggedPreview:
		if uint64(number) > uint64(len(rest)) {
			return
		}
		var about struct {
			PromptID string `json:"prompt_id"`
		}
		if json.Unmarshal(rest[:number], &about) != nil {
			return
		}
		rest = rest[number:]
		ours = s.prompt != "" && (about.PromptID == s.prompt || about.PromptID == "" && s.running)
	default:
		return
	}
	jpeg := bytes.HasPrefix(rest, []byte("\xff\xd8\xff"))
	png := bytes.HasPrefix(rest, []byte("\x89PNG\r\n\x1a\n"))
	if ours && len(rest) <= maxPreview && (jpeg || png) {
		s.out.Preview(rest)
	}
}
