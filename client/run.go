package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
)

// RunRequest describes a run to start.
type RunRequest struct {
	// Tool is the slug or the id of the tool.
	Tool string
	// FieldsHash is the tool_fields_hash of the form that Inputs were made for.
	// "" lets the client read the current one: then nobody notices that the
	// tool has changed since.
	FieldsHash string
	// Inputs are the values by field key: texts, numbers, booleans, lists,
	// sizes (SizeInput) and files. A file is a File, which is sent with the
	// request, or a value of UploadInput or LibraryInput; a field of several
	// pictures takes a list of them.
	Inputs map[string]any
	// Results is the number of results; 0 means one, or the tool's minimum.
	Results int64
	// WebhookURL receives an event when the run has ended; "" for none.
	WebhookURL string
	// Metadata is a JSON object of yours that the run's record repeats.
	Metadata map[string]any
	// Plugin is the calling app, shown in reports.
	Plugin string
	// RetryOf is an earlier run of the same flow, or "". Its finished steps with
	// the same inputs are taken over and cost nothing again.
	RetryOf string
	// Key is the idempotency key. "" lets Create make one, which it keeps over
	// its retries. Set it to repeat a Create after the end of the program: the
	// same request with the same key is the same run for 24 hours.
	Key string
	// Progress is told how much of the files was sent; it starts anew when the
	// request is repeated.
	Progress Progress
}

// UploadInput returns the input value that refers to an upload by its id.
func UploadInput(id string) UploadRef { return UploadRef{Kind: "UPLOAD_REF", ID: id} }

// LibraryInput returns the input value that refers to a result of an earlier
// run by its id.
func LibraryInput(id string) LibraryRef { return LibraryRef{Kind: "LIBRARY_REF", ID: id} }

// Run is a run, as the service last described it. Wait and Refresh ask for a
// newer state.
type Run struct {
	RunRecord

	client *Client
}

// HasEnded reports whether the run has succeeded, failed or been cancelled.
func (r *Run) HasEnded() bool { return r.Status != RunStatusPending }

// Err returns nil for a run that is pending or has succeeded, a *RunFailure for
// one that has failed, and ErrCancelled for one that was cancelled.
func (r *Run) Err() error {
	switch {
	case r.Status == RunStatusCancelled:
		return ErrCancelled
	case r.Status == RunStatusFailed && r.Error != nil:
		return r.Error
	case r.Status == RunStatusFailed:
		return errors.New("the run failed")
	}
	return nil
}

// Wait waits until the run has ended and returns its final state; see
// RunsCalls.Wait.
func (r *Run) Wait(ctx context.Context, w Watch) (*Run, error) {
	if r.HasEnded() {
		return r, nil
	}
	return r.client.Runs.Wait(ctx, r.RequestID, w)
}

// Refresh returns the current state of the run.
func (r *Run) Refresh(ctx context.Context) (*Run, error) { return r.client.Runs.Get(ctx, r.RequestID) }

// Cancel cancels the run and returns its state.
func (r *Run) Cancel(ctx context.Context) (*Run, error) {
	return r.client.Runs.Cancel(ctx, r.RequestID)
}

// Create starts a run (POST /generate) and returns it at once. However often
// the request is repeated, it starts one run: all attempts carry the same
// idempotency key. The returned run has the fields that the service knows at
// the start: RequestID, Status, RetryAfterSeconds, EstimatedSeconds, Created.
func (g *RunsCalls) Create(ctx context.Context, r RunRequest) (*Run, error) {
	draft, err := g.prepareDraft(ctx, r)
	if err != nil {
		return nil, err
	}
	defer draft.closeFiles()

	req := &request{
		method: http.MethodPost,
		path:   "/generate",
		header: http.Header{},
		team:   true,
		keyed:  true,
	}
	if r.Key != "" {
		req.header.Set("Idempotency-Key", r.Key)
	}
	if len(draft.files) == 0 {
		req.json = draft.body
	} else if err := draft.setForm(req, r.Progress); err != nil {
		return nil, err
	}
	made, err := callJSON[runCreated](ctx, g.client, req)
	if err != nil {
		return nil, err
	}
	return g.newRun(&RunRecord{
		RequestID:         made.RequestID,
		Status:            RunStatusPending,
		RetryAfterSeconds: made.RetryAfterSeconds,
		EstimatedSeconds:  made.EstimatedSeconds,
		Created:           made.Created,
		ToolID:            draft.body.ToolID,
		Metadata:          draft.body.Metadata,
		Outputs:           []Output{},
	}), nil
}

// PreviewCost returns the price of a run without starting it (POST
// /generate/preview-cost). Inputs with a File are left out: the price does not
// depend on them, and the service takes no files here.
func (g *RunsCalls) PreviewCost(ctx context.Context, r RunRequest) (*CostPreview, error) {
	r.Inputs = maps.Clone(r.Inputs)
	maps.DeleteFunc(r.Inputs, func(_ string, value any) bool { return hasFile(value) })
	draft, err := g.prepareDraft(ctx, r)
	if err != nil {
		return nil, err
	}
	defer draft.closeFiles()
	return callJSON[CostPreview](ctx, g.client, &request{
		method:     http.MethodPost,
		path:       "/generate/preview-cost",
		json:       draft.body,
		team:       true,
		repeatable: true,
	})
}

// Get returns the current state of a run (GET /generate/{request_id}). With
// RunIncludeInputs the record has the run's inputs.
func (g *RunsCalls) Get(ctx context.Context, id string, include ...RunInclude) (*Run, error) {
	query := url.Values{}
	for _, one := range include {
		query.Set("include", string(one))
	}
	record, err := callJSON[RunRecord](ctx, g.client, &request{
		method: http.MethodGet,
		path:   runPath(id),
		query:  query,
		team:   true,
	})
	if err != nil {
		return nil, err
	}
	return g.newRun(record), nil
}

