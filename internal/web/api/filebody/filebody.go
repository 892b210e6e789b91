package api

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/base/fault"
	"atelier/internal/file/ingest"
	"atelier/internal/run/generation"
	"atelier/internal/web/httpd"
)

// maxParts bounds how many parts a request may have, those included that say
// nothing to us.
const maxParts = 64

// partHead is how many bytes may stand before the content of a part: its
// headers, and what is between the parts.
const partHead = 64 << 10

// The pace of a large body: this long to begin with, and then no fewer than this
// many bytes a second.
const (
	bodyGrace = 30 * time.Second
	bodyRate  = 64 << 10
)

// largeBody reads a request body that may take longer to arrive than small ones,
// as long as it keeps the pace, and ends it at a limit. Its errors are faults.
type largeBody struct {
	io.ReadCloser
	conn   *http.ResponseController
	now    func() time.Time
	most   int64         // bytes
	waited time.Duration // for the sender
	n      int64
	err    error // after which nothing is read
}

// takeLarge gives a request's body the time that its size needs, and its answer
// the usual time after that. The whole body may be as large as Limits.RequestBytes,
// to the byte, whether its length was announced or not.
func (s *Server) takeLarge(w http.ResponseWriter, r *http.Request) {
	r.Body = &largeBody{
		ReadCloser: r.Body,
		conn:       http.NewResponseController(w),
		now:        s.Now,
		most:       s.Limits.RequestBytes,
	}
}

func (b *largeBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	// Between reads we are busy, perhaps for long: that is not the sender's time.
	start := b.now()
	until := start.Add(bodyGrace + time.Duration(b.n/bodyRate)*time.Second - b.waited)
	// A connection without deadlines has none to move.
	_ = b.conn.SetReadDeadline(until)
	_ = b.conn.SetWriteDeadline(until.Add(bodyGrace))
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	b.waited += b.now().Sub(start)

	switch {
	case b.n > b.most:
		b.err = tooLarge(b.most)
		return 0, b.err
	case errors.Is(err, io.EOF):
		// The server now waits on the connection for the client to leave. A
		// deadline set after this would end that wait and cancel the request.
		b.err = io.EOF
	case err != nil:
		b.err = httpd.NotWhole(err)
		return n, b.err
	}
	return n, err
}

// tooLarge is the fault for a request whose whole body is too large.
func tooLarge(most int64) error {
	return fault.New(fault.PayloadTooLarge, "The request is too large.").With("limit_bytes", most).With("path", "body")
}

// between reads a multipart body. What stands between the contents of parts
// is kept in memory while it is read, and so it is bounded.
type between struct {
	io.ReadCloser
	left int64 // below zero: as much as there is
	err  error // of the body: readers of parts may make another of it
}

