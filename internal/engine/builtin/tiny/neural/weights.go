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

// mostNumbers is how many numbers a tensor can have: what is beyond is a
// mistake, and is found before it is computed with.
const mostNumbers = 1 << 25

// bytes is how many bytes a tensor takes, -1 for one that cannot be.
func (t tensor) bytes() int {
	n := 1
	for _, d := range t.Shape {
		if d < 1 || d > mostNumbers/n {
			return -1
		}
		n *= d
	}
	switch {
	case t.Kind == "half":
		return 2 * n
	case t.Kind == "matrix" && len(t.Shape) == 2:
		return wide(t.Shape[1]) * (4 + t.Shape[0])
	case t.Kind == "rows" && len(t.Shape) == 2:
		return 4*t.Shape[0] + n
	}
	return -1
}

// store gives the tensors of an index. The first that is missing or not as
// expected is remembered, so that building a network reads without checks.
type store struct {
	index   index
	parts   []string
	tensors map[string]tensor // those that nobody has asked for yet
	err     error
}

// openStore reads an index and sees that every file has its size and every
// tensor its place.
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
		}
		s.parts = append(s.parts, data)
	}
	return s, s.place()
}

// place refuses tensors that lie outside of their file or on each other.
func (s *store) place() error {
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
		size := t.bytes()
		_, twice := s.tensors[t.Name]
		if file < 0 || file >= len(s.parts) || size < 0 || t.Offset < end || t.Offset > len(s.parts[file])-size || twice {
			return fmt.Errorf("weights: the tensor %s has no place of its own", t.Name)
		}
		end = t.Offset + size
		s.tensors[t.Name] = t
	}
	return nil
}

// file gives all of a file that the index lists.
func (s *store) file(name string) string {
	i := slices.IndexFunc(s.index.Files, func(f file) bool { return f.Name == name })
	if i < 0 {
		s.err = errors.Join(s.err, fmt.Errorf("weights: no file %s", name))
		return ""
	}
	return s.parts[i]
}

// done tells what was wrong. Tensors that nobody wanted are wrong as well.
func (s *store) done() error {
	if s.err == nil && len(s.tensors) > 0 {
		return fmt.Errorf("weights: %d tensors belong to another network", len(s.tensors))
	}
	return s.err
}

// verify compares every file with its SHA-256.
func (s *store) verify() error {
	for i, f := range s.index.Files {
		if digest(s.parts[i]) != f.SHA256 {
			return fmt.Errorf("weights: %s is damaged: its content has changed", f.Name)
		}
	}
	return nil
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
func (s *store) data(name, kind string, shape ...int) string {
	t := s.tensors[name]
	if t.Kind != kind || !slices.Equal(t.Shape, shape) {
		s.err = errors.Join(s.err, fmt.Errorf("weights: no tensor %s of kind %s and shape %v", name, kind, shape))
		return strings.Repeat("\x00", tensor{Kind: kind, Shape: shape}.bytes())
	}
	delete(s.tensors, name)
	return s.parts[t.File][t.Offset : t.Offset+t.bytes()]
}

// half reads float16.
func (s *store) half(name string, shape ...int) []float32 {
	data := s.data(name, "half", shape...)
	v := make([]float32, len(data)/2)
	for i := range v {
		v[i] = float16(uint16(data[2*i]) | uint16(data[2*i+1])<<8)
	}
	return v
}

// matrix reads the weights of a linear layer. Only the scales are copied.
func (s *store) matrix(name string, k, n int) kernel.Matrix {
	data := s.data(name, "matrix", k, n)
	return kernel.Matrix{K: k, N: n, Q: data[4*wide(n):], Scales: floats(data[:4*wide(n)])}
}

// rows reads a table.
func (s *store) rows(name string, n, width int) table {
	data := s.data(name, "rows", n, width)
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
