// Package client runs the tools of an Atelier service through its HTTP API,
// /api/v2/. The command "atelier generate" uses this package, and other
// programs can use it too: it needs only the URL of the service and an access
// token.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"
)

// Client sends requests to one Atelier service with the access token of one
// person. It is safe for concurrent use.
type Client struct {
	// URL is the base URL of the service, for example https://atelier.example.
	URL string
	// Token is the access token that authenticates the requests.
	Token string
	// TeamID is the team whose account the requests act for. "" means the
	// person's own account.
	TeamID string
	// HTTP sends the requests; nil means http.DefaultClient.
	HTTP *http.Client
}

// Error is an error response of the service, as returned by the methods of
// Client.
type Error struct {
	Status    int            `json:"-"`
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details"`
	TraceID   string         `json:"trace_id"`
	// RetryAfter is the time to wait before the next attempt, from the
	// Retry-After header. It is 0 if the service requested none.
	RetryAfter time.Duration `json:"-"`
}

func (e *Error) Error() string {
	text := e.Code + ": " + e.Message
	fields, _ := e.Details["fields"].([]any)
	for _, f := range fields {
		if f, ok := f.(map[string]any); ok {
			text += fmt.Sprintf("\n  %v: %v", f["path"], f["message"])
		}
	}
	return text
}

// Tool is a tool of the service's catalog. GetTool fills in Fields, the tool's
// input form; ListTools does not.
type Tool struct {
	ID     string  `json:"id"`
	Slug   string  `json:"slug"` // unique name, for use in commands
	Name   string  `json:"name"` // display name
	Hash   string  `json:"tool_fields_hash"`
	Fields []Field `json:"fields"`
}

// Field is a field of a tool's input form, or a group of such fields.
type Field struct {
	IsField  bool    `json:"isField"`
	Key      string  `json:"fieldKey"`
	Type     string  `json:"type"`
	Label    string  `json:"label"`
	Children []Field `json:"children"`
}

// InputFields returns the fields of the form that take a value, including
// those inside groups.
func (t *Tool) InputFields() []Field {
	var all []Field
	var walk func([]Field)
	walk = func(fields []Field) {
		for _, f := range fields {
			if f.IsField {
				all = append(all, f)
			}
			walk(f.Children)
		}
	}
	walk(t.Fields)
	return all
}

// Request describes a run to start with StartRun.
type Request struct {
	Tool *Tool
	// Inputs are the input values by field key. A media input is a value that
	// AddFile, Upload or Result returned, or a list of such values.
	Inputs     map[string]any
	NumResults int // 0 means the default: one, or the tool's minimum
	WebhookURL string
	Metadata   map[string]any
	// Key is the idempotency key, which makes it safe to send the request
	// again; "" sends no key.
	Key string

	files []file
}

type file struct {
	name string
	body io.Reader
}

// AddFile adds a file to the request body and returns the input value that
// refers to it. body is read when StartRun sends the request.
func (r *Request) AddFile(name string, body io.Reader) any {
	r.files = append(r.files, file{name, body})
	return map[string]any{"kind": "MULTIPART", "file_index": len(r.files) - 1}
}

// Upload returns the input value that refers to a file uploaded earlier, by
// the upload's id.
func Upload(id string) any { return map[string]any{"kind": "UPLOAD_REF", "id": id} }

// Result returns the input value that refers to an output of an earlier run,
// by the output's id.
func Result(id string) any { return map[string]any{"kind": "LIBRARY_REF", "id": id} }

// Run is the current state of a run.
type Run struct {
	ID            string   `json:"request_id"`
	Status        string   `json:"status"`
	Stage         *string  `json:"stage"`
	Progress      *float64 `json:"progress"`
	RetryAfter    int64    `json:"retry_after_seconds"`
	Seed          int64    `json:"seed"`
	TokensCharged int64    `json:"tokens_charged"`
	Outputs       []Output `json:"outputs"`
	Failure       *Failure `json:"error"`
}

// Output is a file that a run has produced.
type Output struct {
	ID       string `json:"id"`
	URL      string `json:"url"`
	Type     string `json:"type"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size_bytes"`
	SHA256   string `json:"sha256"`
	Note     string `json:"note"` // a remark by the tool about the output; may be empty
}

// Failure is the reason why a run failed.
type Failure struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"` // a new run with the same inputs may succeed
}

// HasEnded reports whether the run has succeeded, failed or been cancelled.
func (r *Run) HasEnded() bool { return r.Status != "pending" }

