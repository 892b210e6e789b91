package workflowimport

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"atelier/internal/engine/comfyui/nodegraph"
	"atelier/internal/engine/manifestdraft"
)

// saver is a node that saves results.
type saver struct {
	id   string
	kind string // output type
	mime string // media type; empty if the service cannot store such files
	form string // name of the file format, for messages
	temp bool   // the files are previews, which the server deletes
	text bool   // the node only shows text
	film bool   // the node saves all pictures of a batch in one file
}

// mediaFormats are file formats by the words that formats, codecs and node
// classes have for them. A format without a media type cannot be stored.
var mediaFormats = []struct{ word, kind, mime string }{
	{"mp4", "VID", "video/mp4"}, {"webm", "VID", "video/webm"}, {"mkv", "VID", ""}, {"mov", "VID", "video/quicktime"},
	{"prores", "VID", "video/quicktime"}, {"h264", "VID", "video/mp4"}, {"h265", "VID", "video/mp4"}, {"ffv1", "VID", ""},
	{"flac", "AUDIO", "audio/flac"}, {"mp3", "AUDIO", "audio/mpeg"}, {"opus", "AUDIO", "audio/ogg"}, {"ogg", "AUDIO", "audio/ogg"},
	{"wav", "AUDIO", "audio/wav"}, {"m4a", "AUDIO", ""}, {"aac", "AUDIO", ""},
	{"png", "IMG", "image/png"}, {"jpg", "IMG", "image/jpeg"}, {"jpeg", "IMG", "image/jpeg"}, {"webp", "IMG", "image/webp"},
	{"gif", "IMG", "image/gif"}, {"avif", "IMG", ""}, {"tiff", "IMG", ""}, {"tif", "IMG", ""}, {"exr", "IMG", ""}, {"bmp", "IMG", ""}, {"svg", "IMG", ""},
	{"glb", "ASSET_3D", "model/gltf-binary"}, {"gltf", "ASSET_3D", ""}, {"obj", "ASSET_3D", ""}, {"ply", "ASSET_3D", ""}, {"stl", "ASSET_3D", ""}, {"fbx", "ASSET_3D", ""}, {"spz", "ASSET_3D", ""},
	{"txt", "TEXT", "text/plain"}, {"md", "TEXT", "text/plain"}, {"json", "TEXT", "text/plain"}, {"csv", "TEXT", "text/plain"},
}

// defaultMimes are the media types of savers whose format is not specified.
var defaultMimes = map[string]string{
	"VID": "video/mp4", "AUDIO": "audio/flac", "IMG": "image/png", "ASSET_3D": "model/gltf-binary", "TEXT": "text/plain",
}

// formatInputs are the names of inputs that choose a saver's file format.
var formatInputs = []string{"format", "file_format", "output_format", "file_type", "extension", "file_extension", "container", "image_format", "audio_format"}

// saverOf returns the node as a saver. It returns false if the node saves no
// media.
func (d *manifestBuilder) saverOf(id string) (saver, bool) {
	n := d.nodes[id]
	c := d.classOf(id)
	if !c.OutputNode {
		return saver{}, false
	}
	s := saver{id: id, kind: d.savedKind(id)}
	if s.kind == "" {
		return saver{}, false
	}
	class := strings.ToLower(n.Class)
	s.form = d.savedFormat(id, &s)
	if s.form == "" {
		s.mime = defaultMimes[s.kind]
		s.form = s.mime
	}
	prefixed := c.inputSpecOf("filename_prefix").kind == "STRING" || c.inputSpecOf("filename").kind == "STRING"
	saves := prefixed || strings.Contains(class, "save") || strings.Contains(class, "export") || strings.Contains(class, "combine") || strings.Contains(class, "write")
	s.text = s.kind == "TEXT" && !saves // text is a result where it is shown
	s.film = s.kind == "VID" || strings.Contains(class, "animated") || strings.Contains(class, "video") || s.form == "gif"
	s.temp = !s.text && (!saves || n.Inputs["save_output"] == false || strings.HasSuffix(class, "websocket"))
	return s, true
}

