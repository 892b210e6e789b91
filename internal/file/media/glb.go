package media

import (
	"encoding/binary"
	"encoding/json"

	"atelier/internal/base/fault"
)

const (
	maxScene    = 16 << 20 // maximum size of the JSON chunk, in bytes
	sceneChunk  = "JSON"
	sceneMemory = 3 // memory for parsing, as a multiple of the chunk's size
)

// findScene returns the position of the JSON chunk in a GLB file (glTF 2.0,
// section 4.4) and checks that the chunks fill the file.
func findScene(s *source) (span, error) {
	b, err := s.peekBytes(0, 20)
	if err != nil {
		return span{}, readError(Model, err)
	}
	if string(b[:4]) != "glTF" || binary.LittleEndian.Uint32(b[4:]) != 2 {
		return span{}, damagedError(Model, "the file is not GLB version 2")
	}
	if int64(binary.LittleEndian.Uint32(b[8:])) != s.size {
		return span{}, damagedError(Model, "the length in the header differs from the file size")
	}
	if string(b[16:]) != sceneChunk {
		return span{}, damagedError(Model, "the first chunk is not JSON")
	}

	json := span{20, 20 + int64(binary.LittleEndian.Uint32(b[12:]))}
	if json.to-json.from > maxScene {
		return span{}, fault.New(fault.Invalid, "The scene of the 3D model is larger than 16 MiB.").With("limit_scene_bytes", maxScene)
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
		return span{}, damagedError(Model, "the chunks do not end at the end of the file")
	}
	return json, nil
}

// checkScene parses the JSON chunk of a GLB file. It never fetches the
// external resources that the chunk refers to.
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
		return damagedError(Model, "the scene has no asset property")
	}
	return nil
}
