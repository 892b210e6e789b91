package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// tusVersion is the version of the tus protocol, https://tus.io.
const tusVersion = "1.0.0"

// maxPatchBytes is the size of one PATCH. A node that is killed loses at most
// what one PATCH has sent, so that a smaller one repeats less.
const maxPatchBytes = 4 << 20

// resumable is an upload in parts.
type resumable struct {
	client   *Client
	file     *openFile
	path     string // below /api/v2
	offset   int64
	mayExist bool   // an earlier call may have created the upload
	uploadID string // of the finished upload; "" before
	progress Progress
}

// ResumableSupport is the part of the tus protocol that the service offers.
type ResumableSupport struct {
	Versions   []string
	Extensions []string
	MaxBytes   int64    // size of the largest file
	Checksums  []string // algorithms of Upload-Checksum
}

// DescribeResumable returns what the service offers for resumable uploads, and
// the size of the largest file (OPTIONS /uploads/resumable). Create does not
// need it.
func (g *UploadsCalls) DescribeResumable(ctx context.Context) (*ResumableSupport, error) {
	var support *ResumableSupport
	r := &request{method: http.MethodOptions, path: "/uploads/resumable", public: true}
	err := g.client.send(ctx, r, func(res *http.Response) error {
		size, err := strconv.ParseInt(res.Header.Get("Tus-Max-Size"), 10, 64)
		if err != nil {
			return &finalError{fmt.Errorf("the service sent no Tus-Max-Size: %w", err)}
		}
		support = &ResumableSupport{
			Versions:   splitList(res.Header.Get("Tus-Version")),
			Extensions: splitList(res.Header.Get("Tus-Extension")),
			MaxBytes:   size,
			Checksums:  splitList(res.Header.Get("Tus-Checksum-Algorithm")),
		}
		return nil
	})
	return support, err
}

// splitList splits a header with commas.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// createResumably uploads a file with the tus protocol.
func (g *UploadsCalls) createResumably(ctx context.Context, f *openFile, u UploadRequest) (*Upload, error) {
	s := &resumable{client: g.client, file: f, progress: u.Progress}
	if u.Key == "" {
		upload, err := g.transfer(ctx, s, NewKey())
		if err != nil {
			s.abandon(ctx)
		}
		return upload, err
	}
	s.mayExist = true
	upload, err := g.transfer(ctx, s, u.Key)
	if !HasCode(err, CodeNotFound) {
		return upload, err
	}
	// An earlier call with this key has finished the upload, and the file was
	// deleted since. Free the key.
	s.abandon(ctx)
	again := &resumable{client: g.client, file: f, progress: u.Progress, mayExist: true}
	return g.transfer(ctx, again, u.Key)
}

