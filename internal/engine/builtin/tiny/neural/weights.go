package neural

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // for the weights
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"atelier/internal/engine/builtin/tiny/kernel"
)

// The files that model/export.py writes. They are embedded as strings, which
// are not copied into memory and whose unused parts are not read from disk.
var (
	//go:embed weights/model.json
	modelIndex string
	//go:embed weights/model.0.bin
	model0 string
	//go:embed weights/model.1.bin
	model1 string
	//go:embed weights/words.txt
	wordList string
	//go:embed weights/words.bin
	wordVectors string
	//go:embed weights/upscale.json
	upscaleIndex string
	//go:embed weights/upscale.bin
	upscale0 string
)

// embeddedFiles returns the contents of the embedded files by name.
func embeddedFiles() map[string]string {
	return map[string]string{
		"model.json": modelIndex, "model.0.bin": model0, "model.1.bin": model1, "words.txt": wordList, "words.bin": wordVectors,
		"upscale.json": upscaleIndex, "upscale.bin": upscale0,
	}
}

// weightIndex describes a network and the positions of its tensors in the
// weight files.
type weightIndex struct {
	Format  string
	Config  config
	TextLen int     `json:"text_len"`
	Norm    float64 `json:"vector_norm"` // length of the vector of each word
	Sampler sampler
	Files   []weightFile
	Tensors []tensor
}

// config has the dimensions of a network. The picture model and the upscaler
// use different fields.
type config struct {
	Res, Patch               int // side lengths in pixels of the picture, and of the patch for one token
	D, Depth, Heads, Hid     int // transformer: width, number of blocks, number of heads, hidden width
	Dt, TDepth, THeads, THid int // text encoder: width, number of blocks, number of heads, hidden width
	Bott, Ch, Cw             int // numbers of channels of an input patch, of an output pixel and of the convolutions
	Theta                    float64
	Learned                  int // words with a number below this have a learned embedding

	Channels, Layers, Scale int // upscaler: channels, number of layers, factor of enlargement
}

type sampler struct {
	Name  string
	Shift float64
	Steps int
}

type weightFile struct {
	Name   string
	Size   int
	SHA256 string
}

type tensor struct {
	Name, Kind   string
	Shape        []int
	File, Offset int
}

// maxTensorSize is the largest allowed number of values of a tensor. The size
// in a damaged index is checked against this limit before the size is used.
const maxTensorSize = 1 << 25

// byteSize returns the size of a tensor in bytes. It returns -1 if the tensor
// is invalid.
func (t tensor) byteSize() int {
	n := 1
	for _, d := range t.Shape {
		if d < 1 || d > maxTensorSize/n {
			return -1
		}
		n *= d
	}
	switch {
	case t.Kind == "half":
		return 2 * n
	case t.Kind == "matrix" && len(t.Shape) == 2:
		return padToPanel(t.Shape[1]) * (4 + t.Shape[0])
	case t.Kind == "rows" && len(t.Shape) == 2:
		return 4*t.Shape[0] + n
	}
	return -1
}

// tensorStore reads the tensors that are described by an index. It records
// missing and unexpected tensors, so that callers need not check for errors
// after each tensor.
type tensorStore struct {
	index   weightIndex
	parts   []string
	tensors map[string]tensor // tensors that have not been read yet, by name
	err     error
}

// openStore reads an index and checks the sizes of the files and the positions
// of the tensors.
func openStore(name, format string, files map[string]string) (*tensorStore, error) {
	s := &tensorStore{tensors: map[string]tensor{}}
	if err := json.Unmarshal([]byte(files[name]), &s.index); err != nil {
		return nil, fmt.Errorf("weights: %s: %w", name, err)
	}
	if s.index.Format != format {
		return nil, fmt.Errorf("weights: %s has format %q, want %q", name, s.index.Format, format)
	}
	for _, f := range s.index.Files {
		data, ok := files[f.Name]
		switch {
		case !ok:
			return nil, fmt.Errorf("weights: %s is missing", f.Name)
		case len(data) != f.Size:
			return nil, fmt.Errorf("weights: %s is damaged: it has %d bytes instead of %d", f.Name, len(data), f.Size)
		}
		s.parts = append(s.parts, data)
	}
	return s, s.checkOffsets()
}

