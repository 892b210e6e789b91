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

// Workflow is a ComfyUI workflow to draft a manifest for.
type Workflow struct {
	Name   string // name of the tool; if empty, it is derived from the file's name
	Graph  []byte // the workflow in ComfyUI's API format
	File   string // name of the workflow's file, in the folder of the manifest
	Engine string // name of the engine in the service's settings
}

// ImportTool drafts a manifest for a workflow. Inputs that people usually
// choose, such as the prompt or the size, become fields with the server's
// ranges and the workflow's values as defaults. All other inputs stay as they
// are in the workflow.
func (e *Engine) ImportTool(ctx context.Context, from Workflow) (manifestdraft.Tool, error) {
	nodes, err := readGraph(from.Graph)
	if err != nil {
		return manifestdraft.Tool{}, err
	}
	classes, err := e.fetchClasses(ctx, nodes)
	if err != nil {
		return manifestdraft.Tool{}, err
	}
	d := &manifestBuilder{
		nodes:   nodes,
		classes: classes,
		order:   sortIDs(slices.Collect(maps.Keys(nodes))),
		bind:    map[string][]string{},
		keys:    map[string]string{},
	}
	out, savers, err := d.findOutput()
	if err != nil {
		return manifestdraft.Tool{}, err
	}
	d.addPrompts()
	d.addFiles()
	d.addSizes()
	d.addSamplers()
	d.addSeeds()
	name := cmp.Or(from.Name, manifestdraft.Label(strings.TrimSuffix(path.Base(from.File), path.Ext(from.File))))
	with := map[string]any{"bind": d.bind}
	if len(savers) < d.savers {
		with["outputs"] = savers
	}
	return manifestdraft.Tool{
		Name:       truncateText(name, 80),
		Price:      manifestdraft.Price{Type: "COST", Tokens: 1},
		NumResults: d.resultRange(out.Type),
		Output:     out,
		Engine:     manifestdraft.Engine{Name: from.Engine, With: with, Include: map[string]string{"workflow": from.File}},
		Fields:     d.fields,
		Files:      map[string][]byte{from.File: from.Graph},
	}, nil
}

// manifestBuilder collects the fields and bindings of a manifest draft for a
// workflow.
type manifestBuilder struct {
	nodes   map[string]graphNode
	classes map[string]nodeClass
	order   []string

	fields []manifestdraft.Field
	bind   map[string][]string
	keys   map[string]string // field keys, by the input's name and value
	savers int               // number of nodes that save results, of any media type
}

func (d *manifestBuilder) classOf(id string) nodeClass { return d.classes[d.nodes[id].Class] }

// eachInput calls do for every input that has one of the names, takes values
// of the given kind, and is not linked to another node.
func (d *manifestBuilder) eachInput(kind string, do func(id, name string, v any, s inputSpec), names ...string) {
	for _, id := range d.order {
		for _, name := range names {
			v, ok := d.nodes[id].Inputs[name]
			s := d.classOf(id).inputSpecOf(name)
			if _, isList := v.([]any); ok && !isList && s.kind == kind {
				do(id, name, v, s)
			}
		}
	}
}

// addField binds inputs to a field, which make creates. Inputs with the same
// name and value get a common field, for example the steps of two samplers.
// Inputs with other values get fields of their own.
func (d *manifestBuilder) addField(base string, value any, places []string, make func() manifestdraft.Field) {
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

// resultRange returns how many results a run may request. The workflow makes
// them as one batch or, if a seed makes them differ, in one execution each.
func (d *manifestBuilder) resultRange(kind string) *manifestdraft.NumResults {
	const maxRunes = 4
	n := &manifestdraft.NumResults{Min: 1, Max: maxRunes, Default: 1}
	if kind == "IMG" { // for other media types, a batch is saved as one file
		d.eachInput("INT", func(id, name string, v any, _ inputSpec) {
			if !d.classOf(id).hasOutput("LATENT") {
				return
			}
			d.bind[keyResults] = append(d.bind[keyResults], id+"."+name)
			own, _ := floatOf(v)
			n.Default = int64(min(max(own, 1), 64))
			n.Max = max(n.Max, n.Default)
		}, "batch_size")
	}
	if d.bind[keyResults] == nil && d.bind[keySeed] == nil {
		return nil
	}
	return n
}

// saveNode describes a class of nodes that save results: the output type and
// media type of their files.
type saveNode struct {
	kind, mime string
}

// saveNodes are the known classes of nodes that save results. For some of them
// an input determines another format.
var saveNodes = map[string]saveNode{
	"SaveImage": {"IMG", "image/png"}, "SaveAnimatedWEBP": {"IMG", "image/webp"}, "SaveAnimatedPNG": {"IMG", "image/png"},
	"SaveVideo": {"VID", "video/mp4"}, "SaveWEBM": {"VID", "video/webm"}, "VHS_VideoCombine": {"VID", "video/mp4"},
	"SaveAudio": {"AUDIO", "audio/flac"}, "SaveAudioMP3": {"AUDIO", "audio/mpeg"}, "SaveAudioOpus": {"AUDIO", "audio/ogg"},
	"SaveGLB":    {"ASSET_3D", "model/gltf-binary"},
	"PreviewAny": {"TEXT", "text/plain"},
}

// findOutput returns the workflow's output type and the nodes that save it. If
// a workflow saves several types, such as a video and stills of it, the types
// have a fixed order of precedence.
func (d *manifestBuilder) findOutput() (manifestdraft.Output, []string, error) {
	byKind := map[string][]string{}
	mimes := map[string][]string{}
	for _, id := range d.order {
		s, ok := saveNodes[d.nodes[id].Class]
		if !ok || d.nodes[id].Inputs["save_output"] == false {
			continue
		}
		d.savers++
		if format, ok := d.nodes[id].Inputs["format"].(string); ok && d.nodes[id].Class == "VHS_VideoCombine" {
			s = parseFormat(format)
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
	known := slices.Sorted(maps.Keys(saveNodes))
	return manifestdraft.Output{}, nil, errors.New("the workflow saves nothing; it needs one of " + strings.Join(known, ", "))
}

// parseFormat parses the format input of VHS_VideoCombine nodes, such as
// video/h264-mp4 or image/gif.
func parseFormat(format string) saveNode {
	switch {
	case strings.HasPrefix(format, "image/"):
		return saveNode{"IMG", format}
	case strings.Contains(format, "webm"):
		return saveNode{"VID", "video/webm"}
	}
	return saveNode{"VID", "video/mp4"}
}

// truncateText shortens text to at most maxRunes characters.
func truncateText(text string, maxRunes int) string {
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes])
	}
	return text
}
