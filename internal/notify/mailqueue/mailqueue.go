// Package mailqueue sends mail in background jobs.
//
// A message is queued in the transaction that causes it. After the commit, any
// node that runs background jobs sends it. Messages are encrypted in the queue,
// because they contain links that work for anyone who has them.
package mailqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"atelier/internal/base/keyring"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mail"
)

// Kind is the kind of the background jobs that send mail.
const Kind = "mail"

// jobArgs are the arguments of a background job that sends mail.
type jobArgs struct {
	Sealed string `json:"sealed"`
}

// Outbox adds messages to the queue.
type Outbox struct {
	Queue queue.Queue
	Box   keyring.Box
}

// QueueMessage queues the message for sending after tx commits. It returns an
// error if the message is invalid.
func (o Outbox) QueueMessage(ctx context.Context, tx *sqldb.Tx, m mail.Message) error {
	if err := m.CheckMessage(); err != nil {
		return fmt.Errorf("queue mail: %w", err)
	}
	plain, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("queue mail: %w", err)
	}
	args, err := json.Marshal(jobArgs{o.Box.Seal(plain, Kind)})
	if err != nil {
		return fmt.Errorf("queue mail: %w", err)
	}
	if _, err := o.Queue.Add(ctx, tx, queue.Job{Kind: Kind, Args: args}); err != nil {
		return fmt.Errorf("queue mail: %w", err)
	}
	return nil
}

// Handler returns the handler for background jobs that send queued mail. box
// must have the key with which the messages were encrypted. All nodes that run
// background jobs must have the same mail settings, because any of them can
// send a message.
func Handler(s mail.Sender, box keyring.Box, log *slog.Logger) queue.Handler {
	return queue.Handler{
		Kind: Kind,
		// These retries cover a mail server that is down for most of a working
		// day.
		Retry:    []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour},
		Timeout:  time.Minute,
		Parallel: 4,
		Do: func(ctx context.Context, w queue.Work) error {
			m, err := openMessage(box, w.Args)
			if err != nil {
				return queue.GiveUp(err)
			}
			if err := s.Send(ctx, m); err != nil {
				if mail.IsPermanent(err) {
					return queue.GiveUp(err)
				}
				return err
			}
			log.DebugContext(ctx, "mail sent", "job", w.ID, "attempt", w.Attempt)
			return nil
		},
	}
}

// openMessage decrypts the message in the arguments of a background job.
func openMessage(box keyring.Box, args []byte) (mail.Message, error) {
	var l jobArgs
	if err := json.Unmarshal(args, &l); err != nil {
		return mail.Message{}, fmt.Errorf("open mail: %w", err)
	}
	plain, err := box.Open(l.Sealed, Kind)
	if err != nil {
		return mail.Message{}, fmt.Errorf("open mail: %w", err)
	}
	var m mail.Message
	if err := json.Unmarshal(plain, &m); err != nil {
		return mail.Message{}, fmt.Errorf("open mail: %w", err)
	}
	return m, nil
}
