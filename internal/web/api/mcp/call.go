package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/toolschema"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/run/generation"
	"atelier/internal/web/access"
	"atelier/internal/web/api/newrun"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/runwait"
	"atelier/internal/web/httpd"
)

// plugin is the value of the attribute plugin of runs that this interface
// creates with an access token.
const plugin = "mcp"

// callTool calls a tool of the service itself or of the catalog.
func (h *Handler) callTool(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	arguments, err := readArguments(req.Params.Arguments)
	if err != nil {
		return refusal(ctx, err)
	}
	c := &toolCall{
		handler:   h,
		request:   req,
		exchange:  exchangeOf(ctx),
		arguments: arguments,
		room:      h.Settings.InlineBytes,
	}
	var result *sdk.CallToolResult
	if own, ok := findOwn(c.exchange.tool); ok {
		result, err = own.call(ctx, c)
	} else {
		result, err = c.runTool(ctx, c.exchange.tool, arguments)
	}
	if err != nil {
		return refusal(ctx, err)
	}
	return result, nil
}

// readArguments reads the arguments of a call. Whole numbers become int64, as
// in requests of /api/v2.
func readArguments(text []byte) (map[string]any, error) {
	if len(text) == 0 || string(text) == "null" {
		return map[string]any{}, nil
	}
	if jsontext.Value(text).Kind() != '{' {
		return nil, fault.New(fault.Invalid, "The arguments must be an object.")
	}
	return rest.ReadValue(jsontext.NewDecoder(bytes.NewReader(text))).(map[string]any), nil
}

// refusal converts an error that the caller can do something about to a result,
// which a model reads. Other errors fail the request.
func refusal(ctx context.Context, err error) (*sdk.CallToolResult, error) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return nil, err
	}
	text := f.Message
	for _, key := range []string{"path", "field"} { // errors about one input name it in their details
		if path, ok := f.Details[key].(string); ok && len(f.Fields) == 0 {
			text = strings.TrimPrefix(path, "inputs.") + ": " + text
		}
	}
	for _, p := range f.Fields {
		if p.Message != f.Message {
			text += "\n" + strings.TrimPrefix(p.Path, "inputs.") + ": " + p.Message
		}
	}
	if inputs, ok := f.Details["inputs"].([]string); ok {
		text += "\nThe inputs are " + strings.Join(inputs, ", ") + "; * marks those that are required."
	}
	if f.RetryAfter > 0 {
		text += fmt.Sprintf("\nTry again in %d s.", fault.WholeSeconds(f.RetryAfter))
	}
	return &sdk.CallToolResult{
		IsError:           true,
		Content:           []sdk.Content{&sdk.TextContent{Text: text}},
		StructuredContent: rest.ErrorBody(f, httpd.RecordOf(exchangeOf(ctx).http.Context()).TraceID),
	}, nil
}

// toolCall is one call of a tool.
type toolCall struct {
	handler   *Handler
	request   *sdk.CallToolRequest
	exchange  *exchange
	arguments map[string]any
	room      int64 // bytes of files that the response can still contain
}

// findTool returns the tool of the catalog with the given name.
func (c *toolCall) findTool(ctx context.Context, name string) (*catalog.Tool, error) {
	view, err := c.handler.viewOf(ctx)
	if err != nil {
		return nil, err
	}
	t, ok := view.ToolByName(name)
	if !ok {
		return nil, fault.New(fault.NotFound, "There is no tool "+strconv.Quote(name)+". Use search_tools to find one.")
	}
	return t, nil
}

// runTool runs a tool of the catalog and waits for its results.
func (c *toolCall) runTool(ctx context.Context, name string, arguments map[string]any) (*sdk.CallToolResult, error) {
	h := c.handler
	t, err := c.findTool(ctx, name)
	if err != nil {
		return nil, err
	}
	ctx, call, err := c.exchange.call.Authorize(ctx, access.Generating)
	if err != nil {
		return nil, err
	}
	d := generation.Draft{Principal: call.Principal, Plugin: plugin, Key: c.exchange.key}
	if d.Key != "" {
		d.Fingerprint = newrun.Fingerprint("POST /mcp", name, string(c.request.Params.Arguments))
	}
	if err := c.fillDraft(&d, t, arguments); err != nil {
		h.Files.Intake.DiscardFiles(ctx, d.Files...)
		return nil, err
	}
	created, err := h.Runs.CreateRun(ctx, d)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.Invalid && len(f.Fields) > 0 {
		err = f.With("inputs", inputNames(t))
	}
	if rest.IsRefusal(err) || created.Replayed {
		h.Files.Intake.DiscardFiles(ctx, d.Files...)
	}
	if err != nil {
		return nil, err
	}
	return c.awaitRun(ctx, runwait.Client{Call: call, KeepRun: c.exchange.keepRun}, created.Run.ID)
}

// fillDraft converts the arguments of a call to the draft of a run. Files in the
// arguments are stored.
func (c *toolCall) fillDraft(d *generation.Draft, t *catalog.Tool, arguments map[string]any) error {
	d.ToolID = t.ID
	d.ToolHash = t.Hash
	object := arguments
	if t.NumResults != nil && arguments[toolschema.ResultsKey] != nil {
		n, ok := arguments[toolschema.ResultsKey].(int64)
		if !ok {
			return fault.New(fault.Invalid, "num_results must be a whole number.").On(toolschema.ResultsKey)
		}
		d.NumResults = &n
		object = without(arguments, toolschema.ResultsKey)
	}
	inputs, err := toolschema.Inputs(t, object, func(f *catalog.Field, value any) (any, error) { return c.convertFile(d, f, value) })
	d.Inputs = inputs
	return err
}