// transfer creates an upload, or finds that of an earlier call with the same
// key, and sends what is missing.
func (g *UploadsCalls) transfer(ctx context.Context, s *resumable, key string) (*Upload, error) {
	if err := s.create(ctx, key); err != nil {
		return nil, err
	}
	if s.mayExist {
		if err := s.askOffset(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.sendAll(ctx); err != nil {
		return nil, err
	}
	return g.Get(ctx, s.uploadID)
}

// abandonTime limits the attempt to delete an upload that failed: the caller
// waits for it.
const abandonTime = 3 * time.Second

// abandon deletes an upload that nobody will continue, but not the file of a
// finished one. Until it expires it would count against the storage of the
// account, and against the unfinished uploads that a person may have.
func (s *resumable) abandon(ctx context.Context) {
	if s.path == "" {
		return // it was not created
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	defer cancel()
	r := &request{
		method: http.MethodDelete,
		path:   s.path,
		header: http.Header{"Tus-Resumable": {tusVersion}},
		team:   true,
	}
	_ = s.client.sendOnce(ctx, r, func(*http.Response) error { return nil }) // it expires if this fails
}

// create asks for the address of a new upload. All attempts with one key return
// the same one.
func (s *resumable) create(ctx context.Context, key string) error {
	r := &request{
		method: http.MethodPost,
		path:   "/uploads/resumable",
		header: http.Header{
			"Tus-Resumable":   {tusVersion},
			"Upload-Length":   {strconv.FormatInt(s.file.size, 10)},
			"Upload-Metadata": {"filename " + base64.StdEncoding.EncodeToString([]byte(s.file.name))},
			"Idempotency-Key": {key},
		},
		team:  true,
		keyed: true,
	}
	return s.client.send(ctx, r, func(res *http.Response) error {
		path, err := pathOfLocation(res.Header.Get("Location"))
		if err != nil {
			return &finalError{err}
		}
		s.path = path
		return nil
	})
}

// pathOfLocation returns the path of an upload below /api/v2. Its host is not
// used: the service may know itself by another name than its callers.
func pathOfLocation(location string) (string, error) {
	u, err := url.Parse(location)
	if err != nil {
		return "", fmt.Errorf("the Location of the upload is invalid: %w", err)
	}
	_, id, found := strings.Cut(u.EscapedPath(), "/uploads/resumable/")
	if !found || id == "" || strings.Contains(id, "/") {
		return "", fmt.Errorf("the Location of the upload is invalid: %q", location)
	}
	return "/uploads/resumable/" + id, nil
}

// sendAll sends the rest of the file. After a failure it asks how much has
// arrived.
func (s *resumable) sendAll(ctx context.Context) error {
	tries := s.client.retry.newAttempts()
	for s.uploadID == "" {
		err := s.sendPart(ctx)
		if err == nil {
			tries.restart()
			continue
		}
		if ctx.Err() != nil {
			return contextError(ctx, err)
		}
		if !mayResume(err) {
			return err
		}
		if err := tries.wait(ctx, err); err != nil {
			return err
		}
		before := s.offset
		if err := s.askOffset(ctx); err != nil {
			return err
		}
		if s.offset > before {
			tries.restart()
		}
	}
	return nil
}

// mayResume reports whether an upload can go on after a failed PATCH: also
// after an answer that it is at another offset, or that another PATCH is in
// progress, which is one of ours whose connection broke.
func mayResume(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok && (e.Status == http.StatusConflict || e.Status == http.StatusLocked) {
		return true
	}
	return mayRepeat(err, true)
}

// sendPart sends the next part of the file with one PATCH.
func (s *resumable) sendPart(ctx context.Context) error {
	size := min(maxPatchBytes, s.file.size-s.offset)
	start := s.offset
	r := &request{
		method: http.MethodPatch,
		path:   s.path,
		header: http.Header{
			"Tus-Resumable": {tusVersion},
			"Content-Type":  {"application/offset+octet-stream"},
			"Upload-Offset": {strconv.FormatInt(start, 10)},
		},
		body: func() io.Reader {
			part := s.file.section(start, size)
			part.progress = s.progress
			return part
		},
		length: size,
		team:   true,
	}
	return s.client.sendOnce(ctx, r, s.readState)
}

// askOffset asks how much of the file has arrived.
func (s *resumable) askOffset(ctx context.Context) error {
	r := &request{
		method: http.MethodHead,
		path:   s.path,
		header: http.Header{"Tus-Resumable": {tusVersion}},
		team:   true,
	}
	return s.client.send(ctx, r, s.readState)
}

// readState reads the offset, and the id of a finished upload.
func (s *resumable) readState(res *http.Response) error {
	s.uploadID = res.Header.Get("Upload-Id")
	offset, err := strconv.ParseInt(res.Header.Get("Upload-Offset"), 10, 64)
	switch {
	case err != nil && s.uploadID != "":
		s.offset = s.file.size
		return nil
	case err != nil:
		return &finalError{fmt.Errorf("the service sent no Upload-Offset: %w", err)}
	case offset < 0 || offset > s.file.size:
		return &finalError{fmt.Errorf("the service has %d bytes of a file of %d bytes", offset, s.file.size)}
	case offset == s.file.size && s.uploadID == "" && res.Request.Method == http.MethodPatch:
		return &finalError{errors.New("the service has the whole file, but sent no Upload-Id")}
	}
	s.offset = offset
	return nil
}
