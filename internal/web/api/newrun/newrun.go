// Package newrun receives requests that create runs. The interfaces of the
// service describe a run in different ways; they share what is here: the
// idempotency key, the refusals before a large body is read, the files of the
// request, and the run that an earlier request with the same key created.
package newrun

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"

	"atelier/internal/base/fault"
	"atelier/internal/file/ingest"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/api/filebody"
	"atelier/internal/web/api/rest"
)

// smallBody is the size in bytes above which the rate limit is checked before
// the request body is read.
const smallBody = 1 << 20

// Receiver receives requests that create runs.
type Receiver struct {
	Runs  *generation.Service
	Files *filebody.Receiver
	// MaxKeyLength is the maximum length of the Idempotency-Key header.
	MaxKeyLength int
}

// Request is a request that creates a run.
type Request struct {
	// Key is the idempotency key of the request, or "".
	Key string
	// Used is the earlier use of the key. It is nil if there is none.
	Used *run.Key
	// Files are the stored files of the request. It is empty if Used is set.
	Files []ingest.StoredFile
	// Digests are the SHA-256 of the files as they were sent.
	Digests []string

	receiver  *Receiver
	principal principal.Principal
	http      *http.Request
	left      int64 // bytes of files that may still arrive
	end       func()
}

// Begin reads the headers of a request and refuses it if it is known from them
// that no run can be created. The caller must call End.
func (rc *Receiver) Begin(w http.ResponseWriter, r *http.Request) (*Request, error) {
	call := rest.CallOf(r)
	key, err := rest.ReadIdempotencyKey(r.Header, rc.MaxKeyLength)
	if err != nil {
		return nil, err
	}
	q := &Request{
		Key:       key,
		receiver:  rc,
		principal: call.Principal,
		http:      r,
		left:      math.MaxInt64,
		end:       rc.Runs.ExpectCreate(call.Principal.PersonID),
	}
	if err := q.checkHeaders(w); err != nil {
		q.End()
		return nil, err
	}
	rc.Files.ExtendDeadlines(w, r, rc.Files.MaxRequestBytes)
	return q, nil
}

// checkHeaders finds the earlier use of the key and checks what is known before
// the body is read.
func (q *Request) checkHeaders(w http.ResponseWriter) (err error) {
	if q.Key != "" {
		if q.Used, err = q.receiver.Runs.FindKey(q.http.Context(), q.principal.PersonID, q.Key); err != nil {
			return err
		}
	}
	if err := q.refuseEarly(); err != nil {
		w.Header().Set("Connection", "close")
		return err
	}
	if q.Used != nil {
		return nil
	}
	if q.left, err = q.checkRoom(); err != nil {
		w.Header().Set("Connection", "close")
		return rest.InPart(err, "body")
	}
	return nil
}

// refuseEarly checks the headers of a request with a large body before the body
// is read, so that a client does not send the whole body of a request that is
// refused.
func (q *Request) refuseEarly() error {
	length := q.http.ContentLength
	maxBytes := q.receiver.Files.MaxRequestBytes
	switch {
	case length >= 0 && length <= smallBody:
		return nil
	case length > maxBytes:
		return filebody.TooLarge(maxBytes)
	case q.Used != nil:
		return nil
	}
	return q.receiver.Runs.CheckRate(q.http.Context(), q.principal.PersonID)
}

// checkRoom returns how many bytes of files the request may contain. It returns
// an error for a multipart request that is larger, before its body is read. A
// JSON body contains no files; whether the account has storage left for results
// is checked when the run is created.
func (q *Request) checkRoom() (room int64, err error) {
	if kind, _, _ := mime.ParseMediaType(q.http.Header.Get("Content-Type")); kind == "multipart/form-data" {
		return q.receiver.Files.CheckRoom(q.http, q.principal.AccountID)
	}
	return math.MaxInt64, q.receiver.Files.Space()
}

// ReadFile reads the next file of the request, and stores it unless the run
// already exists. path names the file in errors.
func (q *Request) ReadFile(part *multipart.Part, path string) error {
	if limit := q.receiver.Runs.Settings.InputFiles; len(q.Digests) == limit {
		return generation.TooManyFiles(limit, path)
	}
	size, err := q.readFile(part)
	q.left -= size
	return rest.InPart(err, path)
}

// readFile reads one file, and returns its size in bytes.
func (q *Request) readFile(part *multipart.Part) (int64, error) {
	files := q.receiver.Files
	maxBytes := min(files.MaxFileBytes, q.left)
	if q.Used != nil {
		sum, size, err := files.HashFile(part, maxBytes)
		if err != nil {
			return 0, err
		}
		q.Digests = append(q.Digests, sum)
		return size, nil
	}

	// Decoding a picture would take most of the time of the request. These
	// files are never displayed, so they get no thumbnail (NoThumbnail), and
	// the tool decodes them after the response.
	taken, err := files.ReceiveFile(q.http, part, ingest.Options{
		MaxBytes:     maxBytes,
		DeclaredType: part.Header.Get("Content-Type"),
		NoThumbnail:  true,
	})
	if err != nil {
		return 0, err
	}
	q.Files = append(q.Files, taken)
	q.Digests = append(q.Digests, taken.RawSHA256)
	return taken.RawSize, nil
}

// DiscardFiles deletes the files of a request that creates no run.
func (q *Request) DiscardFiles() {
	q.receiver.Files.Intake.DiscardFiles(q.http.Context(), q.Files...)
	q.Files = nil
	q.Digests = nil
}

// Create creates the run that the draft describes, or returns the run that the
// first request with the same key created. It deletes the files that no run
// uses.
func (q *Request) Create(draft func() (generation.Draft, error), fingerprint string) (generation.Created, error) {
	created, err := q.create(draft, fingerprint)
	hadFiles := len(q.Files) > 0
	if rest.IsRefusal(err) || created.Replayed {
		q.DiscardFiles()
	}
	if fault.Is(err, fault.StorageQuotaExceeded) && hadFiles {
		err = rest.InPart(err, "files")
	}
	return created, err
}

func (q *Request) create(draft func() (generation.Draft, error), fingerprint string) (generation.Created, error) {
	ctx := q.http.Context()
	if q.Used != nil {
		return q.receiver.Runs.ReplayCreate(ctx, q.principal.PersonID, *q.Used, fingerprint)
	}
	d, err := draft()
	if err != nil {
		return generation.Created{}, err
	}
	d.Principal = q.principal
	d.Files = q.Files
	d.Key = q.Key
	d.Fingerprint = fingerprint
	return q.receiver.Runs.CreateRun(ctx, d)
}

// Fingerprint returns a hash of the parts of a request, by which a repeated
// request is recognized.
func Fingerprint(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// End ends the request. It can be called more than once.
func (q *Request) End() { q.end() }

// FilePath returns the path of the next file in errors, such as files.2.
func (q *Request) FilePath(name string) string { return name + "." + strconv.Itoa(len(q.Digests)) }
