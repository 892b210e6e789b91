package openaitest

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"hash/fnv"
	"math"
)

// clip is an MP4 video of one second, tone a short MP3 sound.
var (
	//go:embed testdata/clip.mp4
	clip []byte
	//go:embed testdata/tone.mp3
	tone []byte
)

// sound returns a WAV file of a quarter of a second, with 8000 samples of 16
// bits per second. pitch is its frequency in hertz.
func sound(pitch float64) []byte {
	const rate, samples = 8000, 2000
	b := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*2)
	b = append(b, "\x02\x00\x10\x00data"...)
	b = binary.LittleEndian.AppendUint32(b, samples*2)
	for i := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(8000*math.Sin(2*math.Pi*pitch*float64(i)/rate))))
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// movie returns the test video with an additional box that players skip
// (ISO/IEC 14496-12, section 8.1.2). The box contains a hash of the given
// string, so that different strings result in different files.
func movie(from string) []byte {
	h := fnv.New64a()
	h.Write([]byte(from))
	b := bytes.Clone(clip)
	b = binary.BigEndian.AppendUint32(b, 16)
	b = append(b, "free"...)
	return binary.BigEndian.AppendUint64(b, h.Sum64())
}
