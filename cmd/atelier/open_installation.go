package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"atelier/internal/base/config"
	"atelier/internal/base/keyring"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/blob"
	"atelier/internal/operate/inspect"
	"atelier/tools"
)

// openDatabase opens the database without migrating its schema. It creates the
// folder of an embedded database.
func (in *installation) openDatabase(ctx context.Context) (*sqldb.DB, error) {
	makePrivate()
	address := in.cfg.DatabaseURL()
	if strings.HasPrefix(address, "sqlite:") {
		if err := os.MkdirAll(in.cfg.Data, 0o700); err != nil {
			return nil, fmt.Errorf("create the data folder: %w", err)
		}
	}
	return sqldb.Open(ctx, address, sqldb.Options{
		MaxConns:     in.cfg.Connections,
		IdleConns:    in.cfg.Pool.IdleConnections,
		ConnLifetime: time.Duration(in.cfg.Pool.ConnectionLifetime),
		ConnIdleTime: time.Duration(in.cfg.Pool.ConnectionIdleTime),
		Now:          time.Now,
		Follow:       true,
	})
}

// useReplica lets the database use its replica, if the settings name one.
func useReplica(ctx context.Context, db *sqldb.DB, c config.Pool) error {
	if c.Replica == "" {
		return nil
	}
	return sqldb.UseReplica(ctx, db, c.Replica, sqldb.ReplicaOptions{
		MaxConns: c.ReplicaConnections,
		MaxLag:   time.Duration(c.ReplicaLag),
	})
}

