package ingest

import (
	"bytes"
	"mime"
	"slices"

	"atelier/internal/base/fault"
	"atelier/internal/file/media"
)

// acceptedTypes are the Content-Type values that a client may send: all common
// names of the supported formats, and generic types such as
// application/octet-stream.
var acceptedTypes = []string{
	"", "application/octet-stream", "binary/octet-stream",
	"image/jpeg", "image/jpg", "image/pjpeg",
	"image/png", "image/apng", "image/x-png",
	"image/webp", "image/gif",
	"image/heic", "image/heif", "image/heic-sequence", "image/heif-sequence",
	"video/mp4", "video/quicktime", "video/x-m4v", "video/webm",
	"audio/mpeg", "audio/mp3", "audio/x-mp3", "audio/mpeg3", "audio/x-mpeg",
	"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave",
	"audio/flac", "audio/x-flac",
	"audio/ogg", "application/ogg", "audio/opus", "audio/vorbis",
	"model/gltf-binary",
}

// detectFormat detects the format of a file from its first bytes and checks
// that the options allow it. It refuses a declared Content-Type outside
// acceptedTypes; otherwise only the bytes determine the format.
func detectFormat(head []byte, w Options) (media.Format, error) {
	if claimed, _, _ := mime.ParseMediaType(w.DeclaredType); !slices.Contains(acceptedTypes, claimed) {
		return media.Format{}, fault.New(fault.UnsupportedMediaType, "This Content-Type is not supported.")
	}

	f, ok := media.Sniff(head)
	if !ok && w.AllowText && len(head) > 0 && !bytes.Contains(head, []byte{0}) {
		f = media.Format{Type: media.Text, MimeType: "text/plain", Ext: "txt"}
		ok = true // MeasureFile later checks that it is plain text
	}
	if !ok {
		return f, fault.New(fault.UnsupportedMediaType, "The file type is not supported.")
	}
	if len(w.Types) > 0 && !slices.Contains(w.Types, f.Type) {
		return f, fault.New(fault.UnsupportedMediaType, "This request does not accept files of this type.").With("mime_type", f.MimeType)
	}
	return f, nil
}
