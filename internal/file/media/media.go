// Package media recognises, cleans, measures and thumbnails media files.
//
//	Sniff ─▶ Clean ─▶ (the caller stores the bytes) ─▶ Examine, or Measure
//
// Every file is taken to be hostile. The bytes alone decide what it is. Sizes
// in a file are claims: nothing is allocated or repeated because of one before
// it was held against a limit or against the size of the file. Clean holds a
// few blocks in memory however long the file is. Examine walks a file's
// structure first, holds it against the limits, and only then decodes a
// picture, with memory that all decodings of the process share. Measure decodes
// none.
//
// What is wrong with a file is a *fault.Error with the code Invalid and a
// message for the person who sent it. An error of the reader comes back
// wrapped and is not the file's fault.
package media

import (
	"errors"
	"fmt"
	"io"

	"atelier/internal/base/fault"
)

// Type is what a person would call a file.
type Type string

// The types, as the interface writes them.
const (
	Image Type = "IMG"
	Video Type = "VID"
	Audio Type = "AUDIO"
	Model Type = "ASSET_3D"
	Text  Type = "TEXT"
)

// Format is a kind of file.
type Format struct {
	Type     Type
	MimeType string
	Ext      string // "png", no dot
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

// Formats lists every kind of file there is here. Plain text is the last one;
// Sniff never finds it, because whether text is welcome is not for its bytes
// to say.
func Formats() []Format {
	return []Format{
		jpegFormat, pngFormat, webpFormat, gifFormat, heicFormat, heifFormat,
		mp4Format, webmFormat, movFormat,
		mp3Format, wavFormat, flacFormat, oggFormat,
		glbFormat, textFormat,
	}
}

// displayName is the type in a message.
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
	}
	return "text"
}

// damagedError is the error for a file that breaks its own rules. What exactly is
// wrong goes to the log.
func damagedError(t Type, why string) error { return wrapDamaged(t, errors.New(why)) }

func wrapDamaged(t Type, cause error) error {
	return fault.New(fault.Invalid, "The "+t.displayName()+" is damaged or incomplete.").Because(cause)
}

// readError turns the end of a file where more had to come into the file's fault.
// Any other error is the reader's.
func readError(t Type, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damagedError(t, "it ends early")
	}
	return fmt.Errorf("read the %s: %w", t.displayName(), err)
}
