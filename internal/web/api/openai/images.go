package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/openaimap"
	"atelier/internal/file/blob"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/runwait"
	"atelier/internal/web/httpd"
)

// The values of response_format of images.
const (
	formatURL    = "url"
	formatBase64 = "b64_json"
)

func (h *Handler) generateImages(w http.ResponseWriter, r *http.Request) error {
	return h.createImages(w, r, openaimap.Generations, "image_generation")
}

func (h *Handler) editImages(w http.ResponseWriter, r *http.Request) error {
	return h.createImages(w, r, openaimap.Edits, "image_edit")
}

func (h *Handler) varyImage(w http.ResponseWriter, r *http.Request) error {
	return h.createImages(w, r, openaimap.Variations, "")
}

// imageOptions are the parameters of a request that say how to respond.
type imageOptions struct {
	format   string // url or b64_json
	isStream bool
	previews int64 // the largest number of previews in a stream
}

// maxPreviews is the largest number of previews that a client can ask for.
const maxPreviews = 3

// newerParameters are the parameters of models that always return b64_json.
// Clients that send them expect it without asking for it.
var newerParameters = []string{"background", "input_fidelity", "moderation", "output_compression", "output_format", "partial_images", "stream"}

// newerQualities are the values of quality of these models.
var newerQualities = []string{"auto", "high", "low", "medium"}

// readOptions reads the parameters that say how to respond.
func (o *imageOptions) readOptions(one *request) (err error) {
	if o.format, err = one.readText("response_format"); err != nil {
		return err
	}
	switch o.format {
	case formatURL, formatBase64:
	case "":
		o.format = formatURL
		quality, _ := one.Parameters["quality"].(string)
		if slices.ContainsFunc(newerParameters, func(name string) bool { return one.Parameters[name] != nil }) || slices.Contains(newerQualities, quality) {
			o.format = formatBase64
		}
	default:
		return fault.New(fault.Invalid, "response_format must be url or b64_json.").On("response_format")
	}
	if o.isStream, err = one.readBoolean("stream"); err != nil {
		return err
	}
	n, err := one.readInteger("partial_images")
	if err != nil {
		return err
	}
	if n != nil {
		o.previews = *n
	}
	if o.previews < 0 || o.previews > maxPreviews {
		return fault.New(fault.Invalid, fmt.Sprintf("partial_images must be between 0 and %d.", maxPreviews)).On("partial_images")
	}
	return nil
}

// createImages serves the endpoints that make pictures. event is the beginning
// of the names of events in a stream; "" means that the endpoint has none.
func (h *Handler) createImages(w http.ResponseWriter, r *http.Request, e openaimap.Endpoint, event string) error {
	var options imageOptions
	_, _, created, err := h.createRun(w, r, e, func(one *request, _ *openaimap.Mapping) error { return options.readOptions(one) })
	if err != nil {
		return err
	}
	if options.isStream && event != "" {
		return h.streamImages(w, r, created.Run.ID, event, options)
	}
	rec, err := h.awaitRun(w, r, created.Run.ID, nil)
	if err != nil {
		return err
	}
	return h.sendImages(w, r, rec, options)
}

// awaitRun waits for the end of a run and returns an error if it has no results.
func (h *Handler) awaitRun(w http.ResponseWriter, r *http.Request, id string, see func(generation.Record) error) (generation.Record, error) {
	// The response begins after the end of the run.
	_ = http.NewResponseController(w).SetWriteDeadline(h.Now().Add(h.Waiter.Limit + writeGrace)) // fails only on connections without deadlines
	rec, err := h.Waiter.Wait(r.Context(), runwait.Client{
		Call:     rest.CallOf(r),
		Stopping: httpd.RecordOf(r.Context()).Stopping,
		KeepRun:  h.KeepRuns || r.Header.Get(keepHeader) == "true",
		Grace:    runwait.RepeatGrace,
		See:      see,
	}, id)
	if err != nil {
		return rec, err
	}
	return rec, endError(rec)
}

