package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/file/blob"
	"atelier/internal/file/blob/blobtest"
)

// countingStore counts the bytes that are read from a store.
type countingStore struct {
	blob.Store
	opened atomic.Int64
	read   atomic.Int64
}

func (s *countingStore) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blob.Info, error) {
	s.opened.Add(1)
	r, info, err := s.Store.Open(ctx, key, offset, length)
	if err != nil {
		return nil, info, err
	}
	return &countingReader{r, &s.read}, info, nil
}

type countingReader struct {
	io.ReadCloser
	read *atomic.Int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.read.Add(int64(n))
	return n, err
}

func openCounted(t *testing.T) *countingStore {
	t.Helper()
	return &countingStore{Store: openDisk(t, t.TempDir())}
}

func store(t *testing.T, s blob.Store, key string, value []byte) blob.File {
	t.Helper()
	if _, err := s.Put(t.Context(), key, bytes.NewReader(value)); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(value)
	return blob.File{Key: key, Size: int64(len(value)), SHA256: hex.EncodeToString(sum[:])}
}

func readPart(v *blob.Verifier, f blob.File, offset, length int64) ([]byte, error) {
	r, err := v.Open(context.Background(), f, offset, length)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// TestVerifiedParts reads many parts of files of awkward sizes.
func TestVerifiedParts(t *testing.T) {
	t.Parallel()
	const chunk = 64 << 10
	for _, size := range []int64{1, chunk - 1, chunk, chunk + 1, 3*chunk + 17} {
		s := openCounted(t)
		value := blobtest.Bytes(1, int(size))
		f := store(t, s, "a/b", value)
		v := blob.NewVerifier(s)
		for _, offset := range []int64{0, 1, size / 2, chunk - 1, chunk, chunk + 1, size - 1} {
			for _, length := range []int64{1, 100, chunk, chunk + 1, size} {
				if offset >= size || offset+length > size {
					continue
				}
				got, err := readPart(v, f, offset, length)
				if err != nil || !bytes.Equal(got, value[offset:offset+length]) {
					t.Errorf("%d bytes from %d of %d: %d bytes, %v", length, offset, size, len(got), err)
				}
			}
		}
		for _, bad := range [][2]int64{{-1, 1}, {0, size + 1}, {size, 1}, {0, -1}} {
			if _, err := readPart(v, f, bad[0], bad[1]); err == nil {
				t.Errorf("%d bytes from %d of %d can be read", bad[1], bad[0], size)
			}
		}
	}
}

// TestDamageIsNoticed flips each of some bytes, before and after the file was
// read for the first time, and reads parts with and without that byte.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	const size = 300_000
	s := openCounted(t)
	value := blobtest.Bytes(2, size)
	for _, at := range []int{0, 1, 70_000, 131_072, size - 1} {
		for _, known := range []bool{false, true} {
			f := store(t, s, "a/b", value)
			v := blob.NewVerifier(s)
			if known {
				if _, err := readPart(v, f, 5, 5); err != nil {
					t.Fatal(err)
				}
			}
			flipped := bytes.Clone(value)
			flipped[at] ^= 1
			store(t, s, "a/b", flipped)
			for _, part := range [][2]int64{{0, size}, {int64(at), 1}, {int64(max(0, at-10)), 10}} {
				got, err := readPart(v, f, part[0], part[1])
				hit := part[0] <= int64(at) && int64(at) < part[0]+part[1]
				if hit && !fault.Is(err, fault.Unavailable) || err == nil && !bytes.Equal(got, value[part[0]:part[0]+part[1]]) {
					t.Errorf("byte %d flipped, known %v: %d bytes from %d = %d bytes, %v", at, known, part[1], part[0], len(got), err)
				}
			}
			store(t, s, "a/b", value[:size-1])
			if _, err := readPart(v, f, 5, 5); !fault.Is(err, fault.Unavailable) {
				t.Errorf("a shorter file: %v", err)
			}
			store(t, s, "a/b", value) // it came back from a backup
			if _, err := readPart(v, f, int64(at), 1); err != nil {
				t.Errorf("a restored file: %v", err)
			}
		}
	}
	whole, err := blob.OpenVerified(t.Context(), s, blob.File{Key: "a/b", Size: size, SHA256: hex.EncodeToString(make([]byte, 32))})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if got, err := io.ReadAll(whole); !fault.Is(err, fault.Unavailable) || len(got) >= size {
		t.Errorf("a file of another hash: %d bytes, %v", len(got), err)
	}
}

// TestPartsCostTheirChunks reads a file in full once, however many ask for a
// part of it, and then only what is asked for.
func TestPartsCostTheirChunks(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	s := openCounted(t)
	f := store(t, s, "a/b", blobtest.Bytes(3, size))
	v := blob.NewVerifier(s)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := readPart(v, f, int64(i)*1000, 1); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// Those that came while it was checked waited; a few may have come before.
	if read := s.read.Load(); read < size || read > size+50*(64<<10) {
		t.Errorf("50 bytes cost %d at first", read)
	}
	before := s.read.Load()
	if _, err := readPart(v, f, size/2, 10); err != nil {
		t.Fatal(err)
	}
	if read := s.read.Load() - before; read > 64<<10 {
		t.Errorf("10 bytes cost %d", read)
	}
}

// TestCheckOutlivesItsCaller lets the first caller leave.
func TestCheckOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	s := openCounted(t)
	f := store(t, s, "a/b", blobtest.Bytes(4, 1<<20))
	v := blob.NewVerifier(s)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := v.Open(gone, f, 5, 5); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
	if _, err := readPart(v, f, 5, 5); err != nil {
		t.Errorf("the next caller: %v", err)
	}
}