// openMigrated opens the database and migrates it to this version's schema. It
// creates the database if it does not exist.
func (in *installation) openMigrated(ctx context.Context) (*sqldb.DB, error) {
	db, err := in.openDatabase(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := db.Migrate(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// openExisting is like openMigrated, but returns an error if the installation
// does not exist. It is for commands that change an installation.
func (in *installation) openExisting(ctx context.Context) (*sqldb.DB, error) {
	if err := in.findDatabase(); err != nil {
		return nil, err
	}
	db, err := in.openDatabase(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.CheckExists(ctx); err != nil {
		db.Close()
		return nil, addDatabaseHint(err)
	}
	if _, err := db.Migrate(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// openForReading opens the database for commands that only read. It writes
// nothing, not even auxiliary files of the database.
func (in *installation) openForReading(ctx context.Context) (*sqldb.DB, error) {
	if err := in.findDatabase(); err != nil {
		return nil, err
	}
	db, err := sqldb.Open(ctx, in.cfg.DatabaseURL(), sqldb.Options{MaxConns: in.cfg.Connections, Now: time.Now, Follow: true, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	if err := db.CheckMigrated(ctx); err != nil {
		db.Close()
		return nil, addDatabaseHint(err)
	}
	return db, nil
}

// findDatabase returns an error if the file of the embedded database is
// missing or empty.
func (in *installation) findDatabase() error {
	path, embedded, err := in.databaseFile()
	if err != nil || !embedded {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no Atelier installation here: %s does not exist\n%s", path, noInstallationHint)
	case err != nil:
		return err
	case info.Size() == 0:
		return fmt.Errorf("there is no Atelier installation here: %s is empty\n%s", path, noInstallationHint)
	}
	return nil
}

const noInstallationHint = "Set --data to the folder of an installation, or create one with atelier serve or atelier migrate"

// addDatabaseHint adds advice for the operator if err is sqldb.ErrNone.
func addDatabaseHint(err error) error {
	if errors.Is(err, sqldb.ErrNone) {
		return fmt.Errorf("%w\nSet --database to the address of an installation, or create one with atelier serve or atelier migrate", err)
	}
	return err
}

// databaseFile returns the path of the embedded database. embedded is false if
// another database is configured.
func (in *installation) databaseFile() (path string, embedded bool, err error) {
	address, embedded := strings.CutPrefix(in.cfg.DatabaseURL(), "sqlite://")
	if !embedded {
		return "", false, nil
	}
	path, err = url.PathUnescape(address)
	if err != nil {
		return "", true, fmt.Errorf("database address: %w", err)
	}
	return path, true, nil
}

// openKeys returns the keys of this installation. It returns an error if the
// database was created with another secret.
func (in *installation) openKeys(ctx context.Context, db *sqldb.DB) (ring keyring.Ring, err error) {
	if in.cfg.Secret != "" {
		ring, err = keyring.New(in.cfg.Secret)
	} else if err = in.findSecret(ctx, db); err == nil {
		ring, err = keyring.Load(in.cfg.SecretFile())
	}
	if err != nil {
		return ring, err
	}
	if err := db.Write(ctx, func(tx *sqldb.Tx) error { return ring.ConfirmSecret(ctx, tx) }); err != nil {
		return ring, err
	}
	db.SetSealKey(ring.DeriveKey(sealPurpose))
	return ring, inspect.BeginSeals(ctx, db)
}

// findSecret returns an error if the secret of an existing installation is
// missing, because data in the database could not be decrypted with a new
// secret.
func (in *installation) findSecret(ctx context.Context, db *sqldb.DB) error {
	_, err := os.Stat(in.cfg.SecretFile())
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var settled bool
	err = db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		settled, err = keyring.HasFingerprint(ctx, tx)
		return err
	})
	if err == nil && settled {
		err = fmt.Errorf("the secret of this installation is missing: %s does not exist; set --data to the folder of the installation, or set ATELIER_SECRET", in.cfg.SecretFile())
	}
	return err
}

// sealPurpose is the name with which the key of row seals is derived from the
// secret.
const sealPurpose = "row seals"

// openSealKey sets the key with which the database verifies row seals. found
// reports whether there is a secret to derive the key from. openSealKey never
// creates a secret and writes nothing.
func (in *installation) openSealKey(ctx context.Context, db *sqldb.DB) (found bool, err error) {
	var ring keyring.Ring
	switch {
	case in.cfg.Secret != "":
		ring, err = keyring.New(in.cfg.Secret)
	default:
		if err := in.findSecret(ctx, db); err != nil {
			return false, err
		}
		if _, err := os.Stat(in.cfg.SecretFile()); errors.Is(err, fs.ErrNotExist) {
			return false, nil // the installation has never been started
		}
		ring, err = keyring.Load(in.cfg.SecretFile())
	}
	if err != nil {
		return false, err
	}
	if err := db.Read(ctx, func(tx *sqldb.Tx) error { return ring.RecognizeSecret(ctx, tx) }); err != nil {
		return false, err
	}
	db.SetSealKey(ring.DeriveKey(sealPurpose))
	return true, nil
}

// openBlobs opens the file store, and deletes unfinished files older than the
// setting retention.orphans.
func (in *installation) openBlobs(ctx context.Context) (blob.Store, error) {
	return blob.Open(ctx, in.cfg.BlobsURL(), blob.Options{
		AccessKey:        in.cfg.S3.AccessKey,
		SecretKey:        in.cfg.S3.SecretKey,
		UnfinishedMaxAge: time.Duration(in.cfg.Retention.Orphans),
		Now:              time.Now,
	})
}

// newPresigner returns the signer of URLs with which clients read files from
// the S3 server, or nil if the operator does not allow them.
func newPresigner(c *config.Config) (*blob.Presigner, error) {
	if !c.Storage.Presigned {
		return nil, nil
	}
	return blob.NewPresigner(c.BlobsURL(), blob.PresignOptions{
		AccessKey: c.S3.AccessKey,
		SecretKey: c.S3.SecretKey,
		Endpoint:  c.Storage.PresignedURL,
		Lifetime:  time.Duration(c.Storage.PresignedLifetime),
	})
}

// openBlobsForReading opens the file store read-only.
func (in *installation) openBlobsForReading(ctx context.Context) (blob.Store, error) {
	return blob.Open(ctx, in.cfg.BlobsURL(), blob.Options{AccessKey: in.cfg.S3.AccessKey, SecretKey: in.cfg.S3.SecretKey, ReadOnly: true, Now: time.Now})
}

// manifestSources returns the sources of tool manifests: the built-in ones,
// then the folder dir or, if dir is "", the configured folder.
func manifestSources(c *config.Config, dir string) ([]catalog.ManifestFolder, error) {
	var from []catalog.ManifestFolder
	if c.Catalog.Builtin {
		from = append(from, catalog.ManifestFolder{Source: catalog.Builtin, Files: tools.Files, Name: "builtin", EngineAvailability: toolAvailability(c)})
	}
	if dir == "" {
		dir = c.Tools
	}
	if dir == "" {
		return from, nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("tools: %s is not a folder", dir)
	}
	return append(from, catalog.ManifestFolder{Source: catalog.Directory, Files: os.DirFS(dir), Name: dir}), nil
}

// inspectedManifestSources is like manifestSources, but on workers the sources
// also check each tool against the configured engines.
func (in *installation) inspectedManifestSources(dir string) ([]catalog.ManifestFolder, error) {
	from, err := manifestSources(in.cfg, dir)
	if err != nil || !in.cfg.HasRole("worker") {
		return from, err
	}
	inspector, err := in.newInspector()
	if err != nil {
		return nil, err
	}
	for i := range from {
		from[i].Inspect = inspector.inspectTool
	}
	return from, nil
}
