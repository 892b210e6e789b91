// Package filebody reads request bodies that contain files: it enforces the
// minimum rate and the maximum size of large bodies, reads the parts of
// multipart bodies, and stores the files.
package filebody

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime"
	"net/http"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/media"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

// Receiver reads the files of requests, validates them and stores them.
type Receiver struct {
	Intake  *ingest.Pipeline
	Library *library.Library
	// Space returns an error while the disk is nearly full, for requests that
	// store files.
	Space           func() error
	MaxFileBytes    int64
	MaxRequestBytes int64
	// DecodeWait is the longest time that a file waits for memory in which to
	// decode it.
	DecodeWait time.Duration
	Now        func() time.Time
}

// formOverhead is the assumed difference in bytes between the length of a
// multipart body and the length of its files.
const formOverhead = 1 << 20

// CheckRoom returns how many more bytes the account can store. It returns an
// error if the Content-Length of the request exceeds that, or if the account
// or the disk is full.
func (rc *Receiver) CheckRoom(r *http.Request, accountID string) (room int64, err error) {
	if err := rc.Space(); err != nil {
		return 0, err
	}

	length := max(r.ContentLength, 1)
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		length = max(r.ContentLength-formOverhead, 1)
	}
	return rc.Library.CheckAvailable(r.Context(), accountID, length)
}

// ReceiveFile validates and stores a file that body contains.
func (rc *Receiver) ReceiveFile(r *http.Request, body io.Reader, want ingest.Options) (ingest.StoredFile, error) {
	want.Decode = turnOf(r, rc.DecodeWait)
	source := &errorReader{Reader: body}
	taken, err := rc.Intake.IngestFile(r.Context(), source, want)
	switch {
	case fault.Is(err, fault.UploadTooLarge):
		return taken, rc.FileTooLarge(want.MaxBytes)
	case source.err != nil:
		return taken, partError(source.err)
	}
	return taken, err
}

// HashFile reads a file without storing it, and returns its SHA-256 and size.
func (rc *Receiver) HashFile(body io.Reader, maxBytes int64) (sum string, size int64, err error) {
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(body, maxBytes+1))
	if err != nil {
		return "", 0, partError(err)
	}
	if n > maxBytes {
		return "", 0, rc.FileTooLarge(maxBytes)
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

// FileTooLarge returns the error for a file of more than maxBytes. The file
// exceeds either the limit for files or the storage that the account has left.
func (rc *Receiver) FileTooLarge(maxBytes int64) error {
	if maxBytes < rc.MaxFileBytes {
		return fault.New(fault.StorageQuotaExceeded, "The account does not have enough storage for this file. Delete files, or ask the operator for more storage.").
			With("reason", "account").With("available_bytes", maxBytes)
	}
	return fault.New(fault.UploadTooLarge, "A file is too large.").With("limit_bytes", rc.MaxFileBytes)
}

// turnOf returns the owner of a request's files and the longest time that the
// files may wait for memory to decode them. The memory is divided fairly between
// owners.
func turnOf(r *http.Request, wait time.Duration) media.DecodeRequest {
	owner := rest.PrincipalOf(r).PersonID
	if owner == "" {
		owner = httpd.AddressKey(httpd.RecordOf(r.Context()).Addr)
	}
	return media.DecodeRequest{Owner: owner, Timeout: wait}
}
