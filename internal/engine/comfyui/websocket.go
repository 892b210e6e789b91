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
	// dialWait is how long a job waits for its socket, which it can do without.
	dialWait = 5 * time.Second
	// maxMessage bounds what the server can send at once; a longer message
	// costs the socket.
	maxMessage = 4 << 20
	maxPreview = 1 << 20
)

// socket hears how far the server is. Without a connection it hears nothing,
// which is no failure.
type socket struct {
	conn *websocket.Conn
	out  engine.Sink
	done chan struct{}
	// hint has something in it when the prompt may be over.
	hint chan struct{}

	mu      sync.Mutex
	prompt  string // whose events count
	running bool   // the server is at it
	steps   *steps
	part    engine.Span
}

// listen opens the socket of a client. A second one with its id takes the
// events away from the first, so each job has its own.
func (e *Engine) listen(ctx context.Context, clientID string, out engine.Sink) *socket {
	s := &socket{out: out, done: make(chan struct{}), hint: make(chan struct{}, 1)}
	client, header := e.server.HTTPClient()
	header.Del("Origin") // one that is not the server's own is refused
	dial, cancel := context.WithTimeout(ctx, dialWait)
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
	// This has to be the first message, for previews to say what they belong to.
	flags := []byte(`{"type":"feature_flags","data":{"supports_preview_metadata":true}}`)
	if err := conn.Write(dial, websocket.MessageText, flags); err != nil {
		conn.CloseNow()
		close(s.done)
		return s
	}
	go s.read(ctx)
	return s
}

// close ends the socket and waits until nothing reads from it.
func (s *socket) close() {
	if s.conn != nil {
		s.conn.CloseNow()
	}
	<-s.done
}

// follow says which prompt is waited for, "" for none.
func (s *socket) follow(prompt string, nodes []string, part engine.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompt = prompt
	s.running = false
	s.steps = newSteps(nodes)
	s.part = part
	select {
	case <-s.hint: // of the prompt before
	default:
	}
}

func (s *socket) read(ctx context.Context) {
	defer close(s.done)
	for {
		kind, message, err := s.conn.Read(ctx)
		if err != nil {
			s.conn.CloseNow()
			return
		}
		if kind == websocket.MessageBinary {
			s.binary(message)
		} else {
			s.text(message)
		}
	}
}

// event is what the server tells about a prompt, of all kinds together.
type event struct {
	PromptID string          `json:"prompt_id"`
	Node     *string         `json:"node"`
	Value    float64         `json:"value"`
	Max      float64         `json:"max"`
	Nodes    json.RawMessage `json:"nodes"`
}

// text takes an event. What is not understood is passed over.
func (s *socket) text(message []byte) {
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
			s.steps.cached(nodes)
		}
	case "executing":
		if s.running = ev.Node != nil; !s.running {
			s.over()
			return
		}
		s.steps.begin(*ev.Node)
	case "progress":
		s.running = true
		if ev.Node != nil {
			s.steps.reach(*ev.Node, ev.Value, ev.Max)
		}
	case "progress_state":
		s.running = true
		s.state(ev.Nodes)
	case "executed":
		if ev.Node != nil {
			s.steps.reach(*ev.Node, 1, 1)
		}
	case "execution_success", "execution_error", "execution_interrupted":
		s.running = false
		s.over()
		return
	default:
		return
	}
	s.part.ReportProgress(s.steps.fraction())
}

// state takes how far all nodes are that have begun.
func (s *socket) state(raw json.RawMessage) {
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
		s.steps.reach(id, n.Value, n.Max)
	}
}

func (s *socket) over() {
	select {
	case s.hint <- struct{}{}:
	default: // it was told already
	}
}

// Kinds of binary messages.
const (
	plainPreview = 1 // uint32: JPEG or PNG; the picture
	knownPreview = 4 // uint32: length; JSON about it; the picture
)

// binary takes a preview. One that does not say whose it is counts only while
// the server is at our prompt: those of prompts that nobody listens to are sent
// to all.
func (s *socket) binary(message []byte) {
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
	case knownPreview:
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
