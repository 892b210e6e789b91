package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/file/blob"
	"atelier/internal/file/library"
	"atelier/internal/web/httpd"
)

// getMedia serves a file by its signed address, in parts where those are asked
// for. Whatever the file is, nothing in it runs: browsers are told its type,
// and to lock up what they show of it.
func (s *Server) getMedia(w http.ResponseWriter, r *http.Request) error {
	grant, err := s.Links.Open(library.Kind(r.PathValue("kind")), r.PathValue("id"), r.PathValue("variant"), r.URL.Query())
	if err != nil {
		return err
	}
	f, err := s.Library.Locate(r.Context(), grant)
	if err != nil {
		return err
	}
	httpd.RecordOf(r.Context()).Reauthorize = func(ctx context.Context) error {
		_, err := s.Library.Locate(ctx, grant) // the file may be deleted, or the viewer no longer a member
		return err
	}
	h := w.Header()
	h.Set("Content-Type", f.MimeType)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // plugins show it in their own pages
	h.Set("Cache-Control", "private, no-store")
	disposition := "attachment"
	if f.Inline {
		disposition = "inline"
	}
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": f.Name}))
	if f.SHA256 != "" {
		h.Set("ETag", `"`+f.SHA256+`"`)
	}
	if r.Method == http.MethodHead { // nothing is opened for it
		if _, err := s.Blobs.Stat(r.Context(), f.Key); err != nil {
			return missingFile(err)
		}
	}
	conn := http.NewResponseController(w)
	file := blob.File{Key: f.Key, Size: f.Size, SHA256: f.SHA256}
	err = httpd.ServeFile(w, r, f.Size, func(offset, length int64) (io.ReadCloser, error) {
		body, err := s.files.Open(r.Context(), file, offset, length)
		if err != nil {
			return nil, err
		}
		return &extending{body, conn, s.Now}, nil
	})
	return missingFile(err)
}

// missingFile is the answer for a file whose bytes are gone; other errors stay
// as they are.
func missingFile(err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return fault.New(fault.NotFound, "There is no such file.").Because(err)
	}
	return err
}

// extending reads a file for a client that may take long, as long as it takes
// some of it now and then.
type extending struct {
	io.ReadCloser
	conn *http.ResponseController
	now  func() time.Time
}

func (e *extending) Read(p []byte) (int, error) {
	_ = e.conn.SetWriteDeadline(e.now().Add(bodyGrace)) // a connection without deadlines has none to move
	return e.ReadCloser.Read(p)
}
