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

// openDatabase opens the database as it is. The folder of the embedded one is
// made if it is missing.
func (p *program) openDatabase(ctx context.Context) (*sqldb.DB, error) {
	makePrivate()
	address := p.cfg.DatabaseURL()
	if strings.HasPrefix(address, "sqlite:") {
		if err := os.MkdirAll(p.cfg.Data, 0o700); err != nil {
			return nil, fmt.Errorf("make data folder: %w", err)
		}
	}
	return sqldb.Open(ctx, address, sqldb.Options{MaxConns: p.cfg.Connections, Now: time.Now, Follow: true})
}

// openMigrated opens the database at this version's schema, and makes it where
// there is none.
func (p *program) openMigrated(ctx context.Context) (*sqldb.DB, error) {
	db, err := p.openDatabase(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := db.Migrate(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// openExisting is openMigrated for commands that change an installation: where
// there is none, it makes none.
func (p *program) openExisting(ctx context.Context) (*sqldb.DB, error) {
	if err := p.findDatabase(); err != nil {
		return nil, err
	}
	db, err := p.openDatabase(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.Exists(ctx); err != nil {
		db.Close()
		return nil, explainNone(err)
	}
	if _, err := db.Migrate(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// openForReading opens the database of an installation for commands that only
// look. It writes nothing, not even a file beside the database.
func (p *program) openForReading(ctx context.Context) (*sqldb.DB, error) {
	if err := p.findDatabase(); err != nil {
		return nil, err
	}
	db, err := sqldb.Open(ctx, p.cfg.DatabaseURL(), sqldb.Options{MaxConns: p.cfg.Connections, Now: time.Now, Follow: true, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	if err := db.Migrated(ctx); err != nil {
		db.Close()
		return nil, explainNone(err)
	}
	return db, nil
}

// findDatabase fails where the file of the embedded database is missing or was
// never written to.
func (p *program) findDatabase() error {
	path, embedded, err := p.databaseFile()
	if err != nil || !embedded {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no installation of atelier here: %s is missing\n%s", path, howToGetOne)
	case err != nil:
		return err
	case info.Size() == 0:
		return fmt.Errorf("there is no installation of atelier here: %s is empty\n%s", path, howToGetOne)
	}
	return nil
}

const howToGetOne = "Name the folder of one with --data, or make one with atelier serve or atelier migrate"

// explainNone adds to sqldb.ErrNone what to do.
func explainNone(err error) error {
	if errors.Is(err, sqldb.ErrNone) {
		return fmt.Errorf("%w\nName its address with --database, or make one with atelier serve or atelier migrate", err)
	}
	return err
}

// databaseFile is where the embedded database is.
func (p *program) databaseFile() (path string, embedded bool, err error) {
	address, embedded := strings.CutPrefix(p.cfg.DatabaseURL(), "sqlite://")
	if !embedded {
		return "", false, nil
	}
	path, err = url.PathUnescape(address)
	if err != nil {
		return "", true, fmt.Errorf("database address: %w", err)
	}
	return path, true, nil
}

// openKeys gives the keys of this installation and makes sure they are the
// ones that the database knows.
func (p *program) openKeys(ctx context.Context, db *sqldb.DB) (ring keyring.Ring, err error) {
	if p.cfg.Secret != "" {
		ring, err = keyring.New(p.cfg.Secret)
	} else if err = p.findSecret(ctx, db); err == nil {
		ring, err = keyring.Load(p.cfg.SecretFile())
	}
	if err != nil {
		return ring, err
	}
	if err := db.Write(ctx, func(tx *sqldb.Tx) error { return ring.Confirm(ctx, tx) }); err != nil {
		return ring, err
	}
	db.SetSealKey(ring.Key(sealPurpose))
	return ring, inspect.BeginSeals(ctx, db)
}

// findSecret fails where the secret of an installation is missing: a new one
// would fit nothing that is in the database.
func (p *program) findSecret(ctx context.Context, db *sqldb.DB) error {
	_, err := os.Stat(p.cfg.SecretFile())
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var settled bool
	err = db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		settled, err = keyring.Settled(ctx, tx)
		return err
	})
	if err == nil && settled {
		err = fmt.Errorf("the secret of this installation is missing: %s is not there; name the folder of the installation with --data, or set ATELIER_SECRET", p.cfg.SecretFile())
	}
	return err
}

// sealPurpose is what the key of seals is derived for.
const sealPurpose = "row seals"

// openSealKey gives the database the key of its seals as it is, and says whether
// there is one: it makes no secret and changes nothing.
func (p *program) openSealKey(ctx context.Context, db *sqldb.DB) (found bool, err error) {
	var ring keyring.Ring
	switch {
	case p.cfg.Secret != "":
		ring, err = keyring.New(p.cfg.Secret)
	default:
		if err := p.findSecret(ctx, db); err != nil {
			return false, err
		}
		if _, err := os.Stat(p.cfg.SecretFile()); errors.Is(err, fs.ErrNotExist) {
			return false, nil // nobody has used the installation yet
		}
		ring, err = keyring.Load(p.cfg.SecretFile())
	}
	if err != nil {
		return false, err
	}
	if err := db.Read(ctx, func(tx *sqldb.Tx) error { return ring.Recognize(ctx, tx) }); err != nil {
		return false, err
	}
	db.SetSealKey(ring.Key(sealPurpose))
	return true, nil
}

// openBlobs opens the store of files and sweeps unfinished ones of
// retention.orphans and older.
func (p *program) openBlobs(ctx context.Context) (blob.Store, error) {
	return blob.Open(ctx, p.cfg.BlobsURL(), blob.Options{
		AccessKey: p.cfg.S3.AccessKey,
		SecretKey: p.cfg.S3.SecretKey,
		Leftovers: time.Duration(p.cfg.Retention.Orphans),
		Now:       time.Now,
	})
}

// openBlobsForReading opens the store of files as it is.
func (p *program) openBlobsForReading(ctx context.Context) (blob.Store, error) {
	return blob.Open(ctx, p.cfg.BlobsURL(), blob.Options{AccessKey: p.cfg.S3.AccessKey, SecretKey: p.cfg.S3.SecretKey, ReadOnly: true, Now: time.Now})
}

// manifests are where tools are read from, the directory's after our own.
func manifests(c *config.Config, dir string) ([]catalog.From, error) {
	var from []catalog.From
	if c.Catalog.Builtin {
		from = append(from, catalog.From{Source: catalog.Builtin, Files: tools.Files, Name: "builtin", Offer: offer(c)})
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
	return append(from, catalog.From{Source: catalog.Directory, Files: os.DirFS(dir), Name: dir}), nil
}

// inspectedManifests are manifests of which each tool is held against the engines
// that there are. A node that does not work leaves that to those that do.
func (p *program) inspectedManifests(dir string) ([]catalog.From, error) {
	from, err := manifests(p.cfg, dir)
	if err != nil || !p.cfg.Has("worker") {
		return from, err
	}
	in, err := p.newInspector()
	if err != nil {
		return nil, err
	}
	for i := range from {
		from[i].Inspect = in.inspect
	}
	return from, nil
}
