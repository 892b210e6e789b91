package backgroundjobs_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/personaldata"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/board"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/resumable"
	"atelier/internal/notify/mail"
	"atelier/internal/operate/backgroundjobs"
	"atelier/internal/people/principal"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

const manifest = "name: One\nprice: {type: FREE}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n"

// TestHousekeeping runs the queue as a node does: soon after the start every
// kind of upkeep has been done.
func TestHousekeeping(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		blobs, err := blob.Open(ctx, "file://"+t.TempDir(), blob.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer blobs.Close()
		set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: fstest.MapFS{"one.yaml": {Data: []byte(manifest)}}})
		if err != nil {
			t.Fatal(err)
		}
		changes, err := catalog.Apply(ctx, db, set)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Write(ctx, func(tx *sqldb.Tx) error {
			return catalog.RecordDuration(ctx, tx, changes[0].ID, 3*time.Second)
		})
		if err != nil {
			t.Fatal(err)
		}

		site := accounttest.New(t, db, accounttest.Options{})
		site.Person("anna@example.com")
		if err := site.Accounts.SignIn.RequestPasswordReset(ctx, "anna@example.com", site.Client()); err != nil {
			t.Fatal(err)
		}
		bert := site.Person("bert@example.com")
		leaving := personaldata.Service{DB: db, Blobs: blobs, Queue: site.Queue}
		if err := leaving.DeletePerson(ctx, principal.Operator(), bert, "bert@example.com"); err != nil {
			t.Fatal(err)
		}
		var sent watch.Log
		results := &library.Library{DB: db, Blobs: blobs}
		handlers := backgroundjobs.Handlers(backgroundjobs.Parts{
			DB: db, Blobs: blobs, Library: results, Boards: &board.Boards{DB: db, Hub: pubsub.New()},
			Uploads: &resumable.Service{DB: db, Library: results, Intake: &ingest.Pipeline{Blobs: blobs}},
			Runner:  runner.New(runner.Parts{}), Devices: site.Devices, Tokens: site.Tokens,
			Mail: mail.Print(&sent), MailBox: site.Keys.BoxFor("mail"), Log: slog.New(slog.DiscardHandler), Now: time.Now,
			Leftovers: time.Hour, SweepEvery: time.Hour, KeyLifetime: time.Hour,
		})
		done := make(chan string, 10*len(handlers))
		for i := range handlers {
			do := handlers[i].Do
			handlers[i].Do = func(ctx context.Context, w queue.Work) error {
				err := do(ctx, w)
				if err != nil {
					t.Errorf("%s: %v", w.Kind, err)
				}
				done <- w.Kind
				return err
			}
		}
		q, err := queue.Open(db, queue.Options{Log: slog.New(slog.DiscardHandler), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- q.Run(running, handlers) }()
		left := map[string]bool{}
		for _, h := range handlers {
			if h.Kind != runner.TicketKind { // added with runs only
				left[h.Kind] = true
			}
		}
		for late := time.After(time.Minute); len(left) > 0; {
			select {
			case kind := <-done:
				delete(left, kind)
			case <-late:
				t.Fatalf("not done: %v", left)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run = %v", err)
		}
		if text := sent.String(); !strings.Contains(text, "anna@example.com") || !strings.Contains(text, "/reset?token=") {
			t.Errorf("mail = %s", text)
		}
		cat := catalog.New(db, slog.New(slog.DiscardHandler))
		if _, err := cat.RefreshSnapshot(ctx); err != nil {
			t.Fatal(err)
		}
		if got := cat.CurrentSnapshot().AllTools()[0].AverageDuration; got != 3*time.Second {
			t.Errorf("average = %v, want 3s", got)
		}
		if v, err := db.VerifyChecks(ctx, queue.Checks(db.Dialect)); err != nil || len(v) != 0 {
			t.Errorf("checks = %v, %v", v, err)
		}
	})
}
