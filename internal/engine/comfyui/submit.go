package comfyui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/comfyui/nodegraph"
)

// uploadFolder is the sub-folder for uploads in the server's input folder.
// Uploads stay there, because the server has no API endpoint to delete them.
const uploadFolder = "atelier"

const messageRefused = "The tool's server refused the request."

// uploadFiles uploads the job's files that the workflow uses, once per job.
func (t *task) uploadFiles(ctx context.Context) error {
	if t.names != nil {
		return nil
	}
	names := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(t.job.Files)) {
		if !t.graph.isBound(key) {
			continue
		}
		for i, f := range t.job.Files[key] {
			// Names are unique per job, so that equal jobs do not use each
			// other's files.
			name, err := t.uploadFile(ctx, fmt.Sprintf("%s-%s-%d%s", t.checkpoint.ClientID, key, i, extensionOf(f.MimeType)), f)
			if err != nil {
				return err
			}
			names[key] = append(names[key], name)
		}
	}
	t.names = names
	return nil
}

// uploadFile uploads a file and returns the name by which inputs of the
// workflow refer to it.
func (t *task) uploadFile(ctx context.Context, name string, f engine.File) (string, error) {
	f.Open = markErrors(f.Open)
	body, kind := backend.MultipartForm(ctx, []backend.FormPart{
		{Name: "type", Value: "input"},
		{Name: "subfolder", Value: uploadFolder},
		{Name: "overwrite", Value: "true"},
		{Name: "image", File: &f, FileName: name},
	})
	defer body.Close()
	res, err := t.server.Do(ctx, backend.Request{Method: "POST", Path: "/upload/image", Body: body, Type: kind})
	if err != nil {
		if own, ok := errors.AsType[*fileError](err); ok {
			return "", own.error
		}
		if s, ok := errors.AsType[*backend.Status](err); ok && s.Code == http.StatusRequestEntityTooLarge {
			return "", engine.Fail(engine.Failed, "A file is too large for this tool.").WithCause(err)
		}
		return "", backend.CallFailure(ctx, err)
	}
	defer res.Body.Close()
	var at struct {
		Name      string `json:"name"`
		Subfolder string `json:"subfolder"`
	}
	if err := backend.DecodeJSON(res.Body, &at); err != nil {
		return "", backend.CallFailure(ctx, err)
	}
	if at.Name == "" {
		return "", engine.Fail(engine.Failed, messageRefused).WithCause(errors.New("the upload has no name"))
	}
	if at.Subfolder != "" {
		return at.Subfolder + "/" + at.Name, nil
	}
	return at.Name, nil
}

// fileError is an error reading a job's input file. It is not a failure of the
// server.
type fileError struct{ error }

// markErrors wraps open so that errors opening or reading the file become a
// *fileError and can be distinguished from errors of the server.
func markErrors(open func(context.Context) (io.ReadCloser, error)) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) {
		r, err := open(ctx)
		if err != nil {
			return nil, &fileError{err}
		}
		return markedReader{r}, nil
	}
}

type markedReader struct{ io.ReadCloser }

func (m markedReader) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &fileError{err}
	}
	return n, err
}

// extensionOf returns the file name ending for a MIME type, with the dot. Some
// nodes require the correct ending. It returns "" if the MIME type has no plain
// subtype.
func extensionOf(mimeType string) string {
	known := map[string]string{
		"image/jpeg": ".jpg", "image/svg+xml": ".svg", "audio/mpeg": ".mp3", "audio/x-wav": ".wav",
		"video/quicktime": ".mov", "video/x-matroska": ".mkv", "model/gltf-binary": ".glb", "text/plain": ".txt",
	}
	if e, ok := known[mimeType]; ok {
		return e
	}
	_, end, _ := strings.Cut(mimeType, "/")
	if end == "" || strings.ContainsFunc(end, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		return ""
	}
	return "." + end
}

