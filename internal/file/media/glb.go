package media

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"atelier/internal/base/fault"
)

const (
	maxScene    = 16 << 20 // the JSON part of a model
	maxText     = 1 << 20
	sceneChunk  = "JSON"
	sceneMemory = 3 // times its length, to check it
)

// findScene finds the JSON part of a GLB file (glTF 2.0, section 4.4) and checks
// that the parts fill the file.
func findScene(s *source) (span, error) {
	b, err := s.peekBytes(0, 20)
	if err != nil {
		return span{}, readError(Model, err)
	}
	if string(b[:4]) != "glTF" || binary.LittleEndian.Uint32(b[4:]) != 2 {
		return span{}, damagedError(Model, "no GLB of version 2")
	}
	if int64(binary.LittleEndian.Uint32(b[8:])) != s.size {
		return span{}, damagedError(Model, "another length than the file")
	}
	if string(b[16:]) != sceneChunk {
		return span{}, damagedError(Model, "no scene at its start")
	}
	json := span{20, 20 + int64(binary.LittleEndian.Uint32(b[12:]))}
	if json.to-json.from > maxScene {
		return span{}, fault.New(fault.Invalid, "The 3D model's scene has more than 16 MiB.").With("limit_scene_bytes", maxScene)
	}
	at := json.to
	for range maxChunks {
		if at >= s.size {
			break
		}
		if b, err = s.peekBytes(at, 8); err != nil {
			return span{}, readError(Model, err)
		}
		at += 8 + int64(binary.LittleEndian.Uint32(b))
	}
	if at != s.size {
		return span{}, damagedError(Model, "its parts do not fill it")
	}
	return json, nil
}

// checkScene reads the scene. What it refers to outside of the file is nothing
// to us: it is never fetched.
func checkScene(s *source, at span) error {
	b := make([]byte, at.to-at.from)
	if n, err := s.ReadAt(b, at.from); n < len(b) {
		return readError(Model, err)
	}
	var head struct {
		Asset *struct {
			Version string `json:"version"`
		} `json:"asset"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return wrapDamaged(Model, err)
	}
	if head.Asset == nil || head.Asset.Version == "" {
		return damagedError(Model, "no asset in its scene")
	}
	return nil
}

// checkText holds plain text to UTF-8 without NUL.
func checkText(s *source) error {
	if s.size > maxText {
		return fault.New(fault.Invalid, "The text has more than 1 MiB.")
	}
	r := bufio.NewReaderSize(s.newReader(), 4*maxPeek)
	for {
		switch c, n, err := r.ReadRune(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return readError(Text, err)
		case c == 0, c == utf8.RuneError && n == 1:
			return fault.New(fault.Invalid, "The text is not plain UTF-8.")
		}
	}
}
