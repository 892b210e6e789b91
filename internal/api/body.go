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
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/fault"
	"atelier/internal/generation"
	"atelier/internal/httpd"
	"atelier/internal/intake"
)

// framing is what the parts of a multipart request may add to its files.
const framing = 1 << 20

// maxParts bounds how many parts a request may have, those included that say
// nothing to us.
const maxParts = 64

// partHead is how many bytes may stand before the content of a part: its
// headers, and what is between the parts.
const partHead = 64 << 10

// How slowly a large body may come: this long to begin with, and then no less
// than this many bytes a second.
const (
	bodyGrace = 30 * time.Second
	bodyRate  = 64 << 10
)

// patient reads a body that may take longer than small ones do, as long as it
// keeps coming.
type patient struct {
	io.ReadCloser
	conn   *http.ResponseController
	now    func() time.Time
	waited time.Duration // for the sender
	n      int64
}

// take gives a request's body the time that its size needs, and its answer the
// usual time after that.
func (s *Server) take(w http.ResponseWriter, r *http.Request) {
	r.Body = &patient{ReadCloser: r.Body, conn: http.NewResponseController(w), now: s.Now}
}

func (p *patient) Read(b []byte) (int, error) {
	// Between reads we are busy, perhaps for long: that is not the sender's time.
	start := p.now()
	until := start.Add(bodyGrace + time.Duration(p.n/bodyRate)*time.Second - p.waited)
	// A connection without deadlines has none to move.
	_ = p.conn.SetReadDeadline(until)
	_ = p.conn.SetWriteDeadline(until.Add(bodyGrace))
	n, err := p.ReadCloser.Read(b)
	p.n += int64(n)
	p.waited += p.now().Sub(start)
	return n, err
}

// between reads a multipart body. What stands between the contents of parts
// is kept in memory while it is read, and so it is bounded.
type between struct {
	io.ReadCloser
	left int64 // below zero: as much as there is
}

func (b *between) Read(p []byte) (int, error) {
	if b.left < 0 {
		return b.ReadCloser.Read(p)
	}
	if b.left == 0 {
		return 0, fault.New(fault.Invalid, "The headers of a part are too long.").Field("body", "A part has headers that are too long.")
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
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
	files   []intake.Taken
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

func (s *Server) tooLarge() error {
	return fault.New(fault.PayloadTooLarge, "The request is too large.").With("limit_bytes", s.Limits.RequestBytes)
}

func (s *Server) receiveParts(w http.ResponseWriter, r *http.Request, known bool, room int64) (f form, err error) {
	defer func() {
		if err != nil {
			s.Intake.Drop(r.Context(), f.files...)
			f = form{}
		}
	}()
	body := &between{ReadCloser: http.MaxBytesReader(w, r.Body, s.Limits.RequestBytes+s.Limits.JSONBytes+framing)}
	r.Body = body
	parts, err := r.MultipartReader()
	if err != nil {
		return f, fault.New(fault.Invalid, "This is no multipart request.").Field("body", "The boundary is missing.").Because(err)
	}
	left := min(s.Limits.RequestBytes, room)
	for n := 0; ; n++ {
		part, err := body.next(parts)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f, s.brokenPart(err)
		}
		if n == maxParts {
			return f, fault.New(fault.Invalid, "The request has too many parts.").Field("body", "There are too many parts.")
		}
		switch part.FormName() {
		case "payload":
			if f.payload != nil {
				return f, fault.New(fault.Invalid, "The request has two payloads.").Field("payload", "Send one payload.")
			}
			f.payload, err = httpd.ReadJSON(http.MaxBytesReader(w, part, s.Limits.JSONBytes))
		case "files":
			if most := s.Runs.Settings.InputFiles; len(f.digests) == most {
				return f, generation.TooManyFiles(most)
			}
			if left, err = s.receiveFile(r, part, &f, known, left); err != nil {
				tooLarge := fault.Is(err, fault.UploadTooLarge) || fault.Is(err, fault.PayloadTooLarge)
				if room < s.Limits.RequestBytes && tooLarge && left < s.Limits.FileBytes {
					err = outOfRoom(left)
				}
				return f, err
			}
		default: // it is for somebody else
			_, err = io.Copy(io.Discard, part)
		}
		if err != nil {
			return f, s.brokenPart(err)
		}
	}
	if f.payload == nil {
		return f, fault.New(fault.Invalid, "The request has no payload.").Field("payload", "This part is required.")
	}
	return f, nil
}

// brokenPart is why a multipart body could not be read on.
func (s *Server) brokenPart(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return s.tooLarge()
	}
	if _, malformed := errors.AsType[textproto.ProtocolError](err); malformed {
		return fault.New(fault.Invalid, "This is no multipart request.").Field("body", "The headers of a part can't be read.").Because(err)
	}
	return httpd.NotWhole(err)
}

// receiveFile takes one file and says how many bytes are left for others.
func (s *Server) receiveFile(r *http.Request, part *multipart.Part, f *form, known bool, left int64) (int64, error) {
	most := min(s.Limits.FileBytes, left)
	if known {
		h := sha256.New()
		n, err := io.Copy(h, io.LimitReader(part, most+1))
		if err != nil {
			return left, s.brokenPart(err)
		}
		if n > most {
			return left, s.oversized(most)
		}
		f.digests = append(f.digests, hex.EncodeToString(h.Sum(nil)))
		return left - n, nil
	}
	from := &heard{Reader: part}
	one, err := s.Intake.Take(r.Context(), from, intake.Want{MaxBytes: most, Declared: part.Header.Get("Content-Type"), Turn: s.turn(r)})
	if fault.Is(err, fault.UploadTooLarge) {
		err = s.oversized(most)
	}
	if from.err != nil {
		return left, s.brokenPart(from.err)
	}
	if err != nil {
		return left, atFile(err, len(f.digests))
	}
	f.files = append(f.files, one)
	f.digests = append(f.digests, one.RawSHA256)
	return left - one.RawSize, nil
}

// oversized is for a file that is too large, by itself or with the others.
func (s *Server) oversized(most int64) error {
	if most < s.Limits.FileBytes {
		return s.tooLarge()
	}
	return fault.New(fault.UploadTooLarge, "A file is too large.").With("limit_bytes", s.Limits.FileBytes)
}
