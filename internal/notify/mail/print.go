package mail

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Print returns a sender that writes messages to w. It is for installations
// without a mail server, where the operator forwards the links in the messages
// to the recipients.
func Print(w io.Writer) Sender { return &printer{w: w} }

type printer struct {
	mu sync.Mutex
	w  io.Writer
}

// Send writes the message to the writer as an indented block.
func (p *printer) Send(_ context.Context, m Message) error {
	if err := m.CheckMessage(); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\natelier: no mail server is set (smtp.address). Mail for %s: %s\n", m.To, m.Subject)
	for line := range strings.Lines(strings.TrimRight(m.Text, "\n")) {
		if line != "\n" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	b.WriteString("\n\n")
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := io.WriteString(p.w, b.String()); err != nil { // a single write, so that log lines, which also go to w, cannot split the message
		return fmt.Errorf("print mail: %w", err)
	}
	return nil
}
