// Package backgroundjobs defines all background jobs of the program.
package backgroundjobs

import (
	"context"
	"log/slog"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/personaldata"
	"atelier/internal/base/keyring"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/board"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/blob"
	"atelier/internal/file/library"
	"atelier/internal/file/resumable"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
)

// Parts are the dependencies and settings of the background jobs.
type Parts struct {
	DB      *sqldb.DB
	Blobs   blob.Store
	Library *library.Library
	Boards  *board.Boards
	Uploads *resumable.Service
	Runner  *runner.Runner
	Devices *device.Devices
	Tokens  *idtoken.Issuer
	Mail    mail.Sender
	MailBox keyring.Box // decrypts queued mail
	Log     *slog.Logger
	Now     func() time.Time
	// Leftovers is the age at which an unfinished file is considered abandoned
	// and is deleted.
	Leftovers time.Duration
	// SweepEvery is the interval at which expired files and deleted boards are
	// removed.
	SweepEvery time.Duration
	// Retention is how long the contents of runs and webhook events are kept.
	Retention generation.Retention
	// KeyLifetime is the age at which idempotency keys are deleted.
	KeyLifetime time.Duration
}

// Handlers returns the handlers for all kinds of background jobs.
func Handlers(p Parts) []queue.Handler {
	return append(
		periodicHandlers(p),
		mailqueue.Handler(p.Mail, p.MailBox, p.Log),
		personaldata.NewEraseHandler(p.DB),
		p.Runner.TicketHandler(),
	)
}

// periodicHandlers returns the handlers for periodic jobs. Failed jobs are not
// retried, because the next run of the periodic job does the same work.
func periodicHandlers(p Parts) []queue.Handler {
	return []queue.Handler{
		{
			Kind: "catalog-averages", Every: time.Minute, Timeout: time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return catalog.UpdateAverages(ctx, p.DB) },
		},
		{
			Kind: "identity-sweep", Every: 10 * time.Minute, Timeout: 5 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error {
				return account.DeleteExpired(ctx, p.DB, p.Devices, p.Tokens)
			},
		},
		{
			Kind: "key-sweep", Every: 10 * time.Minute, Timeout: 5 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return run.DeleteExpired(ctx, p.DB, p.KeyLifetime) },
		},
		{
			Kind: "library-sweep", Every: p.SweepEvery, Timeout: 10 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return p.Library.SweepFiles(ctx) },
		},
		{
			Kind: "run-sweep", Every: p.SweepEvery, Timeout: 10 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return generation.Prune(ctx, p.DB, p.Retention) },
		},
		{
			Kind: "upload-sweep", Every: p.SweepEvery, Timeout: 10 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return p.Uploads.SweepExpired(ctx) },
		},
		{
			Kind: "library-search", Every: p.SweepEvery, Timeout: 10 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return p.Library.FillSearchTexts(ctx) },
		},
		{
			Kind: "board-sweep", Every: p.SweepEvery, Timeout: 10 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return p.Boards.SweepDeleted(ctx) },
		},
		{
			Kind: "blob-sweep", Every: p.SweepEvery, Timeout: 10 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error {
				return p.Blobs.SweepUnfinished(ctx, p.Now().Add(-p.Leftovers))
			},
		},
		{
			Kind: "database-upkeep", Every: time.Hour, Timeout: 5 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return p.DB.MaintainFiles(ctx) },
		},
	}
}
