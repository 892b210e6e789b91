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

// Workflow is a graph to draft a manifest for.
type Workflow struct {
	Name   string // of the tool; "": derived from the file's name
	Graph  []byte // in API format
	File   string // name of the graph's file next to the manifest
	Engine string // name of the engine in the settings
}

// ImportTool drafts a manifest for a workflow. Usual choices become fields, with the server's
// ranges and the workflow's values as defaults; everything else stays unchanged.
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

// manifestBuilder builds a draft manifest.
type manifestBuilder struct {
	nodes   map[string]graphNode
	classes map[string]nodeClass
	order   []string

	fields []manifestdraft.Field
	bind   map[string][]string
	keys   map[string]string // keys of fields, by input and value
	savers int               // number of nodes that save results of any kind
}

func (d *manifestBuilder) classOf(id string) nodeClass { return d.classes[d.nodes[id].Class] }

// eachInput calls do for all inputs of the given names that are not links and take this kind of
// value.
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

// addField binds an input to a field. Inputs of one name with one value share a field, as the
// steps of two samplers in a workflow; other values get fields of their own.
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

// resultRange returns the number of results that one run may request: the size of a batch, or one
// more run of the workflow for each if seeds make them differ.
func (d *manifestBuilder) resultRange(kind string) *manifestdraft.NumResults {
	const maxRunes = 4
	n := &manifestdraft.NumResults{Min: 1, Max: maxRunes, Default: 1}
	if kind == "IMG" { // a batch of another type is one file
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

// saveNode is a node that saves results.
type saveNode struct {
	kind, mime string
}

// saveNodes are the known saving nodes. Their format can be an input.
var saveNodes = map[string]saveNode{
	"SaveImage": {"IMG", "image/png"}, "SaveAnimatedWEBP": {"IMG", "image/webp"}, "SaveAnimatedPNG": {"IMG", "image/png"},
	"SaveVideo": {"VID", "video/mp4"}, "SaveWEBM": {"VID", "video/webm"}, "VHS_VideoCombine": {"VID", "video/mp4"},
	"SaveAudio": {"AUDIO", "audio/flac"}, "SaveAudioMP3": {"AUDIO", "audio/mpeg"}, "SaveAudioOpus": {"AUDIO", "audio/ogg"},
	"SaveGLB":    {"ASSET_3D", "model/gltf-binary"},
	"PreviewAny": {"TEXT", "text/plain"},
}

// findOutput returns the workflow's output type and the nodes that save it. Workflows often save
// stills beside a video, so types have an order.
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

// parseFormat parses a format such as video/h264-mp4 or image/gif.
func parseFormat(format string) saveNode {
	switch {
	case strings.HasPrefix(format, "image/"):
		return saveNode{"IMG", format}
	case strings.Contains(format, "webm"):
		return saveNode{"VID", "video/webm"}
	}
	return saveNode{"VID", "video/mp4"}
}

// truncateText limits a text to maxRunes characters.
func truncateText(text string, maxRunes int) string {
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes])
	}
	return text
}
