package generations

import (
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/base/fault"
	"atelier/internal/web/api/filebody"
	"atelier/internal/web/api/newrun"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

// computeFingerprint returns a hash of the account, the payload and the files
// of a create request. It does not depend on the order of JSON names, on white
// space and on multipart boundaries, so it is equal for equivalent requests.
// digests are the SHA-256 of the files as they were sent.
func computeFingerprint(accountID string, payload []byte, digests []string) (string, error) {
	canonical, err := jsontext.AppendFormat(nil, payload, jsontext.ReorderRawObjects(true))
	if err != nil {
		return "", err
	}
	return newrun.Fingerprint(append([]string{"POST /api/v2/generate", accountID, string(canonical)}, digests...)...), nil
}

// readPayload reads the body of a create request and returns its payload. The
// files of the body are read into q.
func (h *Handler) readPayload(w http.ResponseWriter, r *http.Request, q *newrun.Request) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/json":
		return httpd.ReadBody(http.MaxBytesReader(w, r.Body, h.JSON.Bytes))
	case err == nil && kind == "multipart/form-data":
		return h.readParts(w, r, q)
	}
	return nil, fault.New(fault.UnsupportedMediaType, "Send the body as application/json, or as multipart/form-data with files.")
}

func (h *Handler) readParts(w http.ResponseWriter, r *http.Request, q *newrun.Request) (payload []byte, err error) {
	err = filebody.EachPart(r, func(part *multipart.Part) (err error) {
		switch part.FormName() {
		case "payload":
			if payload != nil {
				return fault.New(fault.Invalid, "The request has two payloads.").Field("payload", "Must be sent only once.")
			}
			payload, err = httpd.ReadBody(http.MaxBytesReader(w, part, h.JSON.Bytes))
			return rest.InPart(err, "payload")
		case "files":
			return q.ReadFile(part, q.FilePath("files"))
		}
		return filebody.Discard(part)
	})
	if err == nil && payload == nil {
		err = fault.New(fault.Invalid, "The request has no payload.").Field("payload", "This part is required.")
	}
	return payload, err
}
