package mailqueue_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/keyring"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mail/mailtest"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/testkit/watch"
)

var hello = mail.Message{
	To: "anna@studio.example", Subject: "Schöne Grüße 🦊",
	Text: "Hello Anna,\n\nhttps://atelier.example/link/V3rySecret\n",
}

// box makes the box of an installation of its own.
func box(t *testing.T, secret byte) keyring.Box {
	t.Helper()
	ring, err := keyring.New(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{secret}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return ring.BoxFor("mail")
}

// send queues a message as a node does that only serves requests.
func send(t *testing.T, db *sqldb.DB, b keyring.Box, m mail.Message) error {
	t.Helper()
	q, err := queue.Open(db, queue.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return db.Write(t.Context(), func(tx *sqldb.Tx) error {
		return mailqueue.Outbox{Queue: q, Box: b}.QueueMessage(t.Context(), tx, m)
	})
}

// deliver runs the queue as a node does that works, until the test ends. What
// the queue has to say goes into the log.
func deliver(t *testing.T, db *sqldb.DB, h queue.Handler) *watch.Log {
	t.Helper()
	log := &watch.Log{}
	q, err := queue.Open(db, queue.Options{Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx, []queue.Handler{h}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run = %v", err)
		}
	})
	return log
}

// over gives a handler that sends to the server.
func over(t *testing.T, s *mailtest.Server, b keyring.Box) queue.Handler {
	t.Helper()
	sender, err := mail.SMTP(mail.Settings{Address: s.Address, From: "noreply@atelier.example", TLS: "none"})
	if err != nil {
		t.Fatal(err)
	}
	return mailqueue.Handler(sender, b, slog.New(slog.DiscardHandler))
}

// args reads what the jobs in the database carry.
func args(t *testing.T, db *sqldb.DB) []string {
	t.Helper()
	query := `SELECT args FROM job`
	if db.Dialect.Name == "postgres" {
		query = `SELECT args ->> 'args' FROM river_job`
	}
	var all []string
	err := db.Read(t.Context(), func(tx *sqldb.Tx) (err error) {
		all, err = sqldb.All(t.Context(), tx, query, nil, func(row sqldb.Scanner) (s string, err error) { return s, row.Scan(&s) })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestMailArrives(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		server := mailtest.Start(t, mailtest.Options{})
		b := box(t, 1)
		if err := send(t, db, b, hello); err != nil {
			t.Fatal(err)
		}
		server.None(t)
		deliver(t, db, over(t, server, b))
		got := server.Next(t)
		if got.To != hello.To || got.Subject != hello.Subject || got.Text != hello.Text {
			t.Errorf("mail = %q, %q, %q", got.To, got.Subject, got.Text)
		}
	})
}

func TestMailIsPrintedWithoutAServer(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		b := box(t, 1)
		if err := send(t, db, b, hello); err != nil {
			t.Fatal(err)
		}
		var out watch.Log
		deliver(t, db, mailqueue.Handler(mail.Print(&out), b, slog.New(slog.DiscardHandler)))
		watch.Until(t, "the link", func() bool { return strings.Contains(out.String(), "https://atelier.example/link/V3rySecret\n") })
	})
}

func TestMailLiesSealed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		b := box(t, 1)
		for range 2 {
			if err := send(t, db, b, hello); err != nil {
				t.Fatal(err)
			}
		}
		all := args(t, db)
		if len(all) != 2 || all[0] == all[1] {
			t.Fatalf("args = %q, want two that differ", all)
		}
		for _, a := range all {
			var l struct{ Sealed string }
			if err := json.Unmarshal([]byte(a), &l); err != nil {
				t.Fatal(err)
			}
			raw, err := base64.RawStdEncoding.DecodeString(l.Sealed)
			if err != nil || len(raw) == 0 {
				t.Fatalf("args %s hold nothing sealed: %v", a, err)
			}
			for _, clear := range []string{"anna@studio", "Grüße", "Hello Anna", "atelier.example", "V3rySecret"} {
				if strings.Contains(a, clear) || bytes.Contains(raw, []byte(clear)) {
					t.Errorf("the database holds %q in the clear", clear)
				}
			}
		}
	})
}

