package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/base/config"
	"atelier/internal/base/sanitize"
	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/engine/a1111"
	"atelier/internal/engine/builtin/imageengine"
	"atelier/internal/engine/builtin/music"
	"atelier/internal/engine/builtin/speech"
	"atelier/internal/engine/builtin/tiny"
	"atelier/internal/engine/builtin/video"
	"atelier/internal/engine/cog"
	"atelier/internal/engine/comfyui"
	"atelier/internal/engine/execengine"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/openai"
	"atelier/internal/engine/replicate"
	"atelier/internal/file/media"
)

// shippedManuals returns the manifest specifications of the built-in engines
// by engine name, including engines whose programs are not installed.
func shippedManuals() map[string]engine.ManifestSpec {
	all := map[string]engine.ManifestSpec{
		imageEngine:  imageengine.ManifestSpec(),
		tinyEngine:   tiny.ManifestSpec(),
		speechEngine: speech.ManifestSpec(),
		musicEngine:  music.ManifestSpec(),
		videoEngine:  video.ManifestSpec(),
	}
	addTestManuals(all)
	return all
}

// backendManuals has the manifest specifications of the kinds of model
// servers.
var backendManuals = map[string]func() engine.ManifestSpec{
	config.Cog:       cog.ManifestSpec,
	config.ComfyUI:   comfyui.ManifestSpec,
	config.OpenAI:    openai.ManifestSpec,
	config.A1111:     a1111.ManifestSpec,
	config.Replicate: replicate.ManifestSpec,
	config.Fal:       fal.ManifestSpec,
	config.Exec:      execengine.ManifestSpec,
}

// toolInspector finds the tools that the configured engines cannot run.
type toolInspector struct {
	manuals  map[string]engine.ManifestSpec // by engine name
	shipped  []string
	backends []string
	noFile   bool // --backends is not set
}

// newInspector returns an inspector for the built-in engines and the
// configured model servers.
func (in *installation) newInspector() (*toolInspector, error) {
	backends, err := in.readBackends()
	if err != nil {
		return nil, err
	}
	manuals := shippedManuals()
	inspector := &toolInspector{
		manuals:  manuals,
		shipped:  slices.Sorted(maps.Keys(manuals)),
		backends: slices.Sorted(maps.Keys(backends)),
		noFile:   in.cfg.Backends == "",
	}
	for name, b := range backends {
		if manual, ok := backendManuals[b.Engine]; ok {
			manuals[name] = manual()
		}
	}
	return inspector, nil
}

// inspectTool returns remarks about a tool whose engine does not exist or does
// not accept the tool's settings, and about unknown media types.
func (in *toolInspector) inspectTool(t *catalog.Tool) (all []catalog.Remark) {
	manual, known := in.manuals[t.Engine.Name]
	switch {
	case t.Engine.Name == "" || t.IsFlow(): // the catalog reports problems of these
	case !known:
		all = append(all, catalog.Remark{Path: []string{"engine", "name"}, Message: in.unknownEngine(t.Engine.Name)})
	default:
		for _, misuse := range manual.FindProblems(t.Engine.With) {
			path := []string{"engine", "with"}
			if misuse.Key != "" {
				path = append(path, misuse.Key)
			}
			all = append(all, catalog.Remark{Path: path, Message: misuse.Message})
		}
	}
	for i, name := range t.Output.MimeTypes {
		all = append(all, inspectMime([]string{"output", "mime_types", strconv.Itoa(i)}, name)...)
	}
	return append(all, inspectFields([]string{"fields"}, t.Fields)...)
}

// unknownEngine returns an error message that lists the engines that exist.
func (in *toolInspector) unknownEngine(name string) string {
	text := "there is no engine " + name
	if near := sanitize.Nearest(name, slices.Concat(in.shipped, in.backends)); near != "" {
		text += " (did you mean " + near + "?)"
	}
	text += "; the built-in engines are " + strings.Join(in.shipped, ", ")
	switch {
	case in.noFile:
		return text + "; no model servers are configured, because --backends is not set"
	case len(in.backends) == 0:
		return text + "; the file that --backends names lists no model servers"
	}
	return text + "; the file that --backends names lists " + strings.Join(in.backends, ", ")
}

// inspectFields returns remarks about unknown media types that the fields of
// an input form accept.
func inspectFields(path []string, fields []catalog.Field) (all []catalog.Remark) {
	for i, f := range fields {
		at := append(slices.Clone(path), strconv.Itoa(i))
		for j, name := range f.Display.Accept {
			all = append(all, inspectMime(append(slices.Clone(at), "accept", strconv.Itoa(j)), name)...)
		}
		all = append(all, inspectFields(append(slices.Clone(at), "fields"), f.Children)...)
	}
	return all
}

func inspectMime(path []string, name string) []catalog.Remark {
	var known []string
	for _, f := range media.Formats() {
		known = append(known, f.MimeType)
	}
	if slices.Contains(known, name) {
		return nil
	}
	text := fmt.Sprintf("the media type %s is not supported", name)
	if near := sanitize.Nearest(name, known); near != "" {
		text += " (did you mean " + near + "?)"
	}
	return []catalog.Remark{{Path: path, Message: text + "; the supported types are " + strings.Join(known, ", ")}}
}
