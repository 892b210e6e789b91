package blobtest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"atelier/internal/file/blob"
)

func roundTrip(t *testing.T, s blob.Store) {
	for _, n := range []int{0, 1, 4096, 64 << 10, 1<<20 + 1} {
		key := fmt.Sprintf("some/%d.bin", n)
		put(t, s, key, Bytes(1, n))
		want(t, s, key, Bytes(1, n))
	}
}

func longRoundTrip(t *testing.T, s blob.Store) {
	for _, n := range []int64{8 << 20, long} { // a size of exactly one part, and a size of several parts and a remainder
		sent := sha256.New()
		received := sha256.New()
		r := io.LimitReader(rand.NewChaCha8([32]byte{2}), n)
		if got, err := s.Put(t.Context(), "long.mp4", io.TeeReader(r, sent)); err != nil || got != n {
			t.Fatalf("put = %d, %v, want %d", got, err, n)
		}
		f, info, err := s.Open(t.Context(), "long.mp4", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(received, f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if info.Size != n || !bytes.Equal(sent.Sum(nil), received.Sum(nil)) {
			t.Errorf("what came back (size %d) is not what was put (size %d)", info.Size, n)
		}
	}
	wantOnly(t, s, "long.mp4")
}

func replace(t *testing.T, s blob.Store) {
	for i, n := range []int{10, 9 << 20, 0, 20} {
		put(t, s, "a/b", Bytes(byte(i), n))
		want(t, s, "a/b", Bytes(byte(i), n))
	}
	wantOnly(t, s, "a/b")
}

func ranges(t *testing.T, s blob.Store) {
	const size = 1000
	value := Bytes(3, size)
	put(t, s, "v", value)
	for _, tt := range []struct {
		name           string
		offset, length int64
		from, to       int
	}{
		{"all", 0, -1, 0, size},
		{"all by length", 0, size, 0, size},
		{"first byte", 0, 1, 0, 1},
		{"middle", 100, 50, 100, 150},
		{"tail", 990, -1, 990, size},
		{"tail by length", 990, 10, 990, size},
		{"last byte", 999, 1, 999, size},
		{"longer than the value", 990, 500, 990, size},
		{"as long as can be", 1, 1<<63 - 1, 1, size},
		{"at the end", size, -1, 0, 0},
		{"beyond the end", 5000, 10, 0, 0},
		{"zero length", 100, 0, 0, 0},
	} {
		got, info := get(t, s, "v", tt.offset, tt.length)
		if !bytes.Equal(got, value[tt.from:tt.to]) {
			t.Errorf("%s: %d bytes, want bytes %d to %d", tt.name, len(got), tt.from, tt.to)
		}
		if info.Size != size {
			t.Errorf("%s: size = %d, want %d", tt.name, info.Size, size)
		}
	}
	if _, _, err := s.Open(t.Context(), "v", -1, 1); err == nil {
		t.Error("a negative offset was accepted")
	}
}

func rangesOfNothing(t *testing.T, s blob.Store) {
	put(t, s, "v", nil)
	for _, tt := range []struct{ offset, length int64 }{{0, -1}, {0, 0}, {0, 10}, {5, -1}, {5, 10}} {
		if got, info := get(t, s, "v", tt.offset, tt.length); len(got) != 0 || info.Size != 0 {
			t.Errorf("%+v of an empty value = %d bytes, size %d", tt, len(got), info.Size)
		}
	}
}

func missing(t *testing.T, s blob.Store) {
	put(t, s, "a/b/c", nil)
	for _, key := range []string{"x", "x/y/z", "a/b", "a", "a/b/c/d", "a/b/cc"} {
		for _, length := range []int64{-1, 0, 10} {
			if _, _, err := s.Open(t.Context(), key, 0, length); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("open %s = %v, want not found", key, err)
			}
		}
		if _, err := s.Stat(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("stat %s = %v, want not found", key, err)
		}
	}
}

func deleteTwice(t *testing.T, s blob.Store) {
	put(t, s, "a/b/c", Bytes(4, 100))
	put(t, s, "a/d", Bytes(5, 100))
	for _, key := range []string{"a/b/c", "a/b/c", "a/b/c/d", "never/was"} {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %s: %v", key, err)
		}
	}
	if _, err := s.Stat(t.Context(), "a/b/c"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("stat after delete = %v, want not found", err)
	}
	want(t, s, "a/d", Bytes(5, 100))
	wantOnly(t, s, "a/d")
	put(t, s, "a/b/c", Bytes(6, 100))
	want(t, s, "a/b/c", Bytes(6, 100))
}

func types(t *testing.T, s blob.Store) {
	for key, contentType := range map[string]string{
		"a/b.png":     "image/png",
		"a/c.jpg":     "image/jpeg",
		"a/d.mp4":     "video/mp4",
		"a/e.glb":     "model/gltf-binary",
		"a/f.txt":     "text/plain; charset=utf-8",
		"a/g":         "application/octet-stream",
		"a.png/h":     "application/octet-stream",
		"a/i.svg":     "application/octet-stream", // types that a browser may execute are replaced by application/octet-stream
		"a/j.html":    "application/octet-stream",
		"a/k.png.exe": "application/octet-stream",
	} {
		put(t, s, key, []byte("<html>"))
		stat, err := s.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		_, whole := get(t, s, key, 0, -1)
		_, part := get(t, s, key, 1, 1)
		for _, i := range []blob.Info{stat, whole, part} {
			if i.ContentType != contentType {
				t.Errorf("type of %s = %q, want %q", key, i.ContentType, contentType)
			}
		}
	}
}

func list(t *testing.T, s blob.Store) {
	wantOnly(t, s)
	all := []string{"a-b", "a/b/c.png", "a/b/d", "a/bb", "aa/b", "z"}
	for i, key := range all {
		put(t, s, key, Bytes(1, i))
	}
	for folder, want := range map[string][]string{
		"":      all,
		"a":     {"a/b/c.png", "a/b/d", "a/bb"},
		"a/b":   {"a/b/c.png", "a/b/d"},
		"z":     nil,
		"never": nil,
	} {
		if got := Keys(t, s, folder); !slices.Equal(got, want) {
			t.Errorf("list %q = %q, want %q", folder, got, want)
		}
	}
	for item, err := range s.List(t.Context(), "a/b") {
		if err != nil {
			t.Fatal(err)
		}
		if stat, err := s.Stat(t.Context(), item.Key); err != nil || stat.Size != item.Size || stat.ContentType != item.ContentType {
			t.Errorf("listed %+v, stat says %+v, %v", item, stat, err)
		}
		break // a caller may stop the iteration early
	}
	for _, err := range s.List(t.Context(), "../a") {
		if !errors.Is(err, blob.ErrBadKey) {
			t.Errorf("list of a bad folder = %v, want bad key", err)
		}
	}
}

func ping(t *testing.T, s blob.Store) {
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
	wantOnly(t, s)
}
