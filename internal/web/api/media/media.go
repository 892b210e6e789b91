// Package media serves files by their signed URLs.
package media

import (
	"context"
	"errors"
	"fmt"
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

// Handler serves files by their signed URLs.
type Handler struct {
	Library *library.Library
	Links   library.URLSigner
	Blobs   blob.Store
	// Presigner creates URLs of the S3 server, to which readers of whole files
	// are redirected. If it is nil, this node sends the files itself.
	Presigner *blob.Presigner
	Files     *blob.Verifier
	Now       func() time.Time
	// AppOrigin is the origin of the app's pages, whose scripts may read the
	// files. It is empty if the files have the same origin.
	AppOrigin string
}

// Routes returns the routes of signed URLs.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /media/{kind}/{id}/{variant}", access.Open, h.getMedia),
		rest.NewRoute("GET /media/{kind}/{id}/{variant}/{name}", access.Open, h.getMedia),
	}
}

// getMedia serves GET /media/{kind}/{id}/{variant}/{name}: it returns a file,
// or the ranges of it that a Range header names, or the URL at which the S3
// server does so. Its headers prevent browsers from running scripts in the
// file.
func (h *Handler) getMedia(w http.ResponseWriter, r *http.Request) error {
	header := w.Header()
	if h.AppOrigin != "" && header.Get("Access-Control-Allow-Origin") == "" {
		header.Set("Access-Control-Allow-Origin", h.AppOrigin)
	}
	grant, err := h.Links.VerifyURL(library.URLKind(r.PathValue("kind")), r.PathValue("id"), r.PathValue("variant"), r.URL.Query())
	if err != nil {
		return err
	}
	f, err := h.Library.FindFile(r.Context(), grant)
	if err != nil {
		return err
	}
	httpd.RecordOf(r.Context()).Reauthorize = func(ctx context.Context) error {
		_, err := h.Library.FindFile(ctx, grant) // returns an error if the file was deleted or the viewer has left the team
		return err
	}

	header.Set("Content-Type", f.MimeType)
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	header.Set("Cross-Origin-Resource-Policy", "cross-origin") // plugins show the files in their own pages
	header.Set("Cache-Control", h.cacheControl(grant))
	disposition := "attachment"
	if f.Inline {
		disposition = "inline"
	}
	header.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": f.Name}))
	if h.Presigner != nil && grant.Variant == library.VariantFile && r.Method == http.MethodGet {
		return h.redirectToStore(w, r, f)
	}
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

// redirectToStore redirects a reader whose access was just checked to the S3
// server. Thumbnails and previews stay at this node: they are small, and
// browsers cache them, whereas each presigned URL is a new one.
func (h *Handler) redirectToStore(w http.ResponseWriter, r *http.Request, f library.File) error {
	header := w.Header()
	address, err := h.Presigner.PresignRead(r.Context(), f.Key, blob.ResponseHeaders{
		ContentType:        f.MimeType,
		ContentDisposition: header.Get("Content-Disposition"),
		CacheControl:       header.Get("Cache-Control"),
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"Content-Type", "Content-Disposition"} { // of the file, not of this response
		header.Del(name)
	}
	header.Set("Cache-Control", "private, no-store") // the next read checks access again
	header.Set("Location", address)
	w.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}

// cacheControl returns the value of the header Cache-Control. Only the browser
// that reads a file may cache it: for a day, but no longer than its URL is
// valid.
func (h *Handler) cacheControl(grant library.SignedURL) string {
	if !grant.IsFinal() {
		return "private, no-store"
	}
	age := min(library.CacheTime, grant.Expires.Sub(h.Links.Now()))
	return fmt.Sprintf("private, max-age=%d, immutable", int64(age/time.Second))
}

// replaceNotFound converts the error for a file that is missing from the file
// store to NOT_FOUND. It returns other errors unchanged.
func replaceNotFound(err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return fault.New(fault.NotFound, "There is no such file.").Because(err)
	}
	return err
}

// deadlineReader extends the write deadline of the connection with each read,
// so that a slow client can take as long as it needs while it keeps reading.
type deadlineReader struct {
	io.ReadCloser
	conn *http.ResponseController
	now  func() time.Time
}

func (d *deadlineReader) Read(p []byte) (int, error) {
	_ = d.conn.SetWriteDeadline(d.now().Add(filebody.Grace)) // fails only on connections without deadlines
	return d.ReadCloser.Read(p)
}
