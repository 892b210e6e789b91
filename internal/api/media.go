package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"time"

	"atelier/internal/blob"
	"atelier/internal/fault"
	"atelier/internal/httpd"
	"atelier/internal/library"
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
	if _, err := s.Blobs.Stat(r.Context(), f.Key); err != nil {
		if errors.Is(err, blob.ErrNotFound) {
			return fault.New(fault.NotFound, "There is no such file.").Because(err)
		}
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
	body := &stored{ctx: r.Context(), blobs: s.Blobs, file: f, conn: http.NewResponseController(w), now: s.Now}
	defer body.close()
	http.ServeContent(w, r, "", time.Time{}, body)
	return body.err
}

// stored is a file of the store as http.ServeContent reads it. What is read
// from its start to its end is compared with its hash, and the last of it is
// kept back where they differ: a damaged file never arrives whole.
type stored struct {
	ctx   context.Context
	blobs blob.Store
	file  library.File
	conn  *http.ResponseController
	now   func() time.Time

	at   int64
	body io.ReadCloser
	sum  hash.Hash // of all before at, nil where a part was left out
	err  error
}

func (b *stored) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.at
	case io.SeekEnd:
		offset += b.file.Size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start")
	}
	b.close()
	b.at, b.sum = offset, nil
	return offset, nil
}

func (b *stored) Read(p []byte) (int, error) {
	if b.at >= b.file.Size {
		return 0, io.EOF
	}
	if b.body == nil {
		body, _, err := b.blobs.Open(b.ctx, b.file.Key, b.at, -1)
		if err != nil {
			return 0, b.fail(err)
		}
		b.body = body
		if b.at == 0 && b.file.SHA256 != "" {
			b.sum = sha256.New()
		}
	}
	_ = b.conn.SetWriteDeadline(b.now().Add(bodyGrace)) // as long as it is taken, it goes on
	n, err := b.body.Read(p)
	if b.sum != nil {
		b.sum.Write(p[:n])
	}
	b.at += int64(n)
	if b.at == b.file.Size && b.sum != nil && hex.EncodeToString(b.sum.Sum(nil)) != b.file.SHA256 {
		return 0, b.fail(fmt.Errorf("the file %s is damaged: its hash is not what it was", b.file.Key))
	}
	if errors.Is(err, io.EOF) && b.at < b.file.Size {
		return n, b.fail(fmt.Errorf("the file %s is damaged: it is %d bytes and should be %d", b.file.Key, b.at, b.file.Size))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, b.fail(err)
	}
	return n, nil
}

func (b *stored) fail(err error) error {
	if b.ctx.Err() == nil { // a client that left is no error of ours
		b.err = err
	}
	return err
}

func (b *stored) close() {
	if b.body != nil {
		b.body.Close()
		b.body = nil
	}
}