func TestRolledBackMailIsNotSent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		q, err := queue.Open(db, queue.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		why := errors.New("changed my mind")
		err = db.Write(t.Context(), func(tx *sqldb.Tx) error {
			if err := (mailqueue.Outbox{Queue: q, Box: box(t, 1)}).QueueMessage(t.Context(), tx, hello); err != nil {
				return err
			}
			return why
		})
		if !errors.Is(err, why) {
			t.Fatal(err)
		}
		if all := args(t, db); len(all) != 0 {
			t.Errorf("args = %q, want none", all)
		}
	})
}

func TestBadMailIsNotQueued(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		bad := hello
		bad.Subject = "a\r\nBcc: eve@evil.example"
		if err := send(t, db, box(t, 1), bad); !mail.IsPermanent(err) {
			t.Errorf("send = %v, want a permanent error", err)
		}
		if all := args(t, db); len(all) != 0 {
			t.Errorf("args = %q, want none", all)
		}
	})
}

func TestRefusedMailIsGivenUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		server := mailtest.Start(t, mailtest.Options{Refuse: func(string) error { return mailtest.Error(550, "nobody here") }})
		b := box(t, 1)
		if err := send(t, db, b, hello); err != nil {
			t.Fatal(err)
		}
		log := deliver(t, db, over(t, server, b))
		watch.Until(t, "the end of the job", func() bool { return strings.Contains(log.String(), "job failed") })
		if got := log.String(); !strings.Contains(got, "attempt=1") || !strings.Contains(got, "nobody here") || strings.Contains(got, "V3rySecret") {
			t.Errorf("log = %s", got)
		}
	})
}

func TestMailWaitsForItsServer(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		var tries atomic.Int64
		server := mailtest.Start(t, mailtest.Options{Refuse: func(string) error {
			if tries.Add(1) < 3 {
				return mailtest.Error(451, "come back later")
			}
			return nil
		}})
		b := box(t, 1)
		if err := send(t, db, b, hello); err != nil {
			t.Fatal(err)
		}
		h := over(t, server, b)
		for i := range h.Retry {
			h.Retry[i] = time.Millisecond
		}
		deliver(t, db, h)
		if got := server.Next(t); got.To != hello.To || tries.Load() != 3 {
			t.Errorf("mail for %s after %d tries, want 3", got.To, tries.Load())
		}
	})
}

func TestForeignMailIsNotSent(t *testing.T) {
	t.Parallel()
	const plain = `{"To":"a@b.example","Subject":"s","Text":"t"}`
	mine, theirs := box(t, 1), box(t, 2)
	foreign := map[string]string{
		"sealed by another installation": `{"sealed":"` + theirs.Seal([]byte(plain), "mail") + `"}`,
		"sealed for another purpose":     `{"sealed":"` + mine.Seal([]byte(plain), "other") + `"}`,
		"in the clear":                   plain,
		"not a letter":                   `[]`,
		"not a message":                  `{"sealed":"` + mine.Seal([]byte(`[]`), "mail") + `"}`,
	}
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		server := mailtest.Start(t, mailtest.Options{})
		q, err := queue.Open(db, queue.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		for name, args := range foreign {
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
				_, err := q.Add(t.Context(), tx, queue.Job{Kind: "mail", Args: []byte(args)})
				return err
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		log := deliver(t, db, over(t, server, mine))
		watch.Until(t, "the end of the jobs", func() bool { return strings.Count(log.String(), "job failed") == len(foreign) })
		if strings.Contains(log.String(), "attempt=2") {
			t.Errorf("log = %s", log)
		}
		server.None(t)
	})
}
