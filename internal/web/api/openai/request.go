package openai

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/openaimap"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/filebody"
	"atelier/internal/web/api/newrun"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

// request is a request that runs a model, as it was read from its body.
type request struct {
	openaimap.Request
	endpoint  openaimap.Endpoint
	canonical []byte // the parameters in a form that is equal for equivalent requests
}

// pictureParameters are the parameters whose values are files, and the number
// of the request's field that each of them fills.
var pictureParameters = map[string]bool{"image": true, "images": true, "input_reference": true, "mask": true}

// readRequest reads the body of a request. Its files are read into q.
func (h *Handler) readRequest(w http.ResponseWriter, r *http.Request, q *newrun.Request, e openaimap.Endpoint) (*request, error) {
	one := &request{endpoint: e, Request: openaimap.Request{Parameters: map[string]any{}}}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/json":
		err = h.readJSON(w, r, one)
	case err == nil && kind == "multipart/form-data":
		err = h.readForm(w, r, q, one)
	default:
		err = fault.New(fault.UnsupportedMediaType, "Send the body as application/json, or as multipart/form-data with files.")
	}
	if err != nil {
		return nil, err
	}
	one.canonical, err = json.Marshal([]any{one.Parameters, one.Pictures, one.Mask}, json.Deterministic(true))
	return one, err
}

// readJSON reads a JSON body.
func (h *Handler) readJSON(w http.ResponseWriter, r *http.Request, one *request) error {
	body, err := httpd.ReadBody(http.MaxBytesReader(w, r.Body, h.JSON.Bytes))
	if err != nil {
		return err
	}
	if err := httpd.CheckJSON(body, h.JSON.Depth); err != nil {
		return err
	}
	if jsontext.Value(body).Kind() != '{' {
		return rest.InvalidBody().Field("body", "Must be an object.")
	}
	one.Parameters = rest.ReadValue(jsontext.NewDecoder(bytes.NewReader(body))).(map[string]any)
	for name := range pictureParameters {
		value := one.Parameters[name]
		delete(one.Parameters, name)
		if value == nil {
			continue
		}
		if err := one.addReferences(name, value); err != nil {
			return err
		}
	}
	return nil
}

// addReferences adds pictures that a JSON body names.
func (one *request) addReferences(name string, value any) error {
	if list, ok := value.([]any); ok && name != "mask" {
		for i, item := range list {
			if err := one.addReference(name, name+"."+strconv.Itoa(i), item); err != nil {
				return err
			}
		}
		return nil
	}
	return one.addReference(name, name, value)
}

// uploadID matches the id of an upload; ids of library items contain a colon.
var uploadID = regexp.MustCompile(`^[0-9A-Za-z]{20}$`)

// addReference adds one picture that a JSON body names by its id: a text, or an
// object with file_id.
func (one *request) addReference(name, path string, value any) error {
	object, _ := value.(map[string]any)
	id, isText := value.(string)
	if object != nil {
		id, isText = object["file_id"].(string)
		if object["image_url"] != nil {
			return fault.New(fault.Invalid, "Pictures by URL are not supported. Send the picture as a file of a multipart/form-data body, or upload it and send its id as file_id.").On(path)
		}
	}
	if !isText {
		return fault.New(fault.Invalid, "Must be a file of a multipart/form-data body, or an object with the file_id of an upload or a library item.").On(path)
	}
	kind := catalog.LibraryRef
	if uploadID.MatchString(id) {
		kind = catalog.UploadRef
	}
	one.addPicture(name, map[string]any{"kind": string(kind), "id": id})
	return nil
}

func (one *request) addPicture(name string, reference any) {
	if name == "mask" {
		one.Mask = reference
		return
	}
	one.Pictures = append(one.Pictures, reference)
}

// readForm reads a multipart/form-data body.
func (h *Handler) readForm(w http.ResponseWriter, r *http.Request, q *newrun.Request, one *request) error {
	left := h.JSON.Bytes // for all texts together
	return filebody.EachPart(r, func(part *multipart.Part) error {
		name, _, _ := strings.Cut(part.FormName(), "[")
		nested := strings.TrimPrefix(part.FormName(), name)
		if pictureParameters[name] && (part.FileName() != "" || nested == "") {
			index := len(q.Digests)
			if err := q.ReadFile(part, name); err != nil {
				return err
			}
			one.addPicture(name, map[string]any{"kind": string(catalog.Multipart), "file_index": int64(index)})
			return nil
		}
		text, err := io.ReadAll(http.MaxBytesReader(w, io.NopCloser(part), left))
		if err != nil {
			return rest.InPart(filebody.TooLarge(h.JSON.Bytes), name)
		}
		left -= int64(len(text))
		return one.addText(name, nested, string(text))
	})
}

