// Package media serves files by their signed addresses.
package media

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
	"atelier/internal/web/access"
	"atelier/internal/web/api/filebody"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

// Handler serves files.
type Handler struct {
	Library *library.Library
	Links   library.URLSigner
	Blobs   blob.Store
	Files   *blob.Verifier
	Now     func() time.Time
}

// Routes lists the addresses of files.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /media/{kind}/{id}/{variant}", access.Open, h.getMedia),
		rest.NewRoute("GET /media/{kind}/{id}/{variant}/{name}", access.Open, h.getMedia),
	}
}

// GET /media/{kind}/{id}/{variant}/{name} returns a file, or the parts of it that
// a Range header names. The headers keep browsers from running any script in it.
func (h *Handler) getMedia(w http.ResponseWriter, r *http.Request) error {
	grant, err := h.Links.VerifyURL(library.URLKind(r.PathValue("kind")), r.PathValue("id"), r.PathValue("variant"), r.URL.Query())
	if err != nil {
		return err
	}
	f, err := h.Library.FindFile(r.Context(), grant)
	if err != nil {
		return err
	}
	httpd.RecordOf(r.Context()).Reauthorize = func(ctx context.Context) error {
		_, err := h.Library.FindFile(ctx, grant) // fails once the file is deleted or the viewer left the team
		return err
	}

	header := w.Header()
	header.Set("Content-Type", f.MimeType)
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	header.Set("Cross-Origin-Resource-Policy", "cross-origin") // plugins show files in their own pages
	header.Set("Cache-Control", "private, no-store")
	disposition := "attachment"
	if f.Inline {
		disposition = "inline"
	}
	header.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": f.Name}))
	if f.SHA256 != "" {
		header.Set("ETag", `"`+f.SHA256+`"`)
	}

	if r.Method == http.MethodHead { // ServeFile does not open the file for HEAD
		if _, err := h.Blobs.Stat(r.Context(), f.Key); err != nil {
			return replaceNotFound(err)
		}
	}
	conn := http.NewResponseController(w)
	file := blob.File{Key: f.Key, Size: f.Size, SHA256: f.SHA256}
	err = httpd.ServeFile(w, r, f.Size, func(offset, length int64) (io.ReadCloser, error) {
		body, err := h.Files.Open(r.Context(), file, offset, length)
		if err != nil {
			return nil, err
		}
		return &deadlineReader{body, conn, h.Now}, nil
	})
	return replaceNotFound(err)
}

// replaceNotFound returns NOT_FOUND for a file whose bytes are gone, and other
// errors unchanged.
func replaceNotFound(err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return fault.New(fault.NotFound, "There is no such file.").Because(err)
	}
	return err
}

// deadlineReader extends the write deadline with each read: a slow client has as
// long as it needs, if it keeps reading.
type deadlineReader struct {
	io.ReadCloser
	conn *http.ResponseController
	now  func() time.Time
}

func (d *deadlineReader) Read(p []byte) (int, error) {
	_ = d.conn.SetWriteDeadline(d.now().Add(filebody.Grace)) // fails only on connections without deadlines
	return d.ReadCloser.Read(p)
}