// checkOffsets returns an error if a tensor is outside of its file or overlaps
// another.
func (s *tensorStore) checkOffsets() error {
	all := slices.SortedFunc(slices.Values(s.index.Tensors), func(a, b tensor) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	})
	file := 0
	end := 0
	for _, t := range all {
		if t.File != file {
			file = t.File
			end = 0
		}
		size := t.byteSize()
		_, twice := s.tensors[t.Name]
		if file < 0 || file >= len(s.parts) || size < 0 || t.Offset < end || t.Offset > len(s.parts[file])-size || twice {
			return fmt.Errorf("weights: tensor %s is outside its file or overlaps another", t.Name)
		}
		end = t.Offset + size
		s.tensors[t.Name] = t
	}
	return nil
}

// fileData returns the content of a file that the index lists.
func (s *tensorStore) fileData(name string) string {
	i := slices.IndexFunc(s.index.Files, func(f weightFile) bool { return f.Name == name })
	if i < 0 {
		s.err = errors.Join(s.err, fmt.Errorf("weights: the index does not list the file %s", name))
		return ""
	}
	return s.parts[i]
}

// checkComplete returns the recorded errors. It also fails if tensors have not
// been used.
func (s *tensorStore) checkComplete() error {
	if s.err == nil && len(s.tensors) > 0 {
		return fmt.Errorf("weights: the network does not use %d of the tensors", len(s.tensors))
	}
	return s.err
}

// verifyHashes checks the content of every file against its SHA-256 hash.
func (s *tensorStore) verifyHashes() error {
	for i, f := range s.index.Files {
		if sha256Hex(s.parts[i]) != f.SHA256 {
			return fmt.Errorf("weights: %s is damaged: its content has changed", f.Name)
		}
	}
	return nil
}

// sha256Hex returns the SHA-256 hash of a string in hexadecimal. It copies the
// string in small parts and not as a whole.
func sha256Hex(data string) string {
	h := sha256.New()
	var part [1 << 15]byte
	for len(data) > 0 {
		n := copy(part[:], data)
		h.Write(part[:n])
		data = data[n:]
	}
	return hex.EncodeToString(h.Sum(nil))
}

// tensorData returns the bytes of a tensor and checks its kind and shape.
func (s *tensorStore) tensorData(name, kind string, shape ...int) string {
	t := s.tensors[name]
	if t.Kind != kind || !slices.Equal(t.Shape, shape) {
		s.err = errors.Join(s.err, fmt.Errorf("weights: the tensor %s of kind %s and shape %v is missing", name, kind, shape))
		return strings.Repeat("\x00", tensor{Kind: kind, Shape: shape}.byteSize())
	}
	delete(s.tensors, name)
	return s.parts[t.File][t.Offset : t.Offset+t.byteSize()]
}

// readHalf reads a tensor of float16 numbers.
func (s *tensorStore) readHalf(name string, shape ...int) []float32 {
	data := s.tensorData(name, "half", shape...)
	v := make([]float32, len(data)/2)
	for i := range v {
		v[i] = float16(uint16(data[2*i]) | uint16(data[2*i+1])<<8)
	}
	return v
}

// readMatrix reads the weights of a linear layer with k rows and n columns. It
// copies only the scales.
func (s *tensorStore) readMatrix(name string, k, n int) kernel.Matrix {
	data := s.tensorData(name, "matrix", k, n)
	return kernel.Matrix{K: k, N: n, Q: data[4*padToPanel(n):], Scales: decodeHalf(data[:4*padToPanel(n)])}
}

// readTable reads a table of n rows with the given width.
func (s *tensorStore) readTable(name string, n, width int) rowTable {
	data := s.tensorData(name, "rows", n, width)
	return rowTable{width: width, scales: data[:4*n], q: data[4*n:]}
}

func decodeHalf(data string) []float32 {
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32([]byte(data[4*i : 4*i+4])))
	}
	return v
}

// rowTable is a table of int8 rows, with a scale for each row.
type rowTable struct {
	width     int
	scales, q string
}

// addRow adds row i, multiplied by its scale, to dst.
func (t rowTable) addRow(dst []float32, i int) {
	scale := math.Float32frombits(binary.LittleEndian.Uint32([]byte(t.scales[4*i : 4*i+4])))
	row := t.q[i*t.width : (i+1)*t.width]
	for j := range len(row) { // iterates over bytes, not runes
		dst[j] += float32(float32(int8(row[j])) * scale)
	}
}

// float16 converts the bits of a half-precision number to float32.
func float16(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent := uint32(h>>10) & 31
	fraction := uint32(h) & 1023
	switch exponent {
	case 0:
		f := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
