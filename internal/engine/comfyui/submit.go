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
)

// folder is where our uploads are, below the server's inputs. They stay there:
// the server has no call to take one away.
const folder = "atelier"

const notTaken = "The tool's server did not take the request."

// upload brings the files that the workflow wants, once in a job.
func (t *task) upload(ctx context.Context) error {
	if t.names != nil {
		return nil
	}
	names := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(t.job.Files)) {
		if !t.graph.bound(key) {
			continue
		}
		for i, f := range t.job.Files[key] {
			// Names of equal jobs must not meet: one would read the other's file.
			name, err := t.put(ctx, fmt.Sprintf("%s-%s-%d%s", t.note.ClientID, key, i, extension(f.MimeType)), f)
			if err != nil {
				return err
			}
			names[key] = append(names[key], name)
		}
	}
	t.names = names
	return nil
}

// put uploads a file and gives the value that an input reads it by.
func (t *task) put(ctx context.Context, name string, f engine.File) (string, error) {
	f.Open = marked(f.Open)
	body, kind := backend.MultipartForm(ctx, []backend.FormPart{
		{Name: "type", Value: "input"},
		{Name: "subfolder", Value: folder},
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
			return "", engine.Fail(engine.Failed, "A file is too large for this tool.").Because(err)
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
		return "", engine.Fail(engine.Failed, notTaken).Because(errors.New("the upload has no name"))
	}
	if at.Subfolder != "" {
		return at.Subfolder + "/" + at.Name, nil
	}
	return at.Name, nil
}

// fileError is a failure of an input file, not of the server that it goes to.
type fileError struct{ error }

// marked opens a file whose failures can be told from the server's.
func marked(open func(context.Context) (io.ReadCloser, error)) func(context.Context) (io.ReadCloser, error) {
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

// extension gives a file name's end for a type. Some nodes go by it.
func extension(mimeType string) string {
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

// submit sends the graph and gives the id that the server knows it by. What
// another worker needs to find it is stored before.
func (t *task) submit(ctx context.Context, number int) (string, error) {
	id := uuid.NewString()
	t.note.Prompts = append(t.note.Prompts[:number], id)
	if err := t.out.Leave(ctx, t.note.String()); err != nil {
		return "", err
	}
	var answer struct {
		PromptID   string          `json:"prompt_id"`
		NodeErrors json.RawMessage `json:"node_errors"`
	}
	// Without a client id, a server that has the results still in its cache
	// would say that there are none.
	err := t.post(ctx, map[string]any{"prompt": t.graph.Workflow, "client_id": t.note.ClientID, "prompt_id": id}, &answer)
	if err != nil {
		why := explain(ctx, err)
		if _, refused := errors.AsType[*backend.Status](err); !refused && over(ctx, why) {
			t.cancel(ctx, id) // it may have arrived
		}
		return "", why
	}
	if answer.PromptID != "" && answer.PromptID != id {
		id = answer.PromptID
		t.note.Prompts[number] = id
		if err := t.out.Leave(ctx, t.note.String()); err != nil {
			t.cancel(ctx, id)
			return "", err
		}
	}
	if words := nodeErrors(answer.NodeErrors); words != "" {
		// The server would leave out what depends on these nodes, and go on.
		t.cancel(ctx, id)
		return "", backend.FailWithText(engine.Failed, notTaken, words)
	}
	return id, nil
}

// post sends a prompt. It outlives the end of ctx by a moment: what is on its
// way arrives first, and can be cancelled then.
func (t *task) post(ctx context.Context, prompt, answer any) error {
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

// explain gives a refusal with the server's own words.
func explain(ctx context.Context, err error) error {
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
	if nodes := nodeErrors(body.NodeErrors); nodes != "" {
		words += ": " + nodes
	} else if body.Error.Details != "" && body.Error.Details != words {
		words += ": " + body.Error.Details
	}
	return backend.FailWithText(engine.Failed, notTaken, words).Because(err)
}

// nodeErrors puts what the server says about nodes into words, "" where it has
// nothing to say.
func nodeErrors(raw json.RawMessage) string {
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
		return "some nodes cannot be run"
	}
	var all []string
	for _, id := range inOrder(slices.Collect(maps.Keys(nodes))) {
		for _, e := range nodes[id].Errors {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s: %s %s", nodes[id].ClassType, e.Message, e.Details)))
		}
	}
	if len(all) == 0 {
		return "some nodes cannot be run"
	}
	return strings.Join(all, "; ")
}
