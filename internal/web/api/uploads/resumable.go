package uploads

import (
	"crypto/sha1" //nolint:gosec // the tus protocol requires it; it detects accidents, not attacks
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"atelier/internal/base/fault"
	"atelier/internal/file/resumable"
	"atelier/internal/web/access"
	"atelier/internal/web/api/filebody"
	"atelier/internal/web/api/rest"
)

// ResumableHandler serves resumable uploads by version 1.0.0 of the tus
// protocol (https://tus.io/protocols/resumable-upload).
type ResumableHandler struct {
	Resumable    *resumable.Service
	Files        *filebody.Receiver
	MaxKeyLength int // of an Idempotency-Key
}

const (
	tusVersion    = "1.0.0"
	tusExtensions = "creation,expiration,termination,checksum"
	tusChecksums  = "sha1,sha256"

	resumablePath = "/api/v2/uploads/resumable"

	// maxMetadata is the maximum length of the Upload-Metadata header.
	maxMetadata = 4096
)

// Routes returns the routes of the operations on resumable uploads.
func (h *ResumableHandler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("OPTIONS "+resumablePath, access.Open, h.describeUploads),
		rest.NewRoute("POST "+resumablePath, access.ForAccount, withVersion(h.createUpload)),
		rest.NewRoute("HEAD "+resumablePath+"/{resumable_id}", access.ForAccount, withVersion(h.getUpload)),
		rest.NewRoute("PATCH "+resumablePath+"/{resumable_id}", access.ForAccount, withVersion(h.appendUpload)),
		rest.NewRoute("DELETE "+resumablePath+"/{resumable_id}", access.ForAccount, withVersion(h.deleteUpload)),
	}
}

// withVersion refuses requests of clients that do not speak our version of the
// protocol, and names the version in the response.
func withVersion(next rest.HandlerFunc) rest.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Tus-Resumable", tusVersion)
		if values := r.Header.Values("Tus-Resumable"); len(values) != 1 || values[0] != tusVersion {
			w.Header().Set("Tus-Version", tusVersion)
			w.Header().Set("Connection", "close") // the body is not read
			return fault.New(fault.PreconditionFailed, "A Tus-Resumable header with the version "+tusVersion+" is required.")
		}
		if err := rest.CallOf(r).Params.Err(); err != nil {
			return err
		}
		return next(w, r)
	}
}

// describeUploads serves OPTIONS /api/v2/uploads/resumable: it names the parts
// of the protocol that the service offers.
func (h *ResumableHandler) describeUploads(w http.ResponseWriter, _ *http.Request) error {
	header := w.Header()
	header.Set("Tus-Resumable", tusVersion)
	header.Set("Tus-Version", tusVersion)
	header.Set("Tus-Extension", tusExtensions)
	header.Set("Tus-Max-Size", strconv.FormatInt(h.Resumable.Settings.MaxBytes, 10))
	header.Set("Tus-Checksum-Algorithm", tusChecksums)
	return rest.NoContent(w)
}

// createUpload serves POST /api/v2/uploads/resumable: it begins an upload.
func (h *ResumableHandler) createUpload(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	draft, err := h.readDraft(r.Header)
	if err != nil {
		return err
	}
	if err := h.Files.Space(); err != nil {
		return err
	}

	u, replayed, err := h.Resumable.Create(r.Context(), call.Principal, draft)
	if err != nil {
		return rest.InPart(err, "file")
	}
	location := resumablePath + "/" + u.ID
	if call.Principal.TeamID != "" {
		location += "?team_id=" + url.QueryEscape(call.Principal.TeamID)
	}
	w.Header().Set("Location", location)
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	setState(w.Header(), u)
	w.WriteHeader(http.StatusCreated)
	return nil
}

// readDraft reads the headers of a creation, and reports all problems in them.
func (h *ResumableHandler) readDraft(header http.Header) (d resumable.Draft, err error) {
	problems := &rest.Params{}
	length, ok := readNumber(header, "Upload-Length")
	if !ok || length < 1 {
		problems.AddProblem("Upload-Length", "The size of the file in bytes is required.")
	}
	if d.Key, err = rest.ReadIdempotencyKey(header, h.MaxKeyLength); err != nil {
		problems.AddProblem("Idempotency-Key", "Must have 1 to "+strconv.Itoa(h.MaxKeyLength)+" visible ASCII characters.")
	}

	metadata := header.Values("Upload-Metadata")
	d.Metadata = strings.Join(metadata, ",")
	d.Length = length
	d.Name, ok = fileName(d.Metadata)
	if len(metadata) > 0 && !ok {
		problems.AddProblem("Upload-Metadata", "Must have pairs of a name and a value in base64, with commas between them.")
	}
	if len(d.Metadata) > maxMetadata {
		problems.AddProblem("Upload-Metadata", "Must have at most "+strconv.Itoa(maxMetadata)+" characters.")
	}
	return d, problems.Err()
}

