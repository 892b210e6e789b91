package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/telemetry"
	"atelier/internal/file/blob"
	"atelier/internal/operate/backup"
	"atelier/internal/operate/replicate"
)

// isStoreAddress reports whether a place is the address of a file store, not a
// file.
func isStoreAddress(place string) bool {
	return strings.HasPrefix(place, "s3://") || strings.HasPrefix(place, "file://")
}

// runContinuously copies the changes of the embedded database until the command
// is interrupted.
func (c backupCmd) runContinuously(p *program) error {
	if !isStoreAddress(c.File) {
		return usageError{errors.New("--continuous needs the address of an empty bucket or folder: s3://bucket?endpoint=… or file:///dir")}
	}
	path, embedded, err := p.databaseFile()
	if err != nil {
		return err
	}
	if !embedded {
		return errors.New("--continuous is for the embedded database: use the continuous archiving of PostgreSQL for yours")
	}
	if err := p.findDatabase(); err != nil {
		return err
	}
	owner, err := beginContinuous(p.ctx, &p.installation)
	if err != nil {
		return err
	}
	log, err := telemetry.Logger(p.stderr, p.cfg.Log.Format, p.cfg.Log.Level)
	if err != nil {
		return err
	}
	store, err := openBackupStore(p.ctx, &p.installation, c.File, false)
	if err != nil {
		return err
	}
	defer store.Close()
	fmt.Fprintf(p.stderr, "copying the changes of %s until interrupted; the secret and the files are not copied\n", path)
	r := replicate.Replication{
		Path:  path,
		Store: store,
		Owner: owner,
		Keep:  c.Keep,
		Log:   log,
	}
	return r.Run(p.ctx)
}

// beginContinuous records the backup in the audit log, and returns a text that
// identifies the installation. It closes the database again, because the
// replication opens it by itself.
func beginContinuous(ctx context.Context, in *installation) (owner string, err error) {
	db, err := in.openDatabase(ctx)
	if err != nil {
		return "", err
	}
	defer db.Close()
	if err := db.CheckMigrated(ctx); err != nil {
		return "", err
	}
	found, err := in.openSealKey(ctx, db)
	if err == nil && !found {
		err = errors.New("the installation has never been started: start it first")
	}
	if err != nil {
		return "", err
	}
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		owner = tx.SealTexts("continuous backup")
		return audit.Add(ctx, tx, audit.Entry{Act: audit.BackupMade, Details: map[string]string{"continuous": "true"}})
	})
	return owner, err
}

// openBackupStore opens the place of a continuous backup. The settings s3. have
// its keys.
func openBackupStore(ctx context.Context, in *installation, address string, readOnly bool) (blob.Store, error) {
	return blob.Open(ctx, address, blob.Options{AccessKey: in.cfg.S3.AccessKey, SecretKey: in.cfg.S3.SecretKey, ReadOnly: readOnly, Now: time.Now})
}

// restoreMoment writes the database of a continuous backup and the secret into
// the data folder.
func (c restoreCmd) restoreMoment(ctx context.Context, in *installation) (h backup.Header, err error) {
	var at time.Time
	if c.At != "" {
		if at, err = time.Parse(time.RFC3339, c.At); err != nil {
			return h, usageError{errors.New("--at must be a time like 2026-11-17T14:30:00Z")}
		}
	}
	if (in.cfg.Secret == "") == (c.SecretFile == "") {
		return h, usageError{errors.New("a continuous backup does not contain the installation's secret: set ATELIER_SECRET, or --secret-file to a copy of the file keys/secret")}
	}
	store, err := openBackupStore(ctx, in, c.File, true)
	if err != nil {
		return h, err
	}
	defer store.Close()
	h.Version = buildVersion()
	h.Made, err = replicate.Restore(ctx, store, filepath.Join(in.cfg.Data, "atelier.db"), at, slog.New(slog.DiscardHandler))
	if err != nil || c.SecretFile == "" {
		return h, err
	}
	secret, err := os.ReadFile(c.SecretFile)
	if err != nil {
		return h, err
	}
	if err := os.MkdirAll(filepath.Dir(in.cfg.SecretFile()), 0o700); err != nil {
		return h, err
	}
	return h, os.WriteFile(in.cfg.SecretFile(), secret, 0o600)
}
