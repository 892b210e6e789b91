package personaldata

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/board"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/library"
	"atelier/internal/file/resumable"
	"atelier/internal/run/run"
	"atelier/internal/run/savedflow"
)

func (aw *archiveWriter) writeRuns(ctx context.Context, w io.Writer) error {
	var after *run.Cursor
	return writeLines(ctx, aw, w, func(tx *sqldb.Tx) ([]run.Run, error) { return run.ListByPerson(ctx, tx, aw.personID, after, pageSize) }, func(r run.Run) any {
		after = &run.Cursor{Created: r.Created, ID: r.ID}
		return object{
			"request_id":     r.ID,
			"library_run_id": r.LibraryID,
			"account_id":     r.AccountID,
			"team_id":        r.TeamID,
			"credential":     r.Credential,
			"credential_id":  r.CredentialID,
			"plugin":         r.Plugin,
			"tool_id":        r.ToolID,
			"tool_hash":      r.ToolHash,
			"prompt":         r.Prompt,
			"inputs":         rawJSON(r.Inputs),
			"metadata":       rawJSON(r.Metadata),
			"seed":           r.Seed,
			"num_results":    r.NumResults,
			"webhook_url":    r.WebhookURL,
			"status":         r.State.PublicStatus(),
			"tokens_charged": r.TokensCharged,
			"allowance_used": r.AllowanceUsed,
			"error_code":     r.ErrorCode,
			"error_message":  r.ErrorText,
			"created":        formatTime(r.Created),
			"started":        formatTime(r.Started),
			"finished":       formatTime(r.Finished),
		}
	})
}

// eachUpload passes every upload of the personal account to write.
func (aw *archiveWriter) eachUpload(ctx context.Context, write func(asset.Upload) error) error {
	var after *asset.Cursor
	return eachRow(ctx, aw, func(tx *sqldb.Tx) ([]asset.Upload, error) {
		return asset.Uploads(ctx, tx, aw.personID, "", after, pageSize)
	}, func(u asset.Upload) error {
		place := u.PageCursor()
		after = &place
		return write(u)
	})
}

// eachResult passes every result of the personal account's runs to write.
func (aw *archiveWriter) eachResult(ctx context.Context, write func(library.ExportedResult) error) error {
	var after library.ExportCursor
	return eachRow(ctx, aw, func(tx *sqldb.Tx) ([]library.ExportedResult, error) {
		return library.ExportResults(ctx, tx, aw.personID, after, pageSize)
	}, func(k library.ExportedResult) error {
		after = k.Cursor
		return write(k)
	})
}

// uploadPath and resultPath return paths in the archive that consist of ids.
// The file names that people chose appear only in the lists of files, because
// they may not be valid paths.
func uploadPath(u asset.Upload) string { return "files/uploads/" + u.ID + path.Ext(u.Asset.Blob) }
func resultPath(k library.ExportedResult) string {
	return "files/results/" + k.ResultID + path.Ext(k.Asset.Blob)
}

// addFileFields adds the JSON fields that describe a stored file to o, and
// returns o.
func addFileFields(a asset.Asset, o object) object {
	o["type"] = a.Type
	o["mime_type"] = a.MimeType
	o["size_bytes"] = a.Size
	o["sha256"] = a.SHA256
	if a.Width > 0 {
		o["width"] = a.Width
		o["height"] = a.Height
	}
	if a.Duration > 0 {
		// Duration.Seconds has rounding errors, such as 1.1179999999999999.
		o["duration_seconds"] = float64(a.Duration.Milliseconds()) / 1000
	}
	return o
}

func (aw *archiveWriter) writeUploads(ctx context.Context, w io.Writer) error {
	encoder := newLineEncoder(w)
	return aw.eachUpload(ctx, func(u asset.Upload) error {
		return encoder.Encode(addFileFields(u.Asset, object{"id": u.ID, "name": u.Name, "created": formatTime(u.Created), "file": uploadPath(u)}))
	})
}

func (aw *archiveWriter) writeUnfinishedUploads(ctx context.Context, w io.Writer) error {
	encoder := newLineEncoder(w)
	after := ""
	return eachRow(ctx, aw, func(tx *sqldb.Tx) ([]resumable.Upload, error) {
		return resumable.Unfinished(ctx, tx, aw.personID, after, pageSize)
	}, func(u resumable.Upload) error {
		after = u.ID
		return encoder.Encode(object{
			"id":             u.ID,
			"name":           u.Name,
			"metadata":       u.Metadata,
			"size_bytes":     u.Length,
			"received_bytes": u.Offset,
			"created":        formatTime(u.Created),
			"expires":        formatTime(u.Expires),
		})
	})
}

