package workflowimport

import (
	"strings"

	"atelier/internal/engine/manifestdraft"
)

// addFiles adds fields for inputs whose value is the name of an uploaded file.
func addFiles(w *workflow, f *form) {
	for _, id := range w.order {
		if !w.live[id] {
			continue
		}
		n := w.nodes[id]
		for _, name := range w.inputNames(id) {
			ref := inputRef{id, name}
			if _, isText := n.Inputs[name].(string); !isText {
				continue
			}
			base, field := fileField(n.Class, name, w.specOf(ref))
			if base == "" {
				continue
			}
			field.Help = w.titleOf(id)
			// Two nodes never have a common field, even if both have the same
			// example file.
			f.addField(base, id, []inputRef{ref}, func() manifestdraft.Field { return field })
		}
	}
}

// fileField returns the field for an input whose value is the name of an
// uploaded file, and the base of the field's key. The base is empty for other
// inputs.
func fileField(class, name string, s inputSpec) (string, manifestdraft.Field) {
	f := manifestdraft.Field{Required: true}
	var base string
	switch {
	case s.about.ImageUpload && strings.Contains(class, "Mask"):
		base = "mask"
		f.Type = "IMG"
		f.Label = "Mask"
	case s.about.ImageUpload:
		base = "picture"
		f.Type = "IMG"
		f.Label = "Picture"
	case s.about.VideoUpload, class == "VHS_LoadVideo" && name == "video":
		base = "video"
		f.Type = "VIDEO"
		f.Label = "Video"
	case s.about.AudioUpload, class == "VHS_LoadAudioUpload" && name == "audio":
		base = "audio"
		f.Type = "AUDIO"
		f.Label = "Sound"
	case strings.HasPrefix(class, "Load3D") && name == "model_file":
		base = "model_3d"
		f.Type = "ASSET_3D"
		f.Label = "3D model"
	default:
		return "", f
	}
	f.Accept = map[string][]string{
		"IMG": {"image/png", "image/jpeg", "image/webp"}, "VIDEO": {"video/mp4", "video/webm"},
		"AUDIO": {"audio/flac", "audio/mpeg", "audio/wav", "audio/ogg"}, "ASSET_3D": {"model/gltf-binary"},
	}[f.Type]
	return base, f
}