// usage is the price of a run, in tokens of this service.
type usage struct {
	InputTokens  int64        `json:"input_tokens"`
	OutputTokens int64        `json:"output_tokens"`
	TotalTokens  int64        `json:"total_tokens"`
	Details      usageDetails `json:"input_tokens_details"`
}

type usageDetails struct {
	TextTokens  int64 `json:"text_tokens"`
	ImageTokens int64 `json:"image_tokens"`
}

func usageOf(rec generation.Record) usage {
	return usage{OutputTokens: rec.TokensCharged, TotalTokens: rec.TokensCharged}
}

// imagesHead is the beginning of a response with pictures.
type imagesHead struct {
	Created      int64  `json:"created"`
	Size         string `json:"size,omitempty"`
	OutputFormat string `json:"output_format,omitempty"`
	Usage        usage  `json:"usage"`
}

// sendImages responds with the pictures of a run. The bytes of the pictures are
// encoded while they are sent, so that large ones need no memory.
func (h *Handler) sendImages(w http.ResponseWriter, r *http.Request, rec generation.Record, o imageOptions) error {
	head := imagesHead{Created: rec.Created.Unix(), Usage: usageOf(rec)}
	if len(rec.Outputs) > 0 {
		head.Size = sizeOf(rec.Outputs[0])
		head.OutputFormat = formatOf(rec.Outputs[0].MimeType)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if o.format == formatURL {
		return h.sendURLs(w, r, rec, text)
	}

	w.Header().Set("Content-Type", "application/json")
	rest.VaryByCaller(w.Header())
	out := httpd.NewDeadlineWriter(w, h.Now, writeGrace)
	if _, err := fmt.Fprintf(out, `%s,"data":[`, text[:len(text)-1]); err != nil {
		return err
	}
	for i, result := range rec.Outputs {
		opening := `{"b64_json":"`
		if i > 0 {
			opening = `,` + opening
		}
		if _, err := io.WriteString(out, opening); err != nil {
			return err
		}
		if err := h.encodeFile(r, out, result); err != nil {
			return err
		}
		if _, err := io.WriteString(out, `"}`); err != nil {
			return err
		}
	}
	_, err = io.WriteString(out, `]}`)
	return err
}

// sendURLs responds with the addresses of the pictures of a run.
func (h *Handler) sendURLs(w http.ResponseWriter, r *http.Request, rec generation.Record, head []byte) error {
	type image struct {
		URL *string `json:"url"`
	}
	all := []image{}
	for _, o := range rec.RunJSON(h.Links, rest.PrincipalOf(r).PersonID).Outputs {
		all = append(all, image{o.URL})
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	rest.VaryByCaller(w.Header())
	rest.Send(w, http.StatusOK, head[:len(head)-1], []byte(`,"data":`), data, []byte(`}`))
	return nil
}

// encodeFile writes the bytes of a result in base64.
func (h *Handler) encodeFile(r *http.Request, out io.Writer, result run.Output) error {
	file, err := h.openFile(r, result)
	if err != nil {
		return err
	}
	defer file.Close()
	encoder := base64.NewEncoder(base64.StdEncoding, out)
	if _, err := io.Copy(encoder, file); err != nil {
		return err
	}
	return encoder.Close()
}

// openFile opens the file of a result.
func (h *Handler) openFile(r *http.Request, result run.Output) (io.ReadCloser, error) {
	if result.Expired {
		return nil, fault.New(fault.NotFound, "The result of this run was deleted.")
	}
	return blob.OpenVerified(r.Context(), h.Blobs, blob.File{Key: result.Blob, Size: result.Size, SHA256: result.SHA256})
}

func sizeOf(o run.Output) string {
	if o.Width == 0 || o.Height == 0 {
		return ""
	}
	return fmt.Sprintf("%dx%d", o.Width, o.Height)
}

// formatOf returns the name of a MIME type in the OpenAI API, or "" if it has
// none.
func formatOf(mimeType string) string { return formatNames[mimeType] }

var formatNames = map[string]string{"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp"}
