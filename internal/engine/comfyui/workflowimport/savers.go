package workflowimport

import (
	"fmt"
	"slices"
	"strings"
)

// saver is a node that saves results.
type saver struct {
	id     string
	kind   string // output type
	mime   string // media type; empty if the service cannot store such files
	format string // name of the file format, for messages
	temp   bool   // the files are previews, which the server deletes
	text   bool   // the node only shows text
	film   bool   // the node saves all pictures of a batch in one file
}

// isStorable reports whether the service can store the files.
func (s saver) isStorable() bool { return s.mime != "" }

// mediaFormats are file formats, with the words for them in names of formats,
// codecs and node classes. A format without a media type cannot be stored.
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
func (o *outputFinder) saverOf(id string) (saver, bool) {
	n := o.workflow.nodes[id]
	c := o.workflow.classOf(id)
	if !c.OutputNode {
		return saver{}, false
	}
	s := saver{id: id, kind: o.savedKind(id)}
	if s.kind == "" {
		return saver{}, false
	}
	class := strings.ToLower(n.Class)
	s.format = o.savedFormat(id, &s)
	if s.format == "" {
		s.mime = defaultMimes[s.kind]
		s.format = s.mime
	}
	prefixed := c.inputSpecOf("filename_prefix").kind == "STRING" || c.inputSpecOf("filename").kind == "STRING"
	saves := prefixed || strings.Contains(class, "save") || strings.Contains(class, "export") || strings.Contains(class, "combine") || strings.Contains(class, "write")
	s.text = s.kind == "TEXT" && !saves // the node shows text without saving it
	s.film = s.kind == "VID" || strings.Contains(class, "animated") || strings.Contains(class, "video") || s.format == "gif"
	s.temp = !s.text && (!saves || n.Inputs["save_output"] == false || strings.HasSuffix(class, "websocket"))
	return s, true
}

// savedKind returns the output type of a node's files, derived from the types
// of the values that the node receives. It returns "" if the node saves no
// media.
func (o *outputFinder) savedKind(id string) string {
	class := strings.ToLower(o.workflow.nodes[id].Class)
	found := ""
	for _, name := range o.workflow.inputNames(id) {
		l, ok := o.workflow.linkOf(inputRef{id, name})
		if !ok {
			continue
		}
		kind := o.workflow.classOf(l.from).outputType(l.slot)
		if kind == "*" || kind == matchType {
			kind = o.workflow.specOf(inputRef{id, name}).kind
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
		case found == "" && (kind == "STRING" || o.workflow.specOf(inputRef{id, name}).kind == "*"):
			found = "TEXT"
		}
	}
	if found == "" && strings.Contains(class, "glb") {
		return "ASSET_3D" // the model's file name is plain text
	}
	if found == "TEXT" && strings.Contains(class, "3d") {
		return "" // a viewer of a 3D model, whose input is the model's file name
	}
	return found
}

// savedFormat sets the media type of a saver, derived from the node's format or
// the name of its class. It returns the name of the format, or "" if there is
// none.
func (o *outputFinder) savedFormat(id string, s *saver) string {
	n := o.workflow.nodes[id]
	var formats []string
	for _, name := range o.workflow.inputNames(id) {
		if text, ok := n.Inputs[name].(string); ok && slices.Contains(formatInputs, lastPart(name)) {
			formats = append(formats, text)
		}
	}
	formats = append(formats, n.Class)
	for i, text := range formats {
		words := splitName(text)
		if i == len(formats)-1 { // the name of a class has no separators
			words = []string{strings.ToLower(text)}
		}
		for _, f := range mediaFormats {
			match := slices.Contains(words, f.word)
			if i == len(formats)-1 {
				match = len(f.word) > 2 && strings.Contains(words[0], f.word)
			}
			if !match || f.kind != s.kind && (f.kind != "IMG" && f.kind != "VID" || s.kind != "IMG" && s.kind != "VID") {
				continue
			}
			if i < len(formats)-1 && strings.HasPrefix(strings.ToLower(text), "image/") { // such as "image/gif" in VHS_VideoCombine
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

// convertPreviews turns the preview nodes of a workflow that saves nothing into
// nodes that save their pictures or sound.
func (o *outputFinder) convertPreviews(all []saver) []saver {
	for i, s := range all {
		n := o.workflow.nodes[s.id]
		if n.Inputs["save_output"] == false {
			n.Inputs["save_output"] = true
			all[i].temp = false
			o.report.addNote(fmt.Sprintf("Node %s (%s) saves its files in the output folder now, because the workflow saved nothing.", s.id, n.Class))
			continue
		}
		to := map[string]string{"PreviewImage": "SaveImage", "SaveImageWebsocket": "SaveImage", "PreviewAudio": "SaveAudio"}[n.Class]
		if _, known := o.workflow.classes[to]; !known {
			continue
		}
		if n.Meta != nil && n.Meta.Title == o.workflow.classOf(s.id).DisplayName {
			n.Meta = nil
		}
		o.report.addNote(fmt.Sprintf("Node %s was a preview (%s) and is %s now, because the workflow saved nothing.", s.id, n.Class, to))
		n.Class = to
		n.Inputs["filename_prefix"] = "atelier"
		o.workflow.nodes[s.id] = n
		all[i].temp = false
		o.workflow.changed = true
	}
	if slices.ContainsFunc(all, func(s saver) bool { return !s.temp }) {
		o.workflow.changed = true
	}
	return all
}

// convertFormats makes savers whose files cannot be stored use a format that
// can be stored, if the node supports one.
func (o *outputFinder) convertFormats(all []saver) []saver {
	for i, s := range all {
		if s.isStorable() {
			continue
		}
		n := o.workflow.nodes[s.id]
		for _, name := range o.workflow.inputNames(s.id) {
			spec := o.workflow.specOf(inputRef{s.id, name})
			at := slices.Index(spec.options, any("mp4"))
			if s.kind != "VID" || spec.kind != combo || !slices.Contains(formatInputs, name) || at < 0 {
				continue
			}
			o.report.addWarning(fmt.Sprintf("The format of node %s (%s) is mp4 now, because files of the format %s cannot be stored.", s.id, n.Class, s.format))
			n.Inputs[name] = "mp4"
			if codec := o.workflow.specOf(inputRef{s.id, "codec"}); slices.Contains(codec.options, any("auto")) {
				n.Inputs["codec"] = "auto"
			}
			all[i].mime = "video/mp4"
			all[i].format = "mp4"
			o.workflow.changed = true
		}
	}
	return all
}

// listSavers returns the nodes that save results or show previews. If chosen
// is not empty, only the nodes in it count.
func (o *outputFinder) listSavers(chosen []string) []saver {
	var all []saver
	for _, id := range o.workflow.order {
		if len(chosen) > 0 && !slices.Contains(chosen, id) {
			continue
		}
		if s, ok := o.saverOf(id); ok {
			all = append(all, s)
		}
	}
	return all
}
