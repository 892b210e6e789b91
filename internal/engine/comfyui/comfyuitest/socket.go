package comfyuitest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/color"
	"image/jpeg"
	"net/http"

	"github.com/coder/websocket"
	"github.com/google/uuid"
)

// socket is the WebSocket connection of a client. A separate goroutine sends
// its messages, in order.
type socket struct {
	id   string
	conn *websocket.Conn
	out  chan message
	gone chan struct{}

	aware bool // the client supports previews with metadata; guarded by Server.mu
}

type message struct {
	kind websocket.MessageType
	body []byte
}

func (k *socket) send(m message) {
	select {
	case k.out <- m:
	case <-k.gone:
	}
}

func (s *Server) ws(w http.ResponseWriter, r *http.Request) {
	if s.fault().NoSocket {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // Server.guard has already checked the origin
	if err != nil {
		return
	}
	defer conn.CloseNow()
	k := &socket{id: r.URL.Query().Get("clientId"), conn: conn, out: make(chan message, 4096), gone: make(chan struct{})}
	if k.id == "" {
		k.id = uuid.NewString()
	}
	s.mu.Lock()
	s.sockets[k.id] = k // an older WebSocket with the same client id gets no more messages
	s.open[k] = true
	left := len(s.memory.queue)
	var at any
	if p := s.memory.current; p != nil && p.clientID == k.id && p.at != "" {
		at = p.at
	}
	s.mu.Unlock()
	written := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(written)
		s.write(ctx, k)
	}()
	defer func() {
		s.mu.Lock()
		delete(s.open, k)
		if s.sockets[k.id] == k {
			delete(s.sockets, k.id)
		}
		s.mu.Unlock()
		close(k.gone)
		cancel()
		<-written
	}()
	k.send(text("status", dict{"status": dict{"exec_info": dict{"queue_remaining": left}}, "sid": k.id}))
	if at != nil {
		k.send(text("executing", dict{"node": at}))
	}
	for first := true; ; first = false {
		_, b, err := conn.Read(ctx)
		if err != nil {
			return
		}
		var m struct {
			Type string `json:"type"`
			Data struct {
				Aware bool `json:"supports_preview_metadata"`
			} `json:"data"`
		}
		if first && json.Unmarshal(b, &m) == nil && m.Type == "feature_flags" {
			s.mu.Lock()
			k.aware = m.Data.Aware
			s.mu.Unlock()
			k.send(text("feature_flags", dict{"supports_preview_metadata": true}))
		}
	}
}

// write sends the queued messages to a WebSocket. An active fault may change
// messages or add more.
func (s *Server) write(ctx context.Context, k *socket) {
	for {
		var m message
		select {
		case m = <-k.out:
		case <-ctx.Done():
			return
		}
		switch s.fault().Socket {
		case "garbage":
			m = message{m.kind, []byte("{{{\x00\xff" + string(m.body[:min(len(m.body), 9)]))}
		case "huge":
			m.body = append(m.body, make([]byte, 32<<20)...)
		case "flood":
			for n := 0; ; n++ {
				for _, p := range s.Prompts() {
					m = text("executing", dict{"node": nil, "prompt_id": p.ID})
					if n%3 == 1 {
						m = text("progress", dict{"value": n, "max": 0, "node": "3", "prompt_id": p.ID})
					} else if n%3 == 2 {
						m = picture(nil)
					}
					if k.conn.Write(ctx, m.kind, m.body) != nil {
						return
					}
				}
				if len(s.Prompts()) == 0 {
					break
				}
			}
		}
		if k.conn.Write(ctx, m.kind, m.body) != nil {
			return
		}
	}
}

func text(kind string, data any) message {
	b, _ := json.Marshal(dict{"type": kind, "data": data})
	return message{websocket.MessageText, b}
}

// picture returns a preview message. If about is not nil, the message contains
// it as metadata.
func picture(about dict) message {
	m := image.NewGray(image.Rect(0, 0, 8, 8))
	m.SetGray(3, 3, color.Gray{200})
	var b bytes.Buffer
	var head []byte
	if about == nil {
		head = binary.BigEndian.AppendUint32(head, 1)
		head = binary.BigEndian.AppendUint32(head, 1)
	} else {
		text, _ := json.Marshal(about)
		head = binary.BigEndian.AppendUint32(head, 4)
		head = binary.BigEndian.AppendUint32(head, uint32(len(text)))
		head = append(head, text...)
	}
	b.Write(head)
	_ = jpeg.Encode(&b, m, nil)
	return message{websocket.MessageBinary, b.Bytes()}
}

// tell sends a message to the client of a prompt. If the prompt has no client
// and toAll is true, it sends the message to all clients.
func (s *Server) tell(clientID string, toAll bool, make func(aware bool) message) {
	s.mu.Lock()
	var to []*socket
	aware := map[*socket]bool{}
	if k, ok := s.sockets[clientID]; ok {
		to = append(to, k)
	} else if clientID == "" && toAll {
		for _, k := range s.sockets {
			to = append(to, k)
		}
	}
	for _, k := range to {
		aware[k] = k.aware && clientID != ""
	}
	s.mu.Unlock()
	for _, k := range to {
		k.send(make(aware[k]))
	}
}