// ListTools returns all tools that the selected account may use, without their
// input forms.
func (c *Client) ListTools(ctx context.Context) ([]Tool, error) {
	var all []Tool
	for cursor := ""; ; {
		var page struct {
			Data []Tool  `json:"data"`
			Next *string `json:"next_cursor"`
		}
		q := url.Values{"limit": {"100"}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		if err := c.callJSON(ctx, http.MethodGet, "/tools?"+c.withAccount(q).Encode(), nil, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Data...)
		if page.Next == nil || *page.Next == "" {
			return all, nil
		}
		cursor = *page.Next
	}
}

// GetTool returns the tool with the given id, including its input form.
func (c *Client) GetTool(ctx context.Context, id string) (*Tool, error) {
	var t Tool
	err := c.callJSON(ctx, http.MethodGet, "/tools/"+url.PathEscape(id)+"?"+c.withAccount(nil).Encode(), nil, nil, &t)
	return &t, err
}

// StartRun starts the run that r describes and returns its initial state.
func (c *Client) StartRun(ctx context.Context, r *Request) (*Run, error) {
	payload := map[string]any{"tool_id": r.Tool.ID, "tool_fields_hash": r.Tool.Hash, "inputs": r.Inputs}
	if r.Inputs == nil {
		payload["inputs"] = map[string]any{}
	}
	if r.NumResults > 0 {
		payload["num_results"] = r.NumResults
	}
	if r.WebhookURL != "" {
		payload["webhook_url"] = r.WebhookURL
	}
	if r.Metadata != nil {
		payload["metadata"] = r.Metadata
	}
	text, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	var body io.Reader = bytes.NewReader(text)
	if len(r.files) > 0 {
		form, kind := r.multipartBody(text)
		defer form.Close()
		body = form
		header.Set("Content-Type", kind)
	}
	if r.Key != "" {
		header.Set("Idempotency-Key", r.Key)
	}
	var run Run
	err = c.callJSON(ctx, http.MethodPost, "/generate?"+c.withAccount(nil).Encode(), header, body, &run)
	return &run, err
}

// multipartBody returns a multipart body with the JSON payload and the files
// of the request, and its Content-Type. The body is produced while it is read.
func (r *Request) multipartBody(payload []byte) (io.ReadCloser, string) {
	from, to := io.Pipe()
	form := multipart.NewWriter(to)
	go func() {
		part, err := form.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {`form-data; name="payload"`}, "Content-Type": {"application/json"},
		})
		if err == nil {
			_, err = part.Write(payload)
		}
		for _, f := range r.files {
			if err == nil {
				part, err = form.CreateFormFile("files", f.name)
			}
			if err == nil {
				_, err = io.Copy(part, f.body)
			}
		}
		if err == nil {
			err = form.Close()
		}
		to.CloseWithError(err)
	}()
	return from, form.FormDataContentType()
}

// GetRun returns the current state of a run.
func (c *Client) GetRun(ctx context.Context, id string) (*Run, error) {
	var run Run
	err := c.callJSON(ctx, http.MethodGet, c.runPath(id), nil, nil, &run)
	return &run, err
}

// CancelRun cancels a run and returns its state afterwards.
func (c *Client) CancelRun(ctx context.Context, id string) (*Run, error) {
	var run Run
	err := c.callJSON(ctx, http.MethodPost, c.runPath(id, "cancel"), nil, nil, &run)
	return &run, err
}

// runPath returns the URL path and query of a run below /api/v2. The elements
// of more are appended to the path.
func (c *Client) runPath(id string, more ...string) string {
	path := "/generate/" + url.PathEscape(id)
	if len(more) > 0 {
		path += "/" + strings.Join(more, "/")
	}
	return path + "?" + c.withAccount(nil).Encode()
}

// DownloadOutput returns a reader of the content of an output. The caller must
// close it.
func (c *Client) DownloadOutput(ctx context.Context, o Output) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL, nil) // without the access token, because the URL itself authorizes the download
	if err != nil {
		return nil, err
	}
	res, err := c.httpClient().Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, fmt.Errorf("download: status %d", res.StatusCode)
	}
	return res.Body, nil
}

func (c *Client) httpClient() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return http.DefaultClient
}

// withAccount adds the parameter team_id to a query if a team is selected.
func (c *Client) withAccount(q url.Values) url.Values {
	if q == nil {
		q = url.Values{}
	}
	if c.TeamID != "" {
		q.Set("team_id", c.TeamID)
	}
	return q
}

// maxResponseBytes is the maximum number of bytes read from a response.
const maxResponseBytes = 64 << 20

func (c *Client) callJSON(ctx context.Context, method, path string, header http.Header, body io.Reader, into any) error {
	res, err := c.sendRequest(ctx, method, path, header, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(io.LimitReader(res.Body, maxResponseBytes)).Decode(into)
}

// sendRequest sends a request to the API and returns the response if its
// status is 2xx. Otherwise it returns the service's *Error.
func (c *Client) sendRequest(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.URL, "/")+"/api/v2"+path, body)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	res, err := c.httpClient().Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	var answer struct {
		Error *Error `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxResponseBytes)).Decode(&answer); err != nil || answer.Error == nil {
		return nil, fmt.Errorf("%s: status %d, and the response body is not a valid error", strings.SplitN(path, "?", 2)[0], res.StatusCode)
	}
	answer.Error.Status = res.StatusCode
	if after, err := time.ParseDuration(res.Header.Get("Retry-After") + "s"); err == nil {
		answer.Error.RetryAfter = after
	}
	return nil, answer.Error
}