func (aw *archiveWriter) writeResults(ctx context.Context, w io.Writer) error {
	encoder := newLineEncoder(w)
	return aw.eachResult(ctx, func(k library.ExportedResult) error {
		o := object{
			"id":         k.ID,
			"request_id": k.RequestID,
			"tool_id":    k.ToolID,
			"favorited":  k.Favorited,
			"created":    formatTime(k.Created),
			"file":       resultPath(k),
		}
		if k.Note != "" {
			o["note"] = k.Note
		}
		return encoder.Encode(addFileFields(k.Asset, o))
	})
}

func (aw *archiveWriter) writeFavorites(ctx context.Context, w io.Writer) error {
	after := ""
	return writeLines(ctx, aw, w, func(tx *sqldb.Tx) ([]library.Favorite, error) {
		return library.ExportFavorites(ctx, tx, aw.personID, after, pageSize)
	}, func(f library.Favorite) any {
		after = f.ResultID
		return object{"result_id": f.ResultID, "created": formatTime(f.Created)}
	})
}

func (aw *archiveWriter) writeBoards(ctx context.Context, w io.Writer) error {
	for _, trash := range []bool{false, true} {
		var after *board.Cursor
		err := eachRow(ctx, aw, func(tx *sqldb.Tx) ([]board.Board, error) {
			return board.List(ctx, tx, aw.personID, trash, after, pageSize)
		}, func(b board.Board) error {
			after = &board.Cursor{Created: b.Created, ID: b.ID}
			return aw.writeBoard(ctx, w, b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (aw *archiveWriter) writeFlows(ctx context.Context, w io.Writer) error {
	isRead := false
	return writeLines(ctx, aw, w, func(tx *sqldb.Tx) ([]savedflow.Flow, error) {
		if isRead {
			return nil, nil
		}
		return savedflow.ListOwn(ctx, tx, aw.personID)
	}, func(f savedflow.Flow) any {
		isRead = true // all at once: there are few
		return object{
			"id":         f.ID,
			"name":       f.Name,
			"version":    f.Version,
			"created":    formatTime(f.Created),
			"updated":    formatTime(f.Updated),
			"definition": json.RawMessage(f.Definition),
		}
	})
}

// writeBoard writes a board and its nodes as a JSON object on one line.
func (aw *archiveWriter) writeBoard(ctx context.Context, w io.Writer, b board.Board) error {
	about, err := json.Marshal(object{
		"id":       b.ID,
		"name":     b.Name,
		"revision": b.Revision,
		"created":  formatTime(b.Created),
		"updated":  formatTime(b.Updated),
		"deleted":  formatTime(b.Deleted),
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `%s,"nodes":[`, about[:len(about)-1]); err != nil {
		return err
	}
	var after *board.Cursor
	comma := ""
	err = eachRow(ctx, aw, func(tx *sqldb.Tx) ([]board.Node, error) { return board.NodesOf(ctx, tx, b, after, pageSize) }, func(n board.Node) error {
		after = &board.Cursor{Created: n.Created, ID: n.ID}
		text, err := json.Marshal(object{
			"id":      n.ID,
			"kind":    n.Kind,
			"ref":     n.Ref,
			"text":    n.Text,
			"x":       n.Box.X,
			"y":       n.Box.Y,
			"width":   n.Box.Width,
			"height":  n.Box.Height,
			"z":       n.Z,
			"created": formatTime(n.Created),
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s%s", comma, text)
		comma = ","
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}

func (aw *archiveWriter) writeFiles(ctx context.Context) error {
	err := aw.eachUpload(ctx, func(u asset.Upload) error { return aw.writeFile(ctx, uploadPath(u), u.Asset, u.Created) })
	if err != nil {
		return err
	}
	return aw.eachResult(ctx, func(k library.ExportedResult) error { return aw.writeFile(ctx, resultPath(k), k.Asset, k.Created) })
}

// writeFile adds a stored file to the archive, uncompressed because most
// formats are compressed already. If the file is damaged, it returns an error
// and the archive stays incomplete. If the file is missing, it adds a note
// instead.
func (aw *archiveWriter) writeFile(ctx context.Context, name string, a asset.Asset, at time.Time) error {
	if err := aw.reauthorize(ctx); err != nil {
		return err
	}
	body, err := blob.OpenVerified(ctx, aw.service.Blobs, blob.File{Key: a.Blob, Size: a.Size, SHA256: a.SHA256})
	if errors.Is(err, blob.ErrNotFound) {
		f, err := aw.createEntry(name+".missing.txt", zip.Store, at)
		if err == nil {
			_, err = io.WriteString(f, "The contents of this file are lost.\n")
		}
		return err
	}
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := aw.createEntry(name, zip.Store, at)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	return err
}
