// Package mailqueuetest reads queued mail in tests.
package mailqueuetest

import (
	"context"
	"log/slog"
	"testing"

	"atelier/internal/base/keyring"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mailqueue"
)

// Queued returns all messages that were queued so far, oldest first. box must
// have the key with which they were encrypted.
func Queued(t testing.TB, db *sqldb.DB, box keyring.Box) []mail.Message {
	t.Helper()
	query := `SELECT args FROM job WHERE kind = 'mail' ORDER BY rowid`
	if db.Dialect.Name == "postgres" {
		query = `SELECT args ->> 'args' FROM river_job WHERE kind = 'mail' ORDER BY id`
	}
	var all inbox
	h := mailqueue.Handler(&all, box, slog.New(slog.DiscardHandler))
	err := db.Read(t.Context(), func(tx *sqldb.Tx) error {
		all = nil
		return tx.EachRow(t.Context(), query, nil, func(row sqldb.Scanner) error {
			var args string
			if err := row.Scan(&args); err != nil {
				return err
			}
			return h.Do(t.Context(), queue.Work{Args: []byte(args)})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inbox is a mail.Sender that stores all messages.
type inbox []mail.Message

func (i *inbox) Send(_ context.Context, m mail.Message) error {
	*i = append(*i, m)
	return m.CheckMessage()
}
