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
)

// fileEnds are the ends of names that a tool's results have.
var fileEnds = map[string][]string{
	"IMG":      {".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif", ".bmp", ".tif", ".tiff", ".svg"},
	"VID":      {".mp4", ".webm", ".mov", ".mkv", ".m4v", ".avi"},
	"AUDIO":    {".flac", ".mp3", ".wav", ".ogg", ".opus", ".m4a", ".aac"},
	"ASSET_3D": {".glb", ".gltf", ".obj", ".stl", ".ply", ".fbx", ".usdz", ".splat", ".ksplat", ".spz"},
	"TEXT":     {".txt", ".md", ".json", ".csv", ".srt", ".vtt"},
}

// result is a file on the server, or a text.
type result struct {
	Filename  string `json:"filename"`
	Subfolder string `json:"subfolder"`
	Type      string `json:"type"`
	text      string
}

// results are those of a tool that makes this kind of thing, in the order of
// the nodes. What was saved for a look only (type temp), and what came along
// (a still of a video), is none.
func (g *graph) results(e entry, kind string) []result {
	nodes := g.Outputs
	if len(nodes) == 0 {
		nodes = inOrder(slices.Collect(maps.Keys(e.Outputs)))
	}
	var all []result
	for _, id := range nodes {
		// Which list a file is in depends on the node that saved it: videos are
		// among images, gifs or videos.
		for _, list := range slices.Sorted(maps.Keys(e.Outputs[id])) {
			var items []json.RawMessage
			if json.Unmarshal(e.Outputs[id][list], &items) != nil {
				continue
			}
			for _, item := range items {
				if r, ok := fitting(item, list, kind); ok {
					all = append(all, r)
				}
			}
		}
	}
	return all
}

func fitting(item json.RawMessage, list, kind string) (r result, ok bool) {
	if kind == "TEXT" && list == "text" && json.Unmarshal(item, &r.text) == nil {
		return r, r.text != ""
	}
	if json.Unmarshal(item, &r) != nil || r.Filename == "" || r.Type != "output" {
		return r, false
	}
	return r, slices.Contains(fileEnds[kind], strings.ToLower(path.Ext(r.Filename)))
}

var errNone = engine.Fail(engine.Invalid, "The tool made no result of the kind that it should.")

// deliver hands over what a prompt made, no more than is wanted.
func (t *task) deliver(ctx context.Context, e entry) error {
	all := t.graph.results(e, t.job.OutputType)
	if len(all) == 0 {
		return errNone
	}
	for _, r := range all[:min(len(all), t.job.NumResults-t.given)] {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.hand(ctx, r); err != nil {
			return err
		}
		t.given++
		t.bar.ReportProgress(float64(t.given) / float64(t.job.NumResults))
	}
	return nil
}

func (t *task) hand(ctx context.Context, r result) error {
	if r.text != "" {
		return t.out.Output(ctx, engine.Result{Data: strings.NewReader(r.text)})
	}
	q := url.Values{"filename": {r.Filename}, "subfolder": {r.Subfolder}, "type": {r.Type}}
	res, err := t.server.Do(ctx, backend.Request{Path: "/view?" + q.Encode()})
	if s, ok := errors.AsType[*backend.Status](err); ok && s.Code == http.StatusNotFound {
		return engine.Fail(engine.Invalid, "The tool's result is not there any more.").Because(err)
	}
	if err != nil {
		return backend.CallFailure(ctx, err)
	}
	defer res.Body.Close()
	return backend.DeliverReader(ctx, res.Body, t.out)
}
