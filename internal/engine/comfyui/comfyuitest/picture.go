package comfyuitest

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
	"maps"
	"slices"
)

// PictureWithTexts returns a PNG file with text chunks, such as the chunks
// prompt and workflow of the pictures that ComfyUI saves.
func PictureWithTexts(texts map[string]string) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 8, 8))); err != nil {
		panic(err)
	}
	picture := b.Bytes()
	const head = 8 + 25 // length of the signature and the first chunk
	file := slices.Clone(picture[:head])
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		chunk := append([]byte("tEXt"+key+"\x00"), texts[key]...)
		file = binary.BigEndian.AppendUint32(file, uint32(len(chunk)-4))
		file = append(file, chunk...)
		file = binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(chunk))
	}
	return append(file, picture[head:]...)
}