// savedKind returns the output type of a node's files by the values that the
// node gets, or "".
func (d *manifestBuilder) savedKind(id string) string {
	class := strings.ToLower(d.nodes[id].Class)
	found := ""
	for _, name := range d.inputNames(id) {
		l, ok := d.linkOf(place{id, name})
		if !ok {
			continue
		}
		kind := d.classOf(l.from).outputType(l.slot)
		if kind == "*" || kind == matchType {
			kind = d.specOf(place{id, name}).kind
		}
		switch {
		case kind == "VIDEO":
			return "VID"
		case kind == "IMAGE" && (strings.Contains(class, "video") || strings.Contains(class, "webm") || strings.Contains(class, "mp4")):
			found = "VID"
		case kind == "IMAGE", kind == "MASK", kind == "SVG":
			if found != "VID" {
				found = "IMG"
			}
		case kind == "AUDIO" && found == "":
			found = "AUDIO"
		case found == "" && (kind == "MESH" || kind == "VOXEL" || kind == "SPLAT" || kind == "TRIMESH" || strings.Contains(kind, "3D") || strings.Contains(kind, "GLB")):
			found = "ASSET_3D"
		case found == "" && (kind == "STRING" || d.specOf(place{id, name}).kind == "*"):
			found = "TEXT"
		}
	}
	if found == "" && strings.Contains(class, "glb") {
		return "ASSET_3D" // the file's name is a plain text
	}
	if found == "TEXT" && strings.Contains(class, "3d") {
		return "" // a viewer of a 3D model, which has the model's file name
	}
	return found
}

// savedFormat sets the media type of a saver by the node's format or by the
// name of its class. It returns the name of the format, or "" if there is
// none.
func (d *manifestBuilder) savedFormat(id string, s *saver) string {
	n := d.nodes[id]
	var said []string
	for _, name := range d.inputNames(id) {
		if text, ok := n.Inputs[name].(string); ok && slices.Contains(formatInputs, lastPart(name)) {
			said = append(said, text)
		}
	}
	said = append(said, n.Class)
	for i, text := range said {
		words := splitName(text)
		if i == len(said)-1 { // the name of a class has no separators
			words = []string{strings.ToLower(text)}
		}
		for _, f := range mediaFormats {
			match := slices.Contains(words, f.word)
			if i == len(said)-1 {
				match = len(f.word) > 2 && strings.Contains(words[0], f.word)
			}
			if !match || f.kind != s.kind && (f.kind != "IMG" && f.kind != "VID" || s.kind != "IMG" && s.kind != "VID") {
				continue
			}
			if i < len(said)-1 && strings.HasPrefix(strings.ToLower(text), "image/") { // of VHS_VideoCombine
				s.kind = "IMG"
			} else {
				s.kind = f.kind
			}
			s.mime = f.mime
			return f.word
		}
	}
	return ""
}

// findOutput determines the workflow's output type and the nodes that save it.
// If a workflow saves several types, such as a video and stills of it, the
// types have a fixed order of precedence. If the workflow's author chose
// outputs for App mode, only those count.
func (d *manifestBuilder) findOutput() error {
	var chosen []string
	if d.app != nil {
		chosen = d.app.outputs
	}
	all := d.listSavers(chosen)
	if len(all) == 0 && len(chosen) > 0 {
		d.warn("The outputs that the author chose save nothing; all savers of the workflow count.")
		all = d.listSavers(nil)
	}
	if !slices.ContainsFunc(all, func(s saver) bool { return !s.temp }) {
		all = d.convertPreviews(all)
	}
	all = slices.DeleteFunc(all, func(s saver) bool { return s.temp })
	if len(all) == 0 {
		return d.refuseOutput()
	}
	all = d.convertFormats(all)
	kinds := []string{"VID", "ASSET_3D", "AUDIO", "IMG", "TEXT"}
	storable := func(s saver) bool { return s.mime != "" }
	for _, kind := range kinds {
		d.savers = slices.DeleteFunc(slices.Clone(all), func(s saver) bool { return s.kind != kind || !storable(s) })
		if len(d.savers) > 0 {
			break
		}
	}
	for _, s := range all {
		switch {
		case !storable(s):
			d.warn(fmt.Sprintf("The results of node %s (%s) are left out: files of the format %s cannot be stored.", s.id, d.nodes[s.id].Class, s.form))
		case len(d.savers) > 0 && s.kind != d.savers[0].kind && !s.text:
			d.note(fmt.Sprintf("The results of node %s (%s, %s) are left out: a tool has results of one type, here %s.", s.id, d.nodes[s.id].Class, s.mime, d.savers[0].kind))
		}
	}
	if len(d.savers) == 0 {
		return fmt.Errorf("the workflow saves only files of the format %s, which cannot be stored; change the format of node %s (%s) in the workflow", all[0].form, all[0].id, d.nodes[all[0].id].Class)
	}
	d.output = manifestdraft.Output{Type: d.savers[0].kind}
	for _, s := range d.savers {
		if !slices.Contains(d.output.MimeTypes, s.mime) {
			d.output.MimeTypes = append(d.output.MimeTypes, s.mime)
		}
		d.results = append(d.results, s.id)
	}
	d.allSavers = len(all)
	return nil
}

