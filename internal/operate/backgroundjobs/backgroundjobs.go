// Package backgroundjobs says what a node does in the background.
package backgroundjobs

import (
	"context"
	"log/slog"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/dossier"
	"atelier/internal/base/keyring"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/blob"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
)

// Parts are what the work is done on.
type Parts struct {
	DB      *sqldb.DB
	Blobs   blob.Store
	Devices *device.Devices
	Tokens  *idtoken.Issuer
	Mail    mail.Sender
	MailBox keyring.Box // that queued mail is sealed with
	Log     *slog.Logger
	Now     func() time.Time
	// Leftovers is the age at which an unfinished file counts as abandoned, and
	// SweepEvery how often such files are looked for.
	Leftovers, SweepEvery time.Duration
}

// Handlers gives every kind of background job.
func Handlers(p Parts) []queue.Handler {
	return []queue.Handler{
		mailqueue.Handler(p.Mail, p.MailBox, p.Log),
		dossier.Handler(p.DB),
		// These come by themselves again, so none is retried.
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
			Kind: "blob-sweep", Every: p.SweepEvery, Timeout: 10 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return p.Blobs.Sweep(ctx, p.Now().Add(-p.Leftovers)) },
		},
		{
			Kind: "database-upkeep", Every: time.Hour, Timeout: 5 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return p.DB.Maintain(ctx) },
		},
	}
}
