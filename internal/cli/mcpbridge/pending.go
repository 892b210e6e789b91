package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// pending knows the requests of the client that have no response yet, from the
// messages that it and the server write, each on a line. A client that ends its
// input after its last request still gets the responses.
type pending struct {
	ctx context.Context
	in  io.ReadCloser
	out io.WriteCloser

	mu       sync.Mutex
	open     map[string]bool // by the id of the request, as JSON
	changed  chan struct{}   // closed when a request gets its response
	received bytes.Buffer    // incomplete lines
	sent     bytes.Buffer
}

func newPending(ctx context.Context, in io.ReadCloser, out io.WriteCloser) *pending {
	return &pending{
		ctx:     ctx,
		in:      in,
		out:     out,
		open:    map[string]bool{},
		changed: make(chan struct{}),
	}
}

// Read reads from the client. The end of its input is reported after the
// responses to all its requests.
func (p *pending) Read(data []byte) (n int, err error) {
	n, err = p.in.Read(data)
	lines := data[:n]
	if errors.Is(err, io.EOF) {
		lines = append(bytes.Clone(lines), '\n') // ends the last line
	}
	p.eachMessage(&p.received, lines, func(id string, isRequest bool) {
		if isRequest {
			p.open[id] = true
		}
	})
	for errors.Is(err, io.EOF) {
		p.mu.Lock()
		left := len(p.open)
		changed := p.changed
		p.mu.Unlock()
		if left == 0 {
			break
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			return n, err
		}
	}
	return n, err
}

// Write writes to the client.
func (p *pending) Write(data []byte) (n int, err error) {
	n, err = p.out.Write(data)
	p.eachMessage(&p.sent, data[:n], func(id string, isRequest bool) {
		if !isRequest && p.open[id] {
			delete(p.open, id)
			close(p.changed)
			p.changed = make(chan struct{})
		}
	})
	return n, err
}

// Close closes the input, as the transport expects of its reader and writer.
func (p *pending) Close() error { return p.in.Close() }

// eachMessage adds data to the incomplete lines, and calls see with the id of
// each complete message that has one.
func (p *pending) eachMessage(lines *bytes.Buffer, data []byte, see func(id string, isRequest bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines.Write(data)
	for {
		i := bytes.IndexByte(lines.Bytes(), '\n')
		if i < 0 {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(lines.Next(i+1), &m) == nil && len(m.ID) > 0 {
			see(string(m.ID), m.Method != "")
		}
	}
}