// readNumber returns the value of a header that has one number of decimal
// digits.
func readNumber(header http.Header, name string) (n int64, ok bool) {
	values := header.Values(name)
	if len(values) != 1 {
		return 0, false
	}

	parsed, err := strconv.ParseUint(values[0], 10, 63)
	return int64(parsed), err == nil
}

// fileName returns the value of "filename" in an Upload-Metadata header. It
// returns false if the header is malformed.
func fileName(metadata string) (name string, ok bool) {
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(metadata, ",") {
		key, encoded, _ := strings.Cut(strings.Trim(pair, " \t"), " ")
		value, err := base64.StdEncoding.DecodeString(encoded)
		hasBreak := strings.ContainsAny(encoded, "\r\n") // which the decoder ignores, and a header cannot have
		if key == "" || seen[key] || err != nil || hasBreak || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return "", false
		}
		seen[key] = true
		if key == "filename" {
			name = string(value)
		}
	}
	return name, true
}

// setState sets the headers that describe an upload.
func setState(header http.Header, u resumable.Upload) {
	header.Set("Upload-Offset", strconv.FormatInt(u.Offset, 10))
	if u.Finished() {
		header.Set("Upload-Id", u.UploadID)
		return
	}
	header.Set("Upload-Expires", u.Expires.UTC().Format(http.TimeFormat))
}

// getUpload serves HEAD /api/v2/uploads/resumable/{resumable_id}: it returns
// how many bytes have arrived.
func (h *ResumableHandler) getUpload(w http.ResponseWriter, r *http.Request) error {
	u, err := h.Resumable.Get(r.Context(), rest.PrincipalOf(r), r.PathValue("resumable_id"))
	if err != nil {
		return err
	}
	setState(w.Header(), u)
	w.Header().Set("Upload-Length", strconv.FormatInt(u.Length, 10))
	if u.Metadata != "" {
		w.Header().Set("Upload-Metadata", u.Metadata)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// appendUpload serves PATCH /api/v2/uploads/resumable/{resumable_id}: it stores
// the next bytes of the file.
func (h *ResumableHandler) appendUpload(w http.ResponseWriter, r *http.Request) error {
	u, err := h.appendBody(w, r)
	if err != nil {
		w.Header().Set("Connection", "close") // the rest of the body is not read
		if fault.Is(err, fault.UploadOffsetConflict) {
			setState(w.Header(), u)
		}
		return rest.InPart(err, "file")
	}
	setState(w.Header(), u)
	return rest.NoContent(w)
}

func (h *ResumableHandler) appendBody(w http.ResponseWriter, r *http.Request) (resumable.Upload, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/offset+octet-stream" {
		err = fault.New(fault.UnsupportedMediaType, "The Content-Type must be application/offset+octet-stream.")
		return resumable.Upload{}, rest.InPart(err, "body")
	}

	problems := &rest.Params{}
	offset, ok := readNumber(r.Header, "Upload-Offset")
	if !ok {
		problems.AddProblem("Upload-Offset", "The place of the first byte in the file is required.")
	}
	checksum, ok := readChecksum(r.Header.Values("Upload-Checksum"))
	if !ok {
		problems.AddProblem("Upload-Checksum", "Must be sha1 or sha256, a space, and the checksum in base64.")
	}
	if err := problems.Err(); err != nil {
		return resumable.Upload{}, err
	}
	if err := h.Files.Space(); err != nil {
		return resumable.Upload{}, err
	}

	h.Files.ExtendDeadlines(w, r, math.MaxInt64) // no more is read than the upload lacks
	return h.Resumable.Append(r.Context(), rest.PrincipalOf(r), r.PathValue("resumable_id"), resumable.Chunk{
		Offset:   offset,
		Length:   r.ContentLength,
		Body:     r.Body,
		Checksum: checksum,
	})
}

// readChecksum returns the checksum in an Upload-Checksum header, or nil if
// there is none. It returns false if the header is malformed.
func readChecksum(values []string) (c *resumable.Checksum, ok bool) {
	if len(values) == 0 {
		return nil, true
	}

	algorithm, encoded, _ := strings.Cut(values[0], " ")
	newHash := map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New}[algorithm]
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if len(values) > 1 || newHash == nil || err != nil {
		return nil, false
	}

	c = &resumable.Checksum{Hash: newHash(), Sum: sum}
	return c, len(sum) == c.Hash.Size()
}

// deleteUpload serves DELETE /api/v2/uploads/resumable/{resumable_id}: it
// abandons an upload.
func (h *ResumableHandler) deleteUpload(w http.ResponseWriter, r *http.Request) error {
	if err := h.Resumable.Delete(r.Context(), rest.PrincipalOf(r), r.PathValue("resumable_id")); err != nil {
		return err
	}
	return rest.NoContent(w)
}