// submitPrompt sends the workflow as the job's prompt with the given number,
// and returns the server's id of the prompt. It saves the id in the checkpoint
// first, so that another worker can find the prompt.
func (t *task) submitPrompt(ctx context.Context, number int) (string, error) {
	id := uuid.NewString()
	t.checkpoint.Prompts = append(t.checkpoint.Prompts[:number], id)
	if err := t.out.SaveCheckpoint(ctx, t.checkpoint.String()); err != nil {
		return "", err
	}
	var answer struct {
		PromptID   string          `json:"prompt_id"`
		NodeErrors json.RawMessage `json:"node_errors"`
	}
	// The client id is required: without it, a server that has the results in
	// its cache would report no results. Previews are sent only to clients that
	// select a preview method, unless the server was started with a preview
	// method.
	err := t.postPrompt(ctx, map[string]any{
		"prompt":     t.graph.Workflow,
		"client_id":  t.checkpoint.ClientID,
		"prompt_id":  id,
		"extra_data": map[string]any{"preview_method": "auto"},
	}, &answer)
	if err != nil {
		why := explainRefusal(ctx, err)
		if _, refused := errors.AsType[*backend.Status](err); !refused && engine.IsFinal(ctx, why) {
			t.cancelPrompt(ctx, id) // the prompt may have arrived although the request failed
		}
		return "", why
	}
	if answer.PromptID != "" && answer.PromptID != id {
		id = answer.PromptID
		t.checkpoint.Prompts[number] = id
		if err := t.out.SaveCheckpoint(ctx, t.checkpoint.String()); err != nil {
			t.cancelPrompt(ctx, id)
			return "", err
		}
	}
	if words := nodeErrorText(answer.NodeErrors); words != "" {
		// The prompt is cancelled, because the server would continue without
		// the nodes that have errors and all nodes that depend on them.
		t.cancelPrompt(ctx, id)
		return "", backend.FailWithText(engine.Failed, messageRefused, words)
	}
	return id, nil
}

// postPrompt sends a prompt and decodes the response into answer. It continues
// for 400 ms after ctx is cancelled, so that a request in transit arrives
// first and the prompt can then be cancelled.
func (t *task) postPrompt(ctx context.Context, prompt, answer any) error {
	const moment = 400 * time.Millisecond
	if err := ctx.Err(); err != nil {
		return err
	}
	short, cancel := t.server.WithTimeout(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-short.Done():
		case <-time.After(moment):
			cancel()
		}
	})
	defer stop()
	return t.server.CallJSON(short, "POST", "/prompt", prompt, answer)
}

// explainRefusal converts the error of a prompt request to a failure with the
// server's own message.
func explainRefusal(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	if !ok || s.Code != http.StatusBadRequest {
		return backend.CallFailure(ctx, err)
	}
	var body struct {
		Error struct {
			Type, Message, Details string
		} `json:"error"`
		NodeErrors json.RawMessage `json:"node_errors"`
	}
	if json.Unmarshal(s.Body, &body) != nil {
		return backend.CallFailure(ctx, err)
	}
	words := body.Error.Message
	if nodes := nodeErrorText(body.NodeErrors); nodes != "" {
		words += ": " + nodes
	} else if body.Error.Details != "" && body.Error.Details != words {
		words += ": " + body.Error.Details
	}
	return backend.FailWithText(engine.Failed, messageRefused, words).WithCause(err)
}

// nodeErrorText returns the server's messages about nodes as one string. It
// returns "" if there are no messages.
func nodeErrorText(raw json.RawMessage) string {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "{}", "[]":
		return ""
	}
	var nodes map[string]struct {
		ClassType string `json:"class_type"`
		Errors    []struct {
			Message, Details string
		} `json:"errors"`
	}
	if json.Unmarshal(raw, &nodes) != nil {
		return "some nodes of the workflow are invalid"
	}
	var all []string
	for _, id := range nodegraph.SortIDs(slices.Collect(maps.Keys(nodes))) {
		for _, e := range nodes[id].Errors {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s: %s %s", nodes[id].ClassType, e.Message, e.Details)))
		}
	}
	if len(all) == 0 {
		return "some nodes of the workflow are invalid"
	}
	return strings.Join(all, "; ")
}
