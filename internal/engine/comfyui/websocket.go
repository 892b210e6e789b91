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
	// dialTimeout limits the wait for the WebSocket, which is optional.
	dialTimeout = 5 * time.Second
	// maxMessage limits a message of the server; a longer one closes the WebSocket.
	maxMessage = 4 << 20
	maxPreview = 1 << 20
)

// eventSocket receives the server's progress events. A missing connection is no failure.
type eventSocket struct {
	conn *websocket.Conn
	out  engine.Sink
	done chan struct{}
	// hint has a value when the prompt may have ended.
	hint chan struct{}

	mu      sync.Mutex
	prompt  string // the prompt whose events count
	running bool   // the server is running it
	steps   *nodeProgress
	part    engine.Span
}

// openSocket opens the WebSocket of a client. A second connection with the same client id would
// take over the events of the first, so each job has its own id.
func (e *Engine) openSocket(ctx context.Context, clientID string, out engine.Sink) *eventSocket {
	s := &eventSocket{out: out, done: make(chan struct{}), hint: make(chan struct{}, 1)}
	client, header := e.server.HTTPClient()
	header.Del("Origin") // the server refuses foreign origins
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
	// This must be the first message, so that previews name their prompt.
	flags := []byte(`{"type":"feature_flags","data":{"supports_preview_metadata":true}}`)
	if err := conn.Write(dial, websocket.MessageText, flags); err != nil {
		_ = conn.CloseNow()
		close(s.done)
		return s
	}
	go s.readMessages(ctx)
	return s
}

// closeSocket closes the connection and waits until its reader has ended.
func (s *eventSocket) closeSocket() {
	if s.conn != nil {
		_ = s.conn.CloseNow()
	}
	<-s.done
}

// followPrompt sets the prompt whose events count. "": none.
func (s *eventSocket) followPrompt(prompt string, nodes []string, part engine.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompt = prompt
	s.running = false
	s.steps = newNodeProgress(nodes)
	s.part = part
	select {
	case <-s.hint: // a hint for the previous prompt
	default:
	}
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

// event is the union of all events about a prompt.
type event struct {
	PromptID string          `json:"prompt_id"`
	Node     *string         `json:"node"`
	Value    float64         `json:"value"`
	Max      float64         `json:"max"`
	Nodes    json.RawMessage `json:"nodes"`
}

// handleText handles an event. Unknown ones are ignored.
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

// handleState handles the progress of all started nodes.
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
	default: // a hint is pending already
	}
}

// Kinds of binary messages.
const (
	plainPreview  = 1 // uint32: JPEG or PNG; the picture
	taggedPreview = 4 // uint32: length; JSON about it; the picture
)

// handleBinary handles a preview. A preview without a prompt id counts only while the server runs
// this prompt, because previews of prompts without a listener are sent to all clients.
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
