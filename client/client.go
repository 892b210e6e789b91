// Package client runs tools of an Atelier service through its API, /api/v2/. The
// command "atelier generate" uses this package, and other programs can use it
// too: it needs only an address and an access token.
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

// Client calls one service for one person. It is safe for concurrent use.
type Client struct {
	// URL is the service's address, for example https://atelier.example.
	URL string
	// Token is an access token.
	Token string
	// TeamID is the account to work for; "" means the personal account.
	TeamID string
	// HTTP makes the calls; nil means http.DefaultClient.
	HTTP *http.Client
}

// Error is an error response of the service.
type Error struct {
	Status    int            `json:"-"`
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details"`
	TraceID   string         `json:"trace_id"`
	// RetryAfter is the wait that the service requests.
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

// Tool is a tool. GetTool returns the form too; ListTools does not.
type Tool struct {
	ID     string  `json:"id"`
	Slug   string  `json:"slug"` // name in commands
	Name   string  `json:"name"` // display name
	Hash   string  `json:"tool_fields_hash"`
	Fields []Field `json:"fields"`
}

// Field is a field of a form, or a group of fields.
type Field struct {
	IsField  bool    `json:"isField"`
	Key      string  `json:"fieldKey"`
	Type     string  `json:"type"`
	Label    string  `json:"label"`
	Children []Field `json:"children"`
}

// InputFields returns the fields that take a value, including fields inside
// groups.
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

// Request is a request for a run.
type Request struct {
	Tool *Tool
	// Inputs are the values by field key. Media are results of AddFile, Upload
	// or Result, or lists of these.
	Inputs     map[string]any
	NumResults int // 0: one, or the tool's minimum
	WebhookURL string
	Metadata   map[string]any
	// Key is the idempotency key, which makes it safe to send the request again;
	// "" means no key.
	Key string

	files []file
}

type file struct {
	name string
	body io.Reader
}

// AddFile adds a file to the request and returns the input that refers to the
// file. The reader is read when the request is sent.
func (r *Request) AddFile(name string, body io.Reader) any {
	r.files = append(r.files, file{name, body})
	return map[string]any{"kind": "MULTIPART", "file_index": len(r.files) - 1}
}

// Upload returns the input that refers to an upload.
func Upload(id string) any { return map[string]any{"kind": "UPLOAD_REF", "id": id} }

// Result returns the input that refers to an earlier output, by the output's id.
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

// Output is a result of a run.
type Output struct {
	ID       string `json:"id"`
	URL      string `json:"url"`
	Type     string `json:"type"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size_bytes"`
	SHA256   string `json:"sha256"`
	Note     string `json:"note"` // remark of the tool about the output; may be empty
}

// Failure is the reason why a run failed.
type Failure struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"` // a later create with the same inputs can succeed
}

// HasEnded reports whether the run has ended.
func (r *Run) HasEnded() bool { return r.Status != "pending" }

// ListTools lists the tools that the account may use.
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

// GetTool returns a tool with its form.
func (c *Client) GetTool(ctx context.Context, id string) (*Tool, error) {
	var t Tool
	err := c.callJSON(ctx, http.MethodGet, "/tools/"+url.PathEscape(id)+"?"+c.withAccount(nil).Encode(), nil, nil, &t)
	return &t, err
}

// StartRun starts a run.
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

// multipartBody returns the request with its files as a stream.
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

// CancelRun cancels a run.
func (c *Client) CancelRun(ctx context.Context, id string) (*Run, error) {
	var run Run
	err := c.callJSON(ctx, http.MethodPost, c.runPath(id, "cancel"), nil, nil, &run)
	return &run, err
}

// runPath is the path of a run.
func (c *Client) runPath(id string, more ...string) string {
	path := "/generate/" + url.PathEscape(id)
	if len(more) > 0 {
		path += "/" + strings.Join(more, "/")
	}
	return path + "?" + c.withAccount(nil).Encode()
}

// DownloadOutput returns the content of an output. The caller must close the
// reader.
func (c *Client) DownloadOutput(ctx context.Context, o Output) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL, nil) // the address authorizes the download; the token is not sent to it
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

// withAccount adds the selected account to a query.
func (c *Client) withAccount(q url.Values) url.Values {
	if q == nil {
		q = url.Values{}
	}
	if c.TeamID != "" {
		q.Set("team_id", c.TeamID)
	}
	return q
}

// maxResponseBytes limits the bytes read of a response.
const maxResponseBytes = 64 << 20

func (c *Client) callJSON(ctx context.Context, method, path string, header http.Header, body io.Reader, into any) error {
	res, err := c.sendRequest(ctx, method, path, header, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(io.LimitReader(res.Body, maxResponseBytes)).Decode(into)
}

// sendRequest returns the response, or the service's *Error.
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
		return nil, fmt.Errorf("%s: status %d, and no error that is understood", strings.SplitN(path, "?", 2)[0], res.StatusCode)
	}
	answer.Error.Status = res.StatusCode
	if after, err := time.ParseDuration(res.Header.Get("Retry-After") + "s"); err == nil {
		answer.Error.RetryAfter = after
	}
	return nil, answer.Error
}
