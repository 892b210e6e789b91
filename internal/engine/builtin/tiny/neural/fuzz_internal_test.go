package neural

import (
	"slices"
	"strings"
	"testing"
)

// FuzzOpenStore proves that an index is refused, or that every tensor in it lies
// within its file, overlaps no other and can be read once.
func FuzzOpenStore(f *testing.F) {
	const format = "atelier-tiny-2"
	data := strings.Repeat("weights ", 64)
	for _, index := range []string{
		`{"format": "atelier-tiny-2", "files": [{"name": "model.0.bin", "size": 512}], "tensors": [{"name": "a", "kind": "half", "shape": [4, 8], "file": 0, "offset": 0}, {"name": "b", "kind": "rows", "shape": [4, 8], "file": 0, "offset": 64}]}`,
		`{"format": "atelier-tiny-2", "files": [{"name": "model.0.bin", "size": 512}, {"name": "model.0.bin", "size": 512}], "tensors": [{"name": "a", "kind": "matrix", "shape": [2, 3], "file": 1, "offset": 32}]}`,
		`{"format": "atelier-tiny-2", "files": [{"name": "model.0.bin", "size": 512}], "tensors": [{"name": "a", "kind": "half", "shape": []}]}`,
		`{"format": "atelier-tiny-2", "files": [{"name": "model.0.bin", "size": 512}], "tensors": [{"name": "a", "kind": "half", "shape": [4294967296, 4294967296]}]}`,
		`{"format": "atelier-tiny-2", "files": [{"name": "model.0.bin", "size": 512}], "tensors": [{"name": "a", "kind": "half", "shape": [1], "offset": 9223372036854775807}]}`,
		`{"format": "atelier-tiny-2", "files": [{"name": "x", "size": 0}]}`, `{"format": "another"}`, `null`, `{`,
	} {
		f.Add(index, data)
	}
	f.Fuzz(func(t *testing.T, index, data string) {
		s, err := openStore("model.json", format, map[string]string{"model.json": index, "model.0.bin": data})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "weights: ") {
				t.Errorf("%q: %v", index, err)
			}
			return
		}

		used := make([][]bool, len(s.parts))
		for i, part := range s.parts {
			used[i] = make([]bool, len(part))
		}
		for _, tensor := range s.index.Tensors {
			for i := range tensor.byteSize() {
				if used[tensor.File][tensor.Offset+i] {
					t.Fatalf("%q: the tensor %s overlaps another", index, tensor.Name)
				}
				used[tensor.File][tensor.Offset+i] = true
			}
			switch tensor.Kind {
			case "half":
				s.readHalf(tensor.Name, tensor.Shape...)
			case "matrix":
				s.readMatrix(tensor.Name, tensor.Shape[0], tensor.Shape[1])
			case "rows":
				table := s.readTable(tensor.Name, tensor.Shape[0], tensor.Shape[1])
				table.addRow(make([]float32, table.width), tensor.Shape[0]-1)
			}
		}
		if err := s.checkComplete(); err != nil {
			t.Errorf("%q: %v", index, err)
		}
	})
}

// FuzzOpenWords proves that a list of words is refused, or that every word in it
// has a vector, and that a prompt has only known words.
func FuzzOpenWords(f *testing.F) {
	f.Add("cat\ndog\n", 4, "A cat's e-mail")
	f.Add("", 3, "dogs")
	f.Add("email\ne\n", 4, "e-mail")
	f.Add("a\na", 0, "\u0130\u0307a \xff")
	f.Fuzz(func(t *testing.T, list string, vectors int, prompt string) {
		if vectors < 0 || vectors > 1000 {
			return
		}
		v, err := openWords(list, strings.Repeat("v", vectors*vectorSize), 3, 1)
		if err != nil {
			return
		}
		words := strings.Split(strings.TrimSuffix(list, "\n"), "\n")
		for _, w := range append(v.splitWords(prompt), words...) {
			n, known := v.numberOf(w)
			if !known && (n != unknownWord || slices.Contains(words, w)) {
				t.Errorf("%q: the word %q has the number %d", list, w, n)
			}
			v.writeVector(make([]float32, vectorSize), n)
		}
	})
}
