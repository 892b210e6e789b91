package ingest_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/iotest"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob"
)

func (p fixture) put(key string, b []byte) {
	p.Helper()
	if _, err := p.Blobs.Put(p.Context(), key, bytes.NewReader(b)); err != nil {
		p.Fatal(err)
	}
}

func TestFileReadsAnywhere(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	const block = 256 << 10
	for _, size := range []int{0, 1, block - 1, block, block + 1, 12*block + 7} {
		want := noise(size)
		p.put("media/aa/x.bin", want)
		f, err := p.OpenFile(t.Context(), "media/aa/x.bin")
		if err != nil || f.Size() != int64(size) {
			t.Fatalf("size = %d, %v, want %d", f.Size(), err, size)
		}
		r := rand.New(rand.NewPCG(2, uint64(size)))
		for range 200 {
			at, buf := r.IntN(size+2), make([]byte, r.IntN(2*block))
			n, err := f.ReadAt(buf, int64(at))
			rest := want[min(at, size):]
			if n != min(len(buf), len(rest)) || !bytes.Equal(buf[:n], rest[:n]) || (err != nil) != (n < len(buf)) || err != nil && err != io.EOF {
				t.Fatalf("ReadAt(%d, %d) of %d = %d, %v", len(buf), at, size, n, err)
			}
		}
	}
	small := noise(1000)
	p.put("media/aa/x.bin", small)
	f, _ := p.OpenFile(t.Context(), "media/aa/x.bin")
	if err := iotest.TestReader(io.NewSectionReader(f, 0, f.Size()), small); err != nil {
		t.Error(err)
	}
	if _, err := f.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
		t.Errorf("before the beginning: %v", err)
	}
	if _, err := p.OpenFile(t.Context(), "media/aa/none.bin"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("none = %v, want not found", err)
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

func TestFileServesManyAtOnce(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	want := noise(4 << 20)
	p.put("media/aa/x.bin", want)
	f, err := p.OpenFile(t.Context(), "media/aa/x.bin")
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Together(8, func(i int) {
		r := rand.New(rand.NewPCG(3, uint64(i)))
		buf := make([]byte, 1000)
		for range 300 {
			at := r.Int64N(int64(len(want) - len(buf)))
			if _, err := f.ReadAt(buf, at); err != nil || !bytes.Equal(buf, want[at:at+1000]) {
				t.Errorf("ReadAt(%d) = %v, or other bytes", at, err)
				return
			}
		}
	})
}

// A failed read is not remembered as a block.
func TestFileRecovers(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	want := noise(600 << 10)
	p.put("media/aa/x.bin", want)
	f, err := p.OpenFile(t.Context(), "media/aa/x.bin")
	if err != nil {
		t.Fatal(err)
	}
	p.put("media/aa/x.bin", want[:100])
	buf := make([]byte, 10)
	if _, err := f.ReadAt(buf, 300<<10); err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a value cut short: %v, want an accident and no end", err)
	}
	p.put("media/aa/x.bin", want)
	if _, err := f.ReadAt(buf, 300<<10); err != nil || !bytes.Equal(buf, want[300<<10:300<<10+10]) {
		t.Errorf("after that: %v, or other bytes", err)
	}
}

// TestFileKeepsMemorySmall is not parallel: it looks at the whole heap.
func TestFileKeepsMemorySmall(t *testing.T) {
	p := newFixture(t)
	p.put("media/aa/x.bin", noise(32<<20))
	f, err := p.OpenFile(t.Context(), "media/aa/x.bin")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := io.Copy(io.Discard, io.NewSectionReader(f, 0, f.Size())); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 4 {
		t.Errorf("reading 32 MiB took %d MiB of memory", got)
	}
}
