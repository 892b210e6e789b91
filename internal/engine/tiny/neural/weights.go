package neural

import (
	"crypto/sha256"
	_ "embed" // for the weights
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"atelier/internal/engine/tiny/kernel"
)

// The files that model/export.py writes. As strings they stay where the
// program was loaded to: nothing is copied, and what is not used is not read.
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

// embedded names the files.
func embedded() map[string]string {
	return map[string]string{
		"model.json": modelIndex, "model.0.bin": model0, "model.1.bin": model1, "words.txt": wordList, "words.bin": wordVectors,
		"upscale.json": upscaleIndex, "upscale.bin": upscale0,
	}
}

// An index tells what a network is like and where its tensors lie.
type index struct {
	Format  string
	Config  config
	TextLen int     `json:"text_len"`
	Norm    float64 `json:"vector_norm"` // of every word's vector
	Sampler sampler
	Files   []file
	Tensors []tensor
}

// config is the shape of both networks; each uses its own part.
type config struct {
	Res, Patch               int // pixels of a side, of the picture and of what becomes one token
	D, Depth, Heads, Hid     int // the transformer: width, blocks, heads, width within
	Dt, TDepth, THeads, THid int // the same of the text encoder
	Bott, Ch, Cw             int // widths: of a patch on its way in, of a pixel on its way out, of the convolutions
	Theta                    float64
	Learned                  int // words below this have an embedding of their own

	Channels, Layers, Scale int // the upscaler
}

type sampler struct {
	Name  string
	Shift float64
	Steps int
}

type file struct {
	Name   string
	Size   int
	SHA256 string
}

type tensor struct {
	Name, Kind   string
	Shape        []int
	File, Offset int
}

// store gives the tensors of an index. The first that is missing or not as
// expected is remembered, so that building a network reads without checks.
type store struct {
	index   index
	parts   []string
	tensors map[string]tensor
	err     error
}

// openStore reads an index and compares every file with its SHA-256.
func openStore(name, format string, files map[string]string) (*store, error) {
	s := &store{tensors: map[string]tensor{}}
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
		case digest(data) != f.SHA256:
			return nil, fmt.Errorf("weights: %s is damaged: its content has changed", f.Name)
		}
		s.parts = append(s.parts, data)
	}
	for _, t := range s.index.Tensors {
		s.tensors[t.Name] = t
	}
	return s, nil
}

// digest is the SHA-256 of a file, without a copy of all of it.
func digest(data string) string {
	h := sha256.New()
	var part [1 << 15]byte
	for len(data) > 0 {
		n := copy(part[:], data)
		h.Write(part[:n])
		data = data[n:]
	}
	return hex.EncodeToString(h.Sum(nil))
}

// data finds a tensor of a kind and shape and gives its bytes.
func (s *store) data(name, kind string, bytes int, shape ...int) string {
	t, ok := s.tensors[name]
	match := ok && t.Kind == kind && len(t.Shape) == len(shape) && t.File >= 0 && t.File < len(s.parts)
	for i := 0; match && i < len(shape); i++ {
		match = t.Shape[i] == shape[i]
	}
	if !match || t.Offset < 0 || t.Offset > len(s.parts[t.File])-bytes {
		s.err = errors.Join(s.err, fmt.Errorf("weights: no tensor %s of kind %s and shape %v", name, kind, shape))
		return string(make([]byte, bytes))
	}
	return s.parts[t.File][t.Offset : t.Offset+bytes]
}

// half reads float16.
func (s *store) half(name string, shape ...int) []float32 {
	n := 1
	for _, d := range shape {
		n *= d
	}
	data := s.data(name, "half", 2*n, shape...)
	v := make([]float32, n)
	for i := range v {
		v[i] = float16(uint16(data[2*i]) | uint16(data[2*i+1])<<8)
	}
	return v
}

// matrix reads the weights of a linear layer. Only the scales are copied.
func (s *store) matrix(name string, k, n int) kernel.Matrix {
	wide := (n + kernel.Lane - 1) / kernel.Lane * kernel.Lane
	data := s.data(name, "matrix", 4*wide+wide*k, k, n)
	return kernel.Matrix{K: k, N: n, Q: data[4*wide:], Scales: floats(data[:4*wide])}
}

// rows reads a table.
func (s *store) rows(name string, n, width int) table {
	data := s.data(name, "rows", 4*n+n*width, n, width)
	return table{width: width, scales: data[:4*n], q: data[4*n:]}
}

func floats(data string) []float32 {
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32([]byte(data[4*i : 4*i+4])))
	}
	return v
}

// table is int8 rows, each with a scale.
type table struct {
	width     int
	scales, q string
}

// add adds row i to dst.
func (t table) add(dst []float32, i int) {
	scale := math.Float32frombits(binary.LittleEndian.Uint32([]byte(t.scales[4*i : 4*i+4])))
	row := t.q[i*t.width : (i+1)*t.width]
	for j := range len(row) { // not over the runes of a string
		dst[j] += float32(float32(int8(row[j])) * scale)
	}
}

// float16 widens a half.
func float16(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0:
		f := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