// addText adds a part of a form that is no file. nested is what follows the name
// of the parameter, such as "[]" or "[file_id]".
func (one *request) addText(name, nested, text string) error {
	switch {
	case pictureParameters[name] && nested == "[file_id]":
		return one.addReference(name, name, text)
	case pictureParameters[name]:
		return one.addReference(name, name, map[string]any{"image_url": text})
	case nested == "[]":
		list, _ := one.Parameters[name].([]any)
		one.Parameters[name] = append(list, text)
		return nil
	case nested != "":
		return fault.New(fault.Invalid, "Send objects as JSON text.").On(name + nested)
	case one.Parameters[name] != nil:
		return fault.New(fault.Invalid, "Send this parameter only once.").On(name)
	}
	one.Parameters[name] = text
	return nil
}

// readText returns a parameter that must be text. It returns "" if the parameter
// is missing.
func (one *request) readText(name string) (string, error) {
	value := one.Parameters[name]
	text, ok := value.(string)
	if value != nil && !ok {
		return "", fault.New(fault.Invalid, name+" must be text.").On(name)
	}
	return text, nil
}

// readInteger returns a parameter that must be a whole number, or nil if it is
// missing.
func (one *request) readInteger(name string) (*int64, error) {
	switch value := one.Parameters[name].(type) {
	case nil:
		return nil, nil
	case int64:
		return &value, nil
	case string:
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return &n, nil
		}
	}
	return nil, fault.New(fault.Invalid, name+" must be a whole number.").On(name)
}

// readBoolean returns a parameter that must be true or false. A missing
// parameter is false.
func (one *request) readBoolean(name string) (bool, error) {
	switch value := one.Parameters[name]; value {
	case nil, false, "false":
		return false, nil
	case true, "true":
		return true, nil
	}
	return false, fault.New(fault.Invalid, name+" must be true or false.").On(name)
}

// fingerprint returns a hash of the request.
func (one *request) fingerprint(who principal.Principal, digests []string) string {
	return newrun.Fingerprint(append([]string{"POST /v1/" + string(one.endpoint), who.AccountID, who.Credential.ID, string(one.canonical)}, digests...)...)
}

// retryHeader is the header in which the official clients count how often they
// have sent a request before. They send no idempotency key.
const retryHeader = "X-Stainless-Retry-Count"

// isRepeat reports whether the client says that it has sent the request before.
func isRepeat(header http.Header) bool {
	n, err := strconv.Atoi(header.Get(retryHeader))
	return err == nil && n > 0
}

// runHeader is the header of responses with the id of the run. The official
// clients show it in errors and results.
const runHeader = "X-Request-Id"

// createRun reads a request, creates its run and sets the header with its id.
func (h *Handler) createRun(w http.ResponseWriter, r *http.Request, e openaimap.Endpoint, check func(*request, *openaimap.Mapping) error) (*request, *openaimap.Mapping, generation.Created, error) {
	fail := func(err error) (*request, *openaimap.Mapping, generation.Created, error) {
		return nil, nil, generation.Created{}, err
	}
	q, err := h.NewRuns.Begin(w, r)
	if err != nil {
		return fail(err)
	}
	defer q.End()
	one, err := h.readRequest(w, r, q, e)
	if err != nil {
		q.DiscardFiles()
		w.Header().Set("Connection", "close") // the rest of the body is not read
		return fail(err)
	}
	m, err := h.mapRequest(r, one, check)
	if err != nil {
		q.DiscardFiles()
		return fail(err)
	}
	created, err := q.Create(func() (generation.Draft, error) { return one.draft(r, m, q.Key == "") }, one.fingerprint(rest.PrincipalOf(r), q.Digests))
	if err != nil {
		return fail(err)
	}
	w.Header().Set(runHeader, created.Run.ID)
	return one, m, created, nil
}

// mapRequest finds the model of a request and checks the parameters about the
// response.
func (h *Handler) mapRequest(r *http.Request, one *request, check func(*request, *openaimap.Mapping) error) (*openaimap.Mapping, error) {
	name, err := one.readText("model")
	if err != nil {
		return nil, err
	}
	view, err := h.viewOf(r)
	if err != nil {
		return nil, err
	}
	m, err := chooseModel(view, one.endpoint, name)
	if err != nil {
		return nil, err
	}
	return m, check(one, m)
}

// draft converts the request to the draft of a run.
func (one *request) draft(r *http.Request, m *openaimap.Mapping, mayRepeat bool) (d generation.Draft, err error) {
	d = generation.Draft{
		ToolID:    m.Tool.ID,
		ToolHash:  m.Tool.Hash,
		Plugin:    plugin,
		MayRepeat: mayRepeat,
		IsRepeat:  mayRepeat && isRepeat(r.Header),
	}
	if d.NumResults, err = one.readInteger("n"); err != nil {
		return d, err
	}
	if d.NumResults != nil && *d.NumResults > 1 && m.Tool.NumResults == nil {
		return d, fault.New(fault.Invalid, "n must be 1: the model "+m.Tool.Slug+" makes one result in one run.").On("n")
	}
	d.Inputs, err = m.Inputs(one.Request)
	return d, err
}