func (b *between) Read(p []byte) (n int, err error) {
	switch {
	case b.left < 0:
		n, err = b.ReadCloser.Read(p)
	case b.left == 0:
		err = fault.New(fault.Invalid, "The headers of a part are too long.").Field("body", "A part has headers that are too long.")
	default:
		n, err = b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// next gives the next part. All of the one before must have been read.
func (b *between) next(parts *multipart.Reader) (*multipart.Part, error) {
	b.left = partHead
	part, err := parts.NextRawPart()
	b.left = -1
	return part, err
}

// heard remembers how reading failed, so that a sender who stopped is not
// taken for a store that failed.
type heard struct {
	io.Reader
	err error
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		h.err = err
	}
	return n, err
}

// form is what a create request brought.
type form struct {
	payload []byte
	files   []ingest.Taken
	digests []string // of the files as they were sent
}

// fingerprint is what equal requests have in common: account, payload and
// files, whatever the order of names, the spaces and the boundaries.
func (f *form) fingerprint(accountID string) (string, error) {
	canonical, err := jsontext.AppendFormat(nil, f.payload, jsontext.ReorderRawObjects(true))
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, part := range append([]string{"POST " + prefix + "/generate", accountID, string(canonical)}, f.digests...) {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// receive reads the body of a create request. Files go to the store as they
// come, or only through a hash where their run is known already.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, known bool, room int64) (f form, err error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/json":
		f.payload, err = httpd.ReadJSON(http.MaxBytesReader(w, r.Body, s.Limits.JSONBytes))
		return f, err
	case err == nil && kind == "multipart/form-data":
		return s.receiveParts(w, r, known, room)
	}
	return f, fault.New(fault.UnsupportedMediaType, "Send the body as application/json, or as multipart/form-data with files.")
}

func (s *Server) receiveParts(w http.ResponseWriter, r *http.Request, known bool, room int64) (f form, err error) {
	defer func() {
		if err != nil {
			s.Intake.Drop(r.Context(), f.files...)
			f = form{}
		}
	}()
	left := room
	err = eachPart(r, func(part *multipart.Part) (err error) {
		switch part.FormName() {
		case "payload":
			if f.payload != nil {
				return fault.New(fault.Invalid, "The request has two payloads.").Field("payload", "Send one payload.")
			}
			f.payload, err = httpd.ReadJSON(http.MaxBytesReader(w, part, s.Limits.JSONBytes))
			return inPart(err, "payload")
		case "files":
			path := "files." + strconv.Itoa(len(f.digests))
			if most := s.Runs.Settings.InputFiles; len(f.digests) == most {
				return generation.TooManyFiles(most, path)
			}
			n, err := s.receiveFile(r, part, &f, known, left)
			left -= n
			return inPart(err, path)
		}
		return discard(part)
	})
	if err != nil {
		return f, err
	}
	if f.payload == nil {
		return f, fault.New(fault.Invalid, "The request has no payload.").Field("payload", "This part is required.")
	}
	return f, nil
}

// eachPart calls read with each part of a multipart request, and then reads the
// body to its end. Each call has to read its whole part.
func eachPart(r *http.Request, read func(*multipart.Part) error) error {
	body := &between{ReadCloser: r.Body}
	r.Body = body
	err := body.each(r, read)
	if body.err != nil {
		return body.err
	}
	return err
}

func (b *between) each(r *http.Request, read func(*multipart.Part) error) error {
	parts, err := r.MultipartReader()
	if err != nil {
		return fault.New(fault.Invalid, "This is no multipart request.").Field("body", "The boundary is missing.").Because(err)
	}
	for range maxParts {
		part, err := b.next(parts)
		if errors.Is(err, io.EOF) {
			return discard(b)
		}
		if err != nil {
			return brokenPart(err)
		}
		if err := read(part); err != nil {
			return err
		}
	}
	switch _, err := b.next(parts); {
	case errors.Is(err, io.EOF):
		return discard(b)
	case err != nil:
		return brokenPart(err)
	}
	return fault.New(fault.Invalid, "The request has too many parts.").Field("body", "There are too many parts.")
}

// discard reads what is for somebody else.
func discard(r io.Reader) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return brokenPart(err)
	}
	return nil
}

// brokenPart is why a multipart body could not be read on. Faults come from the
// body itself; everything else is its parts, since the body arrived.
func brokenPart(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	why := "It ends before its last boundary."
	if _, malformed := errors.AsType[textproto.ProtocolError](err); malformed {
		why = "The headers of a part can't be read."
	}
	return fault.New(fault.Invalid, "This is no multipart request.").Field("body", why).Because(err)
}

// receiveFile takes one file, of which no more than left bytes may be stored, and
// tells how many it had.
func (s *Server) receiveFile(r *http.Request, part *multipart.Part, f *form, known bool, left int64) (int64, error) {
	most := min(s.Limits.FileBytes, left)
	if known {
		h := sha256.New()
		n, err := io.Copy(h, io.LimitReader(part, most+1))
		if err != nil {
			return 0, brokenPart(err)
		}
		if n > most {
			return 0, s.oversized(most)
		}
		f.digests = append(f.digests, hex.EncodeToString(h.Sum(nil)))
		return n, nil
	}

	// Nothing shows a file that came with a run, so a thumbnail would be made for
	// nobody; and decoding takes most of the time that a picture takes. That is left
	// to the tool, after the answer.
	taken, err := s.takeFile(r, part, ingest.Want{
		MaxBytes: most,
		Declared: part.Header.Get("Content-Type"),
		Bare:     true,
		Turn:     s.turn(r),
	})
	if err != nil {
		return 0, err
	}
	f.files = append(f.files, taken)
	f.digests = append(f.digests, taken.RawSHA256)
	return taken.RawSize, nil
}

// takeFile takes the bytes of a file in.
func (s *Server) takeFile(r *http.Request, body io.Reader, want ingest.Want) (ingest.Taken, error) {
	from := &heard{Reader: body}
	taken, err := s.Intake.Take(r.Context(), from, want)
	switch {
	case fault.Is(err, fault.UploadTooLarge):
		return taken, s.oversized(want.MaxBytes)
	case from.err != nil:
		return taken, brokenPart(from.err)
	}
	return taken, err
}

// oversized is for a file of more than most bytes: it is too large by itself, or
// for what room the account has left.
func (s *Server) oversized(most int64) error {
	if most < s.Limits.FileBytes {
		return outOfRoom(most)
	}
	return fault.New(fault.UploadTooLarge, "A file is too large.").With("limit_bytes", s.Limits.FileBytes)
}
