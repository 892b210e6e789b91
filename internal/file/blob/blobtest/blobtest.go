// Package blobtest contains the conformance tests of blob.Store, and runs a
// real S3 server for tests.
//
// The server is versitygw, built from the module in test/s3server on first
// use, cached in the user's cache folder and started once per test binary. It
// ends with the test binary. If it cannot be built, its tests are skipped;
// with CI set they fail instead. ATELIER_TEST_S3=skip skips them everywhere.
package blobtest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"atelier/internal/file/blob"
)

// long is a size in bytes that exceeds every buffer and every multipart upload
// part of a store.
const long = 20<<20 + 12345

// Run checks that a store implements blob.Store correctly. For each test it
// calls fresh, which returns an empty store.
func Run(t *testing.T, fresh func(t *testing.T) blob.Store) {
	tests := []struct {
		name string
		run  func(t *testing.T, s blob.Store)
	}{
		{"round trip", roundTrip},
		{"long values of unknown size", longRoundTrip},
		{"replace", replace},
		{"ranges", ranges},
		{"ranges of nothing", rangesOfNothing},
		{"missing", missing},
		{"delete twice", deleteTwice},
		{"bad keys", badKeys},
		{"odd but good keys", goodKeys},
		{"failing readers", failingReaders},
		{"cancelled", cancelled},
		{"many writers of one key", manyWriters},
		{"a reader outlives its value", readerOutlives},
		{"types follow the key", types},
		{"list", list},
		{"ping", ping},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, fresh(t))
		})
	}
}

// Dead checks that a store returns errors after its disk or server has failed.
func Dead(t *testing.T, s blob.Store) {
	t.Helper()
	if err := s.Ping(t.Context()); err == nil {
		t.Error("ping of a dead store succeeded")
	}
	if _, err := s.Put(t.Context(), "a/b", strings.NewReader("x")); err == nil {
		t.Error("put into a dead store succeeded")
	}
}

// Bytes returns n pseudo-random bytes that depend on the seed.
func Bytes(seed byte, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// FailAfter returns a reader that returns the bytes b and then fails with err.
func FailAfter(b []byte, err error) io.Reader {
	return io.MultiReader(bytes.NewReader(b), errReader{err})
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// Keys returns all keys below folder, sorted.
func Keys(t *testing.T, s blob.Store, folder string) []string {
	t.Helper()
	var keys []string
	for item, err := range s.List(t.Context(), folder) {
		if err != nil {
			t.Fatalf("list %q: %v", folder, err)
		}
		keys = append(keys, item.Key)
	}
	slices.Sort(keys)
	return keys
}

func put(t *testing.T, s blob.Store, key string, b []byte) {
	t.Helper()
	n, err := s.Put(t.Context(), key, bytes.NewReader(b))
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	if n != int64(len(b)) {
		t.Errorf("put %s = %d bytes, want %d", key, n, len(b))
	}
}

func get(t *testing.T, s blob.Store, key string, offset, length int64) ([]byte, blob.Info) {
	t.Helper()
	r, info, err := s.Open(t.Context(), key, offset, length)
	if err != nil {
		t.Fatalf("open %s: %v", key, err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("read %s: %v", key, err)
	}
	return b, info
}

// want fails the test if the value of the key is not b.
func want(t *testing.T, s blob.Store, key string, b []byte) {
	t.Helper()
	got, info := get(t, s, key, 0, -1)
	if !bytes.Equal(got, b) {
		t.Errorf("%s holds %d other bytes, want %d", key, len(got), len(b))
	}
	stat, err := s.Stat(t.Context(), key)
	if err != nil {
		t.Fatalf("stat %s: %v", key, err)
	}
	for _, i := range []blob.Info{info, stat} {
		if i.Size != int64(len(b)) || i.Modified.IsZero() {
			t.Errorf("info of %s = %+v, want %d bytes and a time", key, i, len(b))
		}
	}
}

// wantOnly fails the test if the store's keys are not exactly keys, which must
// be sorted.
func wantOnly(t *testing.T, s blob.Store, keys ...string) {
	t.Helper()
	if got := Keys(t, s, ""); !slices.Equal(got, keys) {
		t.Errorf("keys = %q, want %q", got, keys)
	}
}
