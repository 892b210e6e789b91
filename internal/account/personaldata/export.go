package personaldata

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
	"atelier/internal/people/principal"
)

// exportsPerDay limits how often a person can export their data. The limit
// applies to all nodes together.
var exportsPerDay = ratelimit.Window{Max: 5, Span: 24 * time.Hour}

func exportRateKey(personID string) ratelimit.Key {
	return ratelimit.Key{Name: ratelimit.Daily + "export/person/" + personID, Subject: personID}
}

// WriteTimeout is the maximum time for which the receiver of an archive may
// block a single write.
const WriteTimeout = 30 * time.Second

// Archive is a ZIP file with the data of a person. Write produces its content.
type Archive struct {
	service  *Service
	personID string
	created  time.Time
}

// FileName returns the suggested file name of the archive.
func (a *Archive) FileName() string { return "atelier-" + a.created.Format("2006-01-02") + ".zip" }

// ExportPerson returns the archive of a person's data and adds an audit log
// entry. A person can export their data five times a day; the operator has no
// limit.
func (s *Service) ExportPerson(ctx context.Context, caller principal.Principal, personID string) (*Archive, error) {
	if err := requireOwner(caller, personID); err != nil {
		return nil, err
	}

	archive := &Archive{service: s, personID: personID}
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		if !caller.Operator {
			_, full, err := ratelimit.Take(ctx, tx, exportRateKey(personID), exportsPerDay)
			if err != nil {
				return err
			}
			if full.Wait > 0 {
				return full.Fault("Your data can be exported five times a day. Try again later.")
			}
		}
		archive.created = tx.Now
		return audit.Add(ctx, tx, audit.Entry{Act: audit.PersonExported, ActorID: caller.PersonID, PersonID: personID, Address: caller.Address})
	})
	if err != nil {
		return nil, err
	}
	return archive, nil
}

// pageSize is the number of rows that one transaction reads. No transaction is
// open while the rows are written, so that a slow receiver does not make other
// requests wait.
const pageSize = 200

// Write writes the archive to w. If reauthorize is not nil, Write calls it
// periodically, and stops when reauthorize returns an error.
func (a *Archive) Write(ctx context.Context, w io.Writer, reauthorize func(context.Context) error) error {
	if reauthorize == nil {
		reauthorize = func(context.Context) error { return nil }
	}

	aw := &archiveWriter{Archive: a, zip: zip.NewWriter(w), reauthorize: reauthorize}
	for _, part := range []struct {
		name  string
		write func(context.Context, io.Writer) error
	}{
		{"README.txt", aw.writeReadme},
		{"person.json", aw.writePerson},
		{"devices.json", aw.writeDevices},
		{"sessions.json", aw.writeSessions},
		{"access-tokens.json", aw.writeAccessTokens},
		{"companies.json", aw.writeCompanies},
		{"balance.json", aw.writeBalance},
		{"notices.json", aw.writeNotices},
		{"audit.jsonl", aw.writeAuditRecords},
		{"runs.jsonl", aw.writeRuns},
		{"uploads.jsonl", aw.writeUploads},
		{"unfinished.jsonl", aw.writeUnfinishedUploads},
		{"library.jsonl", aw.writeResults},
		{"favorites.jsonl", aw.writeFavorites},
		{"boards.jsonl", aw.writeBoards},
		{"flows.jsonl", aw.writeFlows},
	} {
		if err := reauthorize(ctx); err != nil {
			return err
		}
		f, err := aw.createEntry(part.name, zip.Deflate, a.created)
		if err == nil {
			err = part.write(ctx, f)
		}
		if err != nil {
			return fmt.Errorf("export %s: %w", part.name, err)
		}
	}
	if err := aw.writeFiles(ctx); err != nil {
		return fmt.Errorf("export files: %w", err)
	}
	return aw.zip.Close()
}

// archiveWriter contains the state of Archive.Write.
type archiveWriter struct {
	*Archive
	zip         *zip.Writer
	reauthorize func(context.Context) error
}

func (aw *archiveWriter) createEntry(name string, method uint16, modified time.Time) (io.Writer, error) {
	return aw.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: modified.UTC()})
}

// eachRow calls read, which returns the next page of rows at each call, until a
// page is empty, and passes every row to write.
func eachRow[T any](ctx context.Context, aw *archiveWriter, read func(tx *sqldb.Tx) ([]T, error), write func(T) error) error {
	for {
		var rows []T
		err := aw.service.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
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
		if err := aw.reauthorize(ctx); err != nil {
			return err
		}
	}
}

// writeLines writes every row as a JSON object on a separate line.
func writeLines[T any](ctx context.Context, aw *archiveWriter, w io.Writer, read func(tx *sqldb.Tx) ([]T, error), asObject func(T) any) error {
	encoder := newLineEncoder(w)
	return eachRow(ctx, aw, read, func(row T) error { return encoder.Encode(asObject(row)) })
}

// writeDocument writes the value that read returns as an indented JSON document.
func writeDocument[T any](ctx context.Context, aw *archiveWriter, w io.Writer, read func(tx *sqldb.Tx) (T, error)) error {
	var value T
	err := aw.service.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		value, err = read(tx)
		return err
	})
	if err != nil {
		return err
	}

	encoder := newLineEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func newLineEncoder(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

// object is a JSON object in the archive.
type object map[string]any

// formatTime formats a time as a string, or returns nil for the zero time.
func formatTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// rawJSON returns text for embedding in a JSON document, or nil if text is not
// valid JSON.
func rawJSON(text string) any {
	if text == "" || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}