func without(m map[string]any, key string) map[string]any {
	rest := make(map[string]any, len(m))
	for k, v := range m {
		if k != key {
			rest[k] = v
		}
	}
	return rest
}

// convertFile converts the value of a field for a file to a reference: an id, an
// address of an upload, or a data: URL, whose content is stored with the run.
func (c *toolCall) convertFile(d *generation.Draft, f *catalog.Field, value any) (any, error) {
	text, ok := value.(string)
	switch {
	case !ok:
		return value, nil // refused with the other inputs
	case strings.HasPrefix(text, "data:"):
		return c.storeFile(d, f, text)
	case strings.HasPrefix(text, c.handler.Links.BaseURL+"/media/"):
		id, ok := uploadID(text)
		if !ok {
			return nil, fault.New(fault.Invalid, "This is not the address of an upload. Send the library id of a result.").On(f.Key)
		}
		return reference(catalog.UploadRef, id), nil
	case strings.Contains(text, "://"):
		return nil, fault.New(fault.Invalid, "Addresses of other services are not supported. Send the library id of a result, or the file as a data: URL.").On(f.Key)
	case ids.Valid(text):
		return reference(catalog.UploadRef, text), nil
	}
	return reference(catalog.LibraryRef, text), nil
}

func reference(kind catalog.RefKind, id string) map[string]any {
	return map[string]any{"kind": string(kind), "id": id}
}

// uploadID returns the id in the signed URL of an upload.
func uploadID(address string) (id string, ok bool) {
	u, err := url.Parse(address)
	if err != nil {
		return "", false
	}
	part := strings.Split(strings.TrimPrefix(u.Path, "/media/"), "/")
	if len(part) < 3 || part[0] != string(library.KindUpload) {
		return "", false
	}
	return part[1], true
}

// storeFile stores the content of a data: URL (RFC 2397) as a file of the run.
func (c *toolCall) storeFile(d *generation.Draft, f *catalog.Field, address string) (any, error) {
	h := c.handler
	head, data, ok := strings.Cut(strings.TrimPrefix(address, "data:"), ",")
	kind, isBase64 := strings.CutSuffix(head, ";base64")
	if !ok || !isBase64 {
		return nil, fault.New(fault.Invalid, "A data: URL must have the form data:image/png;base64,….").On(f.Key)
	}
	content, err := base64.StdEncoding.DecodeString(strings.TrimRight(data, "\n"))
	if err != nil {
		return nil, fault.New(fault.Invalid, "The data: URL is not valid base64.").On(f.Key)
	}
	if limit := h.Runs.Settings.InputFiles; len(d.Files) == limit {
		return nil, generation.TooManyFiles(limit, f.Key)
	}
	if err := c.checkRoom(d, int64(len(content))); err != nil {
		return nil, err
	}
	declared, _, _ := mime.ParseMediaType(kind)
	stored, err := h.Files.ReceiveFile(c.exchange.http, bytes.NewReader(content), ingest.Options{MaxBytes: h.Files.MaxFileBytes, DeclaredType: declared, NoThumbnail: true})
	if err != nil {
		return nil, rest.InPart(err, f.Key)
	}
	d.Files = append(d.Files, stored)
	return map[string]any{"kind": string(catalog.Multipart), "file_index": int64(len(d.Files) - 1)}, nil
}

// checkRoom returns an error if the disk or the account has no room for one more
// file of that many bytes.
func (c *toolCall) checkRoom(d *generation.Draft, bytes int64) error {
	if err := c.handler.Files.Space(); err != nil {
		return err
	}
	for _, f := range d.Files {
		bytes += f.RawSize
	}
	_, err := c.handler.Files.Library.CheckAvailable(c.exchange.http.Context(), d.Principal.AccountID, bytes)
	return err
}

// awaitRun waits for the end of a run, reports its progress and returns its
// results.
func (c *toolCall) awaitRun(ctx context.Context, client runwait.Client, id string) (*sdk.CallToolResult, error) {
	progress := progressReport{session: c.request.Session, token: c.request.Params.GetProgressToken()}
	client.Stopping = httpd.RecordOf(c.exchange.http.Context()).Stopping
	client.See = func(rec generation.Record) error { return progress.report(ctx, rec) }
	rec, err := c.handler.Waiter.Wait(ctx, client, id)
	if fault.Is(err, fault.Unavailable) && rec.ID != "" && !rec.State.IsEnded() {
		return c.pendingResult(rec), nil
	}
	if err != nil {
		return nil, err
	}
	return c.resultOf(ctx, rec)
}

// progressReport sends the progress of a run to a client that wants to know it.
type progressReport struct {
	session *sdk.ServerSession
	token   any
	sent    float64
	isSent  bool
}

// report sends the progress if it has grown.
func (p *progressReport) report(ctx context.Context, rec generation.Record) error {
	if p.token == nil || rec.State.IsEnded() {
		return nil
	}
	now := 0.0
	if f := rec.ProgressFraction(); f != nil {
		now = *f * 100
	}
	if p.isSent && now <= p.sent {
		return nil
	}
	p.isSent = true
	p.sent = now
	text := string(rec.Stage())
	if rec.Position > 0 {
		text += fmt.Sprintf(", position %d", rec.Position)
	}
	return p.session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: p.token, Progress: now, Total: 100, Message: text})
}
