package comfyui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"atelier/internal/engine/manifestdraft"
)

// Workflow is a graph to make a manifest for.
type Workflow struct {
	Name   string // of the tool; from the file's where it is empty
	Graph  []byte // in API format
	File   string // the name that the graph will have beside the manifest
	Engine string // what the server is called here
}

// Import writes a manifest for a workflow. What people usually choose becomes a
// field, with the ranges that the server names and the workflow's own values as
// defaults; everything else stays as it is in the workflow.
func (e *Engine) Import(ctx context.Context, from Workflow) (manifestdraft.Tool, error) {
	nodes, err := readGraph(from.Graph)
	if err != nil {
		return manifestdraft.Tool{}, err
	}
	classes, err := e.classes(ctx, nodes)
	if err != nil {
		return manifestdraft.Tool{}, err
	}
	d := &draft{
		nodes:   nodes,
		classes: classes,
		order:   inOrder(slices.Collect(maps.Keys(nodes))),
		bind:    map[string][]string{},
		keys:    map[string]string{},
	}
	out, savers, err := d.output()
	if err != nil {
		return manifestdraft.Tool{}, err
	}
	d.prompts()
	d.files()
	d.sizes()
	d.samplers()
	d.seeds()
	name := cmp.Or(from.Name, manifestdraft.Label(strings.TrimSuffix(path.Base(from.File), path.Ext(from.File))))
	with := map[string]any{"bind": d.bind}
	if len(savers) < d.savers {
		with["outputs"] = savers
	}
	return manifestdraft.Tool{
		Name:       short(name, 80),
		Price:      manifestdraft.Price{Type: "COST", Tokens: 1},
		NumResults: d.results(out.Type),
		Output:     out,
		Engine:     manifestdraft.Engine{Name: from.Engine, With: with, Include: map[string]string{"workflow": from.File}},
		Fields:     d.fields,
		Files:      map[string][]byte{from.File: from.Graph},
	}, nil
}

// draft is a manifest on its way.
type draft struct {
	nodes   map[string]node
	classes map[string]class
	order   []string

	fields []manifestdraft.Field
	bind   map[string][]string
	keys   map[string]string // of fields, by what they are and their value
	savers int               // nodes that save results, of any kind
}

func (d *draft) class(id string) class { return d.classes[d.nodes[id].Class] }

// each goes through the inputs of a name that are no links and that take this
// kind of value.
func (d *draft) each(kind string, do func(id, name string, v any, s inputSpec), names ...string) {
	for _, id := range d.order {
		for _, name := range names {
			v, ok := d.nodes[id].Inputs[name]
			s := d.class(id).spec(name)
			if _, isList := v.([]any); ok && !isList && s.kind == kind {
				do(id, name, v, s)
			}
		}
	}
}

// field binds an input to a field. Inputs of one name with one value move
// together, as the two samplers of a workflow do that share their steps; other
// values get fields of their own.
func (d *draft) field(base string, value any, places []string, make func() manifestdraft.Field) {
	same := fmt.Sprintf("%s %v", base, value)
	key, ok := d.keys[same]
	if !ok {
		key = base
		for n := 2; d.bind[key] != nil || d.bind[key+".width"] != nil; n++ {
			key = fmt.Sprintf("%s_%d", base, n)
		}
		d.keys[same] = key
		f := make()
		f.Key = key
		if n := strings.TrimPrefix(key, base+"_"); n != key {
			f.Label += " " + n
		}
		d.fields = append(d.fields, f)
	}
	for _, p := range places {
		if side, width := strings.CutSuffix(p, ".width"); width {
			d.bind[key+".width"] = append(d.bind[key+".width"], p)
			d.bind[key+".height"] = append(d.bind[key+".height"], side+".height")
			continue
		}
		d.bind[key] = append(d.bind[key], p)
	}
}

// results says how many one run may ask for: as many as a batch holds, or one
// more run of the workflow for each where seeds make them differ.
func (d *draft) results(kind string) *manifestdraft.NumResults {
	const most = 4
	n := &manifestdraft.NumResults{Min: 1, Max: most, Default: 1}
	if kind == "IMG" { // a batch of anything else is one file
		d.each("INT", func(id, name string, v any, _ inputSpec) {
			if !d.class(id).makes("LATENT") {
				return
			}
			d.bind[keyResults] = append(d.bind[keyResults], id+"."+name)
			own, _ := float(v)
			n.Default = int64(min(max(own, 1), 64))
			n.Max = max(n.Max, n.Default)
		}, "batch_size")
	}
	if d.bind[keyResults] == nil && d.bind[keySeed] == nil {
		return nil
	}
	return n
}

// saver is a node that saves results.
type saver struct {
	kind, mime string
}

// saving are the nodes that are known to save. Their formats can be an input.
var saving = map[string]saver{
	"SaveImage": {"IMG", "image/png"}, "SaveAnimatedWEBP": {"IMG", "image/webp"}, "SaveAnimatedPNG": {"IMG", "image/png"},
	"SaveVideo": {"VID", "video/mp4"}, "SaveWEBM": {"VID", "video/webm"}, "VHS_VideoCombine": {"VID", "video/mp4"},
	"SaveAudio": {"AUDIO", "audio/flac"}, "SaveAudioMP3": {"AUDIO", "audio/mpeg"}, "SaveAudioOpus": {"AUDIO", "audio/ogg"},
	"SaveGLB":    {"ASSET_3D", "model/gltf-binary"},
	"PreviewAny": {"TEXT", "text/plain"},
}

// output says what the workflow makes, and which nodes save it. Beside a video
// a workflow often saves stills, so the kinds have an order.
func (d *draft) output() (manifestdraft.Output, []string, error) {
	byKind := map[string][]string{}
	mimes := map[string][]string{}
	for _, id := range d.order {
		s, ok := saving[d.nodes[id].Class]
		if !ok || d.nodes[id].Inputs["save_output"] == false {
			continue
		}
		d.savers++
		if format, ok := d.nodes[id].Inputs["format"].(string); ok && d.nodes[id].Class == "VHS_VideoCombine" {
			s = combined(format)
		}
		byKind[s.kind] = append(byKind[s.kind], id)
		if !slices.Contains(mimes[s.kind], s.mime) {
			mimes[s.kind] = append(mimes[s.kind], s.mime)
		}
	}
	for _, kind := range []string{"VID", "ASSET_3D", "AUDIO", "IMG", "TEXT"} {
		if len(byKind[kind]) > 0 {
			return manifestdraft.Output{Type: kind, MimeTypes: mimes[kind]}, byKind[kind], nil
		}
	}
	known := slices.Sorted(maps.Keys(saving))
	return manifestdraft.Output{}, nil, errors.New("the workflow saves nothing; it needs one of " + strings.Join(known, ", "))
}

// combined reads a format such as video/h264-mp4 or image/gif.
func combined(format string) saver {
	switch {
	case strings.HasPrefix(format, "image/"):
		return saver{"IMG", format}
	case strings.Contains(format, "webm"):
		return saver{"VID", "video/webm"}
	}
	return saver{"VID", "video/mp4"}
}

// short bounds a text by characters.
func short(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}
