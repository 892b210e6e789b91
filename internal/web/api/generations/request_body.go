package generations

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/base/fault"
	"atelier/internal/file/ingest"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/filebody"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

// requestBody is the body of a request that creates a run.
type requestBody struct {
	payload []byte
	files   []ingest.StoredFile
	digests []string // SHA-256 of each file as it was sent
}

// computeFingerprint returns a hash of the account, the payload and the files
// of a create request. It does not depend on the order of JSON names, on white
// space and on multipart boundaries, so it is equal for equivalent requests.
func (b *requestBody) computeFingerprint(accountID string) (string, error) {
	canonical, err := jsontext.AppendFormat(nil, b.payload, jsontext.ReorderRawObjects(true))
	if err != nil {
		return "", err
	}

	h := sha256.New()
	for _, part := range append([]string{"POST /api/v2/generate", accountID, string(canonical)}, b.digests...) {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readBody reads the body of a create request. Files are stored as they
// arrive; if the run already exists (isKnown), they are only hashed.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, isKnown bool, room int64) (body requestBody, err error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/json":
		body.payload, err = httpd.ReadJSON(http.MaxBytesReader(w, r.Body, h.JSON.Bytes))
		return body, err
	case err == nil && kind == "multipart/form-data":
		return h.readParts(w, r, isKnown, room)
	}
	return body, fault.New(fault.UnsupportedMediaType, "Send the body as application/json, or as multipart/form-data with files.")
}

func (h *Handler) readParts(w http.ResponseWriter, r *http.Request, isKnown bool, room int64) (body requestBody, err error) {
	defer func() {
		if err != nil {
			h.Files.Intake.DiscardFiles(r.Context(), body.files...)
			body = requestBody{}
		}
	}()

	left := room
	err = filebody.EachPart(r, func(part *multipart.Part) (err error) {
		switch part.FormName() {
		case "payload":
			if body.payload != nil {
				return fault.New(fault.Invalid, "The request has two payloads.").Field("payload", "Must be sent only once.")
			}
			body.payload, err = httpd.ReadJSON(http.MaxBytesReader(w, part, h.JSON.Bytes))
			return rest.InPart(err, "payload")
		case "files":
			path := "files." + strconv.Itoa(len(body.digests))
			if maxFiles := h.Runs.Settings.InputFiles; len(body.digests) == maxFiles {
				return generation.TooManyFiles(maxFiles, path)
			}
			n, err := h.readFile(r, part, &body, isKnown, left)
			left -= n
			return rest.InPart(err, path)
		}
		return filebody.Discard(part)
	})
	if err != nil {
		return body, err
	}
	if body.payload == nil {
		return body, fault.New(fault.Invalid, "The request has no payload.").Field("payload", "This part is required.")
	}
	return body, nil
}

// readFile reads one file of the request, of at most left bytes, and returns
// its size in bytes.
func (h *Handler) readFile(r *http.Request, part *multipart.Part, body *requestBody, isKnown bool, left int64) (int64, error) {
	maxBytes := min(h.Files.MaxFileBytes, left)
	if isKnown {
		sum, size, err := h.Files.HashFile(part, maxBytes)
		if err != nil {
			return 0, err
		}
		body.digests = append(body.digests, sum)
		return size, nil
	}

	// Decoding a picture would take most of the time of the request. These
	// files are never displayed, so they get no thumbnail (NoThumbnail), and
	// the tool decodes them after the response.
	taken, err := h.Files.ReceiveFile(r, part, ingest.Options{
		MaxBytes:     maxBytes,
		DeclaredType: part.Header.Get("Content-Type"),
		NoThumbnail:  true,
	})
	if err != nil {
		return 0, err
	}
	body.files = append(body.files, taken)
	body.digests = append(body.digests, taken.RawSHA256)
	return taken.RawSize, nil
}
