package intake

import (
	"bytes"
	"mime"
	"slices"

	"atelier/internal/fault"
	"atelier/internal/media"
)

// family has the names by which senders call formats. Types of one family are
// one kind of thing: cameras and browsers mix up their names.
var family = map[string]string{
	"image/jpeg": "jpeg", "image/jpg": "jpeg", "image/pjpeg": "jpeg",
	"image/png": "png", "image/apng": "png", "image/x-png": "png",
	"image/webp": "webp",
	"image/gif":  "gif",
	"image/heic": "heif", "image/heif": "heif", "image/heic-sequence": "heif", "image/heif-sequence": "heif",
	"image/avif":    "avif",
	"image/bmp":     "bmp",
	"image/tiff":    "tiff",
	"image/svg+xml": "svg",
	"video/mp4":     "mp4", "video/quicktime": "mp4", "video/x-m4v": "mp4", "video/3gpp": "mp4", "audio/mp4": "mp4", "audio/x-m4a": "mp4",
	"video/webm": "webm", "audio/webm": "webm", "video/x-matroska": "webm",
	"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/x-mp3": "mp3", "audio/mpeg3": "mp3", "audio/x-mpeg": "mp3",
	"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav",
	"audio/flac": "flac", "audio/x-flac": "flac",
	"audio/ogg": "ogg", "application/ogg": "ogg", "video/ogg": "ogg", "audio/opus": "ogg", "audio/vorbis": "ogg",
	"audio/aac": "aac", "audio/aacp": "aac",
	"model/gltf-binary": "glb",
}

// recognise tells the format from the first bytes and whether it is wanted.
func recognise(head []byte, w Want) (media.Format, error) {
	f, ok := media.Sniff(head)
	if !ok && w.Text && len(head) > 0 && !bytes.Contains(head, []byte{0}) {
		f, ok = media.Format{Type: media.Text, MimeType: "text/plain", Ext: "txt"}, true // if a closer look finds it plain
	}
	if !ok {
		return f, fault.New(fault.UnsupportedMediaType, "The file is of no type that is accepted here.")
	}
	if len(w.Types) > 0 && !slices.Contains(w.Types, f.Type) {
		return f, fault.New(fault.UnsupportedMediaType, "A file of this type is not accepted here.").With("mime_type", f.MimeType)
	}
	if claimed, _, _ := mime.ParseMediaType(w.Declared); family[claimed] != "" && family[claimed] != family[f.MimeType] {
		return f, fault.New(fault.UnsupportedMediaType, "The file is not what its Content-Type says.").With("mime_type", f.MimeType)
	}
	return f, nil
}
