// Package media recognises media files, removes their metadata, determines
// their properties and makes thumbnails.
//
//	Sniff ─▶ Clean ─▶ (the caller stores the bytes) ─▶ AnalyzeFile or MeasureFile
//
// Every file is treated as hostile. Only the bytes determine its format. Sizes
// in a file are not trusted: each is checked against a limit or the file size
// before it determines an allocation or a loop. Clean needs memory for only a
// few blocks, however long the file is. AnalyzeFile parses the structure of a
// file and checks the limits before it decodes a picture, with memory from a
// budget of the whole process. MeasureFile decodes nothing.
//
// For a damaged file the error is a *fault.Error with code Invalid and a
// message for the person who sent it. An error of the reader is returned
// wrapped and does not count as damage of the file.
package media

import (
	"errors"
	"fmt"
	"io"

	"atelier/internal/base/fault"
)

// Type is the general type of a media file, such as picture or video.
type Type string

// The types of media files. The values are their names in the API.
const (
	Image Type = "IMG"
	Video Type = "VID"
	Audio Type = "AUDIO"
	Model Type = "ASSET_3D"
	Text  Type = "TEXT"
)

// Format is a supported file format.
type Format struct {
	Type     Type
	MimeType string
	Ext      string // file extension without a dot, such as "png"
}

var (
	jpegFormat = Format{Image, "image/jpeg", "jpg"}
	pngFormat  = Format{Image, "image/png", "png"}
	webpFormat = Format{Image, "image/webp", "webp"}
	gifFormat  = Format{Image, "image/gif", "gif"}
	heicFormat = Format{Image, "image/heic", "heic"}
	heifFormat = Format{Image, "image/heif", "heif"}
	mp4Format  = Format{Video, "video/mp4", "mp4"}
	webmFormat = Format{Video, "video/webm", "webm"}
	movFormat  = Format{Video, "video/quicktime", "mov"}
	mp3Format  = Format{Audio, "audio/mpeg", "mp3"}
	wavFormat  = Format{Audio, "audio/wav", "wav"}
	flacFormat = Format{Audio, "audio/flac", "flac"}
	oggFormat  = Format{Audio, "audio/ogg", "ogg"}
	glbFormat  = Format{Model, "model/gltf-binary", "glb"}
	textFormat = Format{Text, "text/plain", "txt"}
)

// Formats lists all supported formats. Plain text is the last one; Sniff never
// returns it, because the caller decides whether text is allowed.
func Formats() []Format {
	return []Format{
		jpegFormat, pngFormat, webpFormat, gifFormat, heicFormat, heifFormat,
		mp4Format, webmFormat, movFormat,
		mp3Format, wavFormat, flacFormat, oggFormat,
		glbFormat, textFormat,
	}
}

// displayName returns the type's name for messages to people.
func (t Type) displayName() string {
	switch t {
	case Image:
		return "picture"
	case Video:
		return "video"
	case Audio:
		return "recording"
	case Model:
		return "3D model"
	case Text:
		return "text"
	}
	return "file"
}

// damagedError returns the error for a file with an invalid structure. The
// reason is logged but not shown to people.
func damagedError(t Type, why string) error { return wrapDamaged(t, errors.New(why)) }

func wrapDamaged(t Type, cause error) error {
	return fault.New(fault.Invalid, "The "+t.displayName()+" is damaged or incomplete.").Because(cause)
}

// readError converts a read error: an unexpected end means a damaged file, and
// any other error is a failure of the reader.
func readError(t Type, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damagedError(t, "unexpected end of file")
	}
	return fmt.Errorf("read %s: %w", t.displayName(), err)
}
