package dossier

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
)

// perDay is how many archives a person gets, on all nodes together.
var perDay = ratelimit.Window{Most: 5, Span: 24 * time.Hour}

func exportKey(personID string) ratelimit.Key {
	return ratelimit.Key{Name: ratelimit.Daily + "export/person/" + personID, Subject: personID}
}

// Archive is what is kept about a person, to be written.
type Archive struct {
	d        *Dossier
	personID string
	made     time.Time
}

// Name is what to save it as.
func (a *Archive) Name() string { return "atelier-" + a.made.Format("2006-01-02") + ".zip" }

// Export gives the archive of a person, five times a day to themselves, and
// notes that it was handed over.
func (d *Dossier) Export(ctx context.Context, a Actor, personID string) (*Archive, error) {
	if err := a.may(personID); err != nil {
		return nil, err
	}
	archive := &Archive{d: d, personID: personID}
	err := d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		if !a.trusted {
			_, full, err := ratelimit.Take(ctx, tx, exportKey(personID), perDay)
			if err != nil {
				return err
			}
			if full.Wait > 0 {
				return full.Fault("Your data can be fetched five times a day. Wait a little.")
			}
		}
		archive.made = tx.Now
		return audit.Add(ctx, tx, audit.Entry{Act: audit.PersonExported, ActorID: a.PersonID, PersonID: personID, Address: a.Address})
	})
	if err != nil {
		return nil, err
	}
	return archive, nil
}

// page is how many rows are read at once. No transaction is open while they are
// written: whoever reads slowly keeps nobody waiting.
const page = 200

// Write writes the archive. still, where it is not nil, is asked again and
// again whether whoever fetches it still may; what it returns breaks it off.
func (a *Archive) Write(ctx context.Context, w io.Writer, still func(context.Context) error) error {
	if still == nil {
		still = func(context.Context) error { return nil }
	}
	e := &export{Archive: a, zip: zip.NewWriter(w), still: still}
	for _, part := range []struct {
		name  string
		write func(context.Context, io.Writer) error
	}{
		{"README.txt", e.readme},
		{"person.json", e.person},
		{"devices.json", e.devices},
		{"sessions.json", e.sessions},
		{"access-tokens.json", e.tokens},
		{"companies.json", e.companies},
		{"balance.json", e.balance},
		{"notices.json", e.notices},
		{"audit.jsonl", e.audit},
		{"runs.jsonl", e.runs},
		{"uploads.jsonl", e.uploads},
		{"library.jsonl", e.library},
		{"favorites.jsonl", e.favorites},
		{"boards.jsonl", e.boards},
	} {
		if err := still(ctx); err != nil {
			return err
		}
		f, err := e.create(part.name, zip.Deflate, a.made)
		if err == nil {
			err = part.write(ctx, f)
		}
		if err != nil {
			return fmt.Errorf("export %s: %w", part.name, err)
		}
	}
	if err := e.files(ctx); err != nil {
		return fmt.Errorf("export files: %w", err)
	}
	return e.zip.Close()
}

// export is an archive while it is written.
type export struct {
	*Archive
	zip   *zip.Writer
	still func(context.Context) error
}

func (e *export) create(name string, method uint16, at time.Time) (io.Writer, error) {
	return e.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: at.UTC()})
}

// pages reads a page at a time with read, which goes on from where it was, and
// writes it with write, until there is nothing left.
func pages[T any](ctx context.Context, e *export, read func(tx *sqldb.Tx) ([]T, error), write func(T) error) error {
	for {
		var rows []T
		err := e.d.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
			rows, err = read(tx)
			return err
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			if err := write(row); err != nil {
				return err
			}
		}
		if err := e.still(ctx); err != nil {
			return err
		}
	}
}

// lines writes each page's rows as a JSON object on a line.
func lines[T any](ctx context.Context, e *export, w io.Writer, read func(tx *sqldb.Tx) ([]T, error), object func(T) any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return pages(ctx, e, read, func(row T) error { return encoder.Encode(object(row)) })
}

// whole writes what is read at once.
func whole[T any](ctx context.Context, e *export, w io.Writer, read func(tx *sqldb.Tx) (T, error)) error {
	var value T
	err := e.d.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		value, err = read(tx)
		return err
	})
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// object is what a row becomes in the archive.
type object map[string]any

// when is a time as it is written, null for none.
func when(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// raw is stored JSON, null where there is none.
func raw(text string) any {
	if text == "" || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}
