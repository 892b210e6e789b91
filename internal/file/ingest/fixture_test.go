package ingest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/media"
)

// fixture is an ingest pipeline with a store in a folder of its own.
type fixture struct {
	*testing.T
	*ingest.Pipeline
	folder string
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	folder := t.TempDir()
	store, err := blob.Open(t.Context(), "file://"+folder, blob.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	analyzer := media.NewAnalyzer(media.Limits{Pixels: 20_000_000, Frames: 100, Duration: time.Hour})
	return fixture{t, &ingest.Pipeline{Blobs: store, Analyzer: analyzer}, folder}
}

// listFiles returns all files in the folder, including unfinished ones.
func (p fixture) listFiles() (all []string) {
	p.Helper()
	err := filepath.WalkDir(p.folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	return all
}

func (p fixture) readBlob(key string) []byte {
	p.Helper()
	b, err := os.ReadFile(filepath.Join(p.folder, "data", key))
	if err != nil {
		p.Fatal(err)
	}
	return b
}

func (p fixture) ingestFile(b []byte, w ingest.Options) ingest.StoredFile {
	p.Helper()
	stored, err := p.IngestFile(p.Context(), bytes.NewReader(b), w)
	if err != nil {
		p.Fatal(err)
	}
	return stored
}

// wantFault checks the code of an error, and that no file was left.
func (p fixture) wantFault(what string, err error, code fault.Code) *fault.Error {
	p.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code {
		p.Errorf("%s: %v, want %s", what, err, code)
		return fault.New("", "")
	}
	if left := p.listFiles(); len(left) != 0 {
		p.Errorf("%s left %v", what, left)
	}
	return f
}

const noLimit = 1 << 30

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// picture is noise with a little order, of a size.
func picture(width, height int) image.Image {
	r := rand.New(rand.NewPCG(1, uint64(width*height)))
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.Set(x, y, color.RGBA{uint8(x), uint8(y), uint8(r.Uint32()), 255})
		}
	}
	return img
}

func pngBytes(width, height int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, picture(width, height)); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// jpegBytes returns a picture with a location in its Exif data.
func jpegBytes(width, height int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, picture(width, height), nil); err != nil {
		panic(err)
	}
	exif := append([]byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00"), "GPS 51.5N 0.1W"...)
	part := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2))
	return append(append(append([]byte{0xff, 0xd8}, part...), exif...), b.Bytes()[2:]...)
}

func gifBytes(width, height int) []byte {
	var b bytes.Buffer
	if err := gif.Encode(&b, picture(width, height), nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// wavHeader returns the header of a recording with n bytes of samples.
func wavHeader(n int) []byte {
	b := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, uint32(36+n))...)
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	b = binary.LittleEndian.AppendUint32(b, 44100)
	b = binary.LittleEndian.AppendUint32(b, 88200)
	b = append(b, "\x02\x00\x10\x00data"...)
	return binary.LittleEndian.AppendUint32(b, uint32(n))
}

func wavBytes(n int) []byte { return append(wavHeader(n), make([]byte, n)...) }

// taggedWAV returns a recording with the prompt of a server in its tags.
func taggedWAV(n int) []byte {
	return append(wavBytes(n), "LIST\x14\x00\x00\x00INFOICMT\x08\x00\x00\x00SECRET!\x00"...)
}

// glbBytes is the smallest 3D model.
func glbBytes() []byte {
	scene := []byte(`{"asset":{"version":"2.0"}} `)
	b := append([]byte("glTF\x02\x00\x00\x00"), binary.LittleEndian.AppendUint32(nil, uint32(20+len(scene)))...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(scene)))
	return append(append(b, "JSON"...), scene...)
}

// endless is a reader that returns the same bytes for ever and counts them.
type endless struct {
	from []byte
	n    int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.from[(e.n+int64(n))%int64(len(e.from)):])
	}
	e.n += int64(n)
	return n, nil
}