// Cancel cancels a run (POST /generate/{request_id}/cancel) and returns its
// state. A running run ends as soon as its engine stops; Wait waits for that.
func (g *RunsCalls) Cancel(ctx context.Context, id string) (*Run, error) {
	record, err := callJSON[RunRecord](ctx, g.client, &request{
		method:     http.MethodPost,
		path:       runPath(id) + "/cancel",
		team:       true,
		repeatable: true,
	})
	if err != nil {
		return nil, err
	}
	return g.newRun(record), nil
}

// AllRuns iterates over the runs of all pages of List, with their methods.
func (g *RunsCalls) AllRuns(ctx context.Context, p RunsListParams) iter.Seq2[*Run, error] {
	return func(yield func(*Run, error) bool) {
		for record, err := range g.All(ctx, p) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(g.newRun(&record), nil) {
				return
			}
		}
	}
}

func (g *RunsCalls) newRun(record *RunRecord) *Run { return &Run{RunRecord: *record, client: g.client} }

func runPath(id string) string { return "/generate/" + url.PathEscape(id) }

// preparedDraft is a request for a run with its files.
type preparedDraft struct {
	body  runDraft
	files []*openFile
}

// prepareDraft finds the tool, encodes the inputs and opens the files.
func (g *RunsCalls) prepareDraft(ctx context.Context, r RunRequest) (*preparedDraft, error) {
	if r.Tool == "" {
		return nil, errors.New("a run needs a tool")
	}
	d := &preparedDraft{body: runDraft{ToolID: r.Tool, ToolFieldsHash: r.FieldsHash}}
	if r.FieldsHash == "" || !idPattern.MatchString(r.Tool) {
		tool, err := g.client.Tools.Find(ctx, r.Tool)
		if err != nil {
			return nil, err
		}
		d.body.ToolID = tool.ID
		if r.FieldsHash == "" {
			d.body.ToolFieldsHash = tool.ToolFieldsHash
		}
	}
	if r.Results > 0 {
		d.body.NumResults = &r.Results
	}
	if r.WebhookURL != "" {
		d.body.WebhookURL = &r.WebhookURL
	}
	if r.Plugin != "" {
		d.body.Plugin = &r.Plugin
	}
	if r.RetryOf != "" {
		d.body.RetryOf = &r.RetryOf
	}
	var err error
	if r.Metadata != nil {
		if d.body.Metadata, err = json.Marshal(r.Metadata); err != nil {
			return nil, fmt.Errorf("encode the metadata: %w", err)
		}
	}
	if err := d.encodeInputs(r.Inputs); err != nil {
		d.closeFiles()
		return nil, err
	}
	return d, nil
}

// encodeInputs encodes the inputs. Files in them become references to the parts
// of the form, in the order of the field keys, so that a repeated request is
// the same.
func (d *preparedDraft) encodeInputs(inputs map[string]any) error {
	values := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		value, err := d.convertInput(inputs[key])
		if err != nil {
			return fmt.Errorf("input %s: %w", key, err)
		}
		values[key] = value
	}
	var err error
	if d.body.Inputs, err = json.Marshal(values); err != nil {
		return fmt.Errorf("encode the inputs: %w", err)
	}
	return nil
}

func (d *preparedDraft) convertInput(value any) (any, error) {
	switch v := value.(type) {
	case File:
		f, err := v.open()
		if err != nil {
			return nil, err
		}
		d.files = append(d.files, f)
		return MultipartFile{Kind: "MULTIPART", FileIndex: int64(len(d.files) - 1)}, nil
	case *File:
		return d.convertInput(*v)
	case []File:
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		return d.convertInput(list)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var err error
			if list[i], err = d.convertInput(v[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return value, nil
}

// hasFile reports whether a value is a File or a list with one.
func hasFile(value any) bool {
	switch v := value.(type) {
	case File, *File, []File:
		return true
	case []any:
		return slices.ContainsFunc(v, hasFile)
	}
	return false
}

func (d *preparedDraft) closeFiles() {
	for _, f := range d.files {
		_ = f.close()
	}
}

// setForm makes the body of a request a form with the draft and its files. The
// files are read while they are sent.
func (d *preparedDraft) setForm(r *request, progress Progress) error {
	payload, err := json.Marshal(d.body)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	part, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="payload"`},
		"Content-Type":        {"application/json"},
	})
	if err != nil {
		return err
	}
	if _, err := part.Write(payload); err != nil {
		return err
	}
	var total int64
	ends := make([]int, len(d.files)) // where in text the content of each file belongs
	for i, f := range d.files {
		if _, err := form.CreateFormFile("files", f.name); err != nil {
			return err
		}
		ends[i] = text.Len()
		total += f.size
	}
	if err := form.Close(); err != nil {
		return err
	}

	r.header.Set("Content-Type", form.FormDataContentType())
	r.length = int64(text.Len()) + total
	r.body = func() io.Reader {
		var parts []io.Reader
		start := 0
		done := int64(0)
		for i, f := range d.files {
			s := f.section(0, f.size)
			s.done = done
			s.total = total
			s.progress = progress
			parts = append(parts, bytes.NewReader(text.Bytes()[start:ends[i]]), s)
			start = ends[i]
			done += f.size
		}
		return io.MultiReader(append(parts, bytes.NewReader(text.Bytes()[start:]))...)
	}
	return nil
}
