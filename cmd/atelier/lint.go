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

// shippedManuals are of the engines that ship, by the names that manifests have,
// whether their programs are here or not.
func shippedManuals() map[string]engine.Manual {
	all := map[string]engine.Manual{
		imageEngine:  imageengine.Manual(),
		tinyEngine:   tiny.Manual(),
		speechEngine: speech.Manual(),
		musicEngine:  music.Manual(),
		videoEngine:  video.Manual(),
	}
	addTestManuals(all)
	return all
}

// backendManuals are of the kinds of servers that settings can name.
var backendManuals = map[string]func() engine.Manual{
	config.Cog:       cog.Manual,
	config.ComfyUI:   comfyui.Manual,
	config.OpenAI:    openai.Manual,
	config.A1111:     a1111.Manual,
	config.Replicate: replicate.Manual,
	config.Fal:       fal.Manual,
	config.Exec:      execengine.Manual,
}

// inspector finds what tools could not run with on the engines that there are.
type inspector struct {
	manuals  map[string]engine.Manual // by the name that manifests have
	shipped  []string
	backends []string
	noFile   bool // no file of backends is named
}

// newInspector knows the engines that ship and the operator's servers.
func (p *program) newInspector() (*inspector, error) {
	backends, err := p.backends()
	if err != nil {
		return nil, err
	}
	manuals := shippedManuals()
	in := &inspector{
		manuals:  manuals,
		shipped:  slices.Sorted(maps.Keys(manuals)),
		backends: slices.Sorted(maps.Keys(backends)),
		noFile:   p.cfg.Backends == "",
	}
	for name, b := range backends {
		if manual, ok := backendManuals[b.Engine]; ok {
			manuals[name] = manual()
		}
	}
	return in, nil
}

// inspect remarks on a tool's engine, on what the tool asks of it, and on media
// types that there are not.
func (in *inspector) inspect(t *catalog.Tool) (all []catalog.Remark) {
	manual, known := in.manuals[t.Engine.Name]
	switch {
	case t.Engine.Name == "": // which is reported
	case !known:
		all = append(all, catalog.Remark{Path: []string{"engine", "name"}, Message: in.unknownEngine(t.Engine.Name)})
	default:
		for _, misuse := range manual.Inspect(t.Engine.With) {
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

// unknownEngine says that nothing has the name, and which names there are.
func (in *inspector) unknownEngine(name string) string {
	text := "there is no engine " + name
	if near := sanitize.Nearest(name, slices.Concat(in.shipped, in.backends)); near != "" {
		text += " (did you mean " + near + "?)"
	}
	text += "; shipped are " + strings.Join(in.shipped, ", ")
	switch {
	case in.noFile:
		return text + "; no servers are named, as --backends is not given"
	case len(in.backends) == 0:
		return text + "; the file of --backends names no servers"
	}
	return text + "; the file of --backends has " + strings.Join(in.backends, ", ")
}

// inspectFields looks at the media types that the fields of a form take.
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
	text := fmt.Sprintf("no files of type %s are taken or made here", name)
	if near := sanitize.Nearest(name, known); near != "" {
		text += " (did you mean " + near + "?)"
	}
	return []catalog.Remark{{Path: path, Message: text + "; there are " + strings.Join(known, ", ")}}
}