// refuseOutput returns the error for a workflow that saves nothing.
func (d *manifestBuilder) refuseOutput() error {
	var shown []string
	for _, id := range d.order {
		if d.classOf(id).OutputNode {
			shown = append(shown, fmt.Sprintf("%s (%s)", id, d.nodes[id].Class))
		}
	}
	end := "it needs a node that saves pictures, video, sound, 3D models or text, such as SaveImage or SaveVideo"
	if len(shown) == 0 {
		return errors.New("the workflow saves nothing: " + end)
	}
	return fmt.Errorf("the workflow saves nothing that can be a result; %s only shows something: %s", truncateText(strings.Join(shown, ", "), 300), end)
}

// listSavers returns the nodes that save results or show previews. If chosen
// is not empty, only the nodes in it count.
func (d *manifestBuilder) listSavers(chosen []string) []saver {
	var all []saver
	for _, id := range d.order {
		if len(chosen) > 0 && !slices.Contains(chosen, id) {
			continue
		}
		if s, ok := d.saverOf(id); ok {
			all = append(all, s)
		}
	}
	return all
}

// convertPreviews makes the previews of a workflow that saves nothing save
// their pictures or sound instead.
func (d *manifestBuilder) convertPreviews(all []saver) []saver {
	for i, s := range all {
		n := d.nodes[s.id]
		if n.Inputs["save_output"] == false {
			n.Inputs["save_output"] = true
			all[i].temp = false
			d.note(fmt.Sprintf("Node %s (%s) saves its files in the output folder now, because the workflow saved nothing.", s.id, n.Class))
			continue
		}
		to := map[string]string{"PreviewImage": "SaveImage", "SaveImageWebsocket": "SaveImage", "PreviewAudio": "SaveAudio"}[n.Class]
		if _, known := d.classes[to]; !known {
			continue
		}
		if n.Meta != nil && n.Meta.Title == d.classOf(s.id).DisplayName {
			n.Meta = nil
		}
		d.note(fmt.Sprintf("Node %s was a preview (%s) and is %s now, because the workflow saved nothing.", s.id, n.Class, to))
		n.Class = to
		n.Inputs["filename_prefix"] = "atelier"
		d.nodes[s.id] = n
		all[i].temp = false
		d.changed = true
	}
	if slices.ContainsFunc(all, func(s saver) bool { return !s.temp }) {
		d.changed = true
	}
	return all
}

// convertFormats changes the format of savers whose files cannot be stored to
// one that can, if the node has one.
func (d *manifestBuilder) convertFormats(all []saver) []saver {
	for i, s := range all {
		if s.mime != "" {
			continue
		}
		n := d.nodes[s.id]
		for _, name := range d.inputNames(s.id) {
			spec := d.specOf(place{s.id, name})
			at := slices.Index(spec.options, any("mp4"))
			if s.kind != "VID" || spec.kind != combo || !slices.Contains(formatInputs, name) || at < 0 {
				continue
			}
			d.warn(fmt.Sprintf("The format of node %s (%s) is mp4 now, because files of the format %s cannot be stored.", s.id, n.Class, s.form))
			n.Inputs[name] = "mp4"
			if codec := d.specOf(place{s.id, "codec"}); slices.Contains(codec.options, any("auto")) {
				n.Inputs["codec"] = "auto"
			}
			all[i].mime = "video/mp4"
			all[i].form = "mp4"
			d.changed = true
		}
	}
	return all
}

// isFilm reports whether a batch of pictures is saved as one file.
func (d *manifestBuilder) isFilm() bool {
	return slices.ContainsFunc(d.savers, func(s saver) bool { return s.film })
}

// resultRange returns how many results a run may request. The workflow makes
// them as one batch or, if a seed makes them differ, in one execution each. If
// several nodes save results, every execution has a result of each.
func (d *manifestBuilder) resultRange() *manifestdraft.NumResults {
	const most = 4 // executions per run
	n := &manifestdraft.NumResults{Min: 1, Max: most, Default: 1}
	batch := int64(1)
	if d.output.Type == "IMG" && !d.isFilm() {
		d.eachInput(intKind, func(p, from place, v any, _ inputSpec) {
			if !d.classOf(p.id).hasOutput("LATENT") {
				return
			}
			own, _ := floatOf(v)
			batch = max(batch, int64(min(max(own, 1), 64)))
			if len(d.savers) == 1 {
				d.bindPlace(nodegraph.KeyResults, from)
			} else {
				d.leaveFixed(from, "several nodes save results")
			}
		}, "batch_size")
	}
	if count := int64(len(d.savers)); count > 1 {
		n.Min = min(count*batch, 64)
		n.Max = n.Min
		if d.bind[nodegraph.KeySeed] != nil {
			n.Max = min(most*n.Min, 64)
		}
		n.Default = n.Min
		return n
	}
	if d.bind[nodegraph.KeyResults] == nil && d.bind[nodegraph.KeySeed] == nil {
		return nil
	}
	n.Default = batch
	n.Max = max(n.Max, batch)
	return n
}
