package comfyui

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/comfyui/nodegraph"
)

// fileEndings are the file name endings of results, by output type.
var fileEndings = map[string][]string{
	"IMG":      {".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif", ".bmp", ".tif", ".tiff", ".svg"},
	"VID":      {".mp4", ".webm", ".mov", ".mkv", ".m4v", ".avi"},
	"AUDIO":    {".flac", ".mp3", ".wav", ".ogg", ".opus", ".m4a", ".aac"},
	"ASSET_3D": {".glb", ".gltf", ".obj", ".stl", ".ply", ".fbx", ".usdz", ".splat", ".ksplat", ".spz"},
	"TEXT":     {".txt", ".md", ".json", ".csv", ".srt", ".vtt"},
}

// outputFile is a result of a workflow: a file on the server, or text.
type outputFile struct {
	Filename  string `json:"filename"`
	Subfolder string `json:"subfolder"`
	Type      string `json:"type"`
	text      string
	node      string // id of the node that made the result
}

// resultsOf returns the results of the tool's output type, in the order of the
// nodes. Previews (type temp) and files of other types, such as a still of a
// video, are not results.
func (g *graph) resultsOf(e historyEntry, kind string) []outputFile {
	nodes := g.Outputs
	if len(nodes) == 0 {
		nodes = nodegraph.SortIDs(slices.Collect(maps.Keys(e.Outputs)))
	}
	var all []outputFile
	for _, id := range nodes {
		// The key of the list that contains a file depends on the node that
		// saved it: videos can be in images, gifs or videos.
		for _, list := range slices.Sorted(maps.Keys(e.Outputs[id])) {
			var items []json.RawMessage
			if json.Unmarshal(e.Outputs[id][list], &items) != nil {
				continue
			}
			for _, item := range items {
				if r, ok := matchResult(item, list, kind); ok {
					r.node, _, _ = strings.Cut(id, ".") // nodes that a node creates have ids such as 5.0.1
					all = append(all, r)
				}
			}
		}
	}
	return all
}

// isFresh reports whether a node was run for the prompt of a history entry. If
// the server did not keep the prompt's status, only nodes that markSavers has
// changed are known to have run.
func (g *graph) isFresh(e historyEntry, node string) bool {
	cached, known := e.cachedNodes()
	if !known {
		return g.savers[node]
	}
	return !slices.Contains(cached, node)
}

func matchResult(item json.RawMessage, list, kind string) (r outputFile, ok bool) {
	if kind == "TEXT" && list == "text" && json.Unmarshal(item, &r.text) == nil {
		return r, r.text != ""
	}
	if json.Unmarshal(item, &r) != nil || r.Filename == "" || r.Type != "output" {
		return r, false
	}
	return r, slices.Contains(fileEndings[kind], strings.ToLower(path.Ext(r.Filename)))
}

var errNoResult = engine.Fail(engine.Invalid, "The tool made no result of the expected type.")

// errStale is the failure for results that the server took from its cache. They
// belong to an earlier prompt, which may have been another person's, and by now
// their file names may refer to other files.
var errStale = engine.Fail(engine.Invalid, "The tool's server returned the result of an earlier job. Contact the operator.")

// deliverResults passes a prompt's results to the sink, but no more than the
// job requested.
func (t *task) deliverResults(ctx context.Context, e historyEntry) error {
	all := t.graph.resultsOf(e, t.job.OutputType)
	for _, r := range all {
		if !t.graph.isFresh(e, r.node) {
			t.graph.savers[r.node] = true // markSavers includes the node in the next prompt
			return errStale
		}
	}
	if len(all) == 0 {
		return errNoResult
	}
	for _, r := range all[:min(len(all), t.job.NumResults-t.delivered)] {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.deliverResult(ctx, r); err != nil {
			return err
		}
		t.delivered++
		t.bar.ReportProgress(float64(t.delivered) / float64(t.job.NumResults))
	}
	return nil
}

func (t *task) deliverResult(ctx context.Context, r outputFile) error {
	if r.text != "" {
		return t.out.Output(ctx, engine.Result{Data: strings.NewReader(r.text)})
	}
	q := url.Values{"filename": {r.Filename}, "subfolder": {r.Subfolder}, "type": {r.Type}}
	res, err := t.server.Do(ctx, backend.Request{Path: "/view?" + q.Encode()})
	if s, ok := errors.AsType[*backend.Status](err); ok && s.Code == http.StatusNotFound {
		return engine.Fail(engine.Invalid, "The tool's result was deleted from its server.").WithCause(err)
	}
	if err != nil {
		return backend.CallFailure(ctx, err)
	}
	defer res.Body.Close()
	return backend.DeliverReader(ctx, res.Body, t.out)
}
