package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"sync"
	"testing"

	"atelier/internal/file/blob"
)

func failingReaders(t *testing.T, s blob.Store) {
	broken := errors.New("broken")
	put(t, s, "old.png", Bytes(7, 1000))
	for _, tt := range []struct {
		after int
		cause error
	}{
		{0, broken},
		{1, broken},
		// io.ErrUnexpectedEOF is the error of a truncated request body. It is
		// easily mistaken for the end of the data.
		{1, io.ErrUnexpectedEOF},
		{9 << 20, io.ErrUnexpectedEOF},
	} {
		for _, key := range []string{"old.png", "new/er.png"} {
			if _, err := s.Put(t.Context(), key, FailAfter(Bytes(8, tt.after), tt.cause)); !errors.Is(err, tt.cause) {
				t.Errorf("put that fails after %d bytes = %v, want %v", tt.after, err, tt.cause)
			}
		}
	}
	want(t, s, "old.png", Bytes(7, 1000))
	wantOnly(t, s, "old.png")
}

func cancelled(t *testing.T, s blob.Store) {
	put(t, s, "old", Bytes(9, 1000))
	for _, n := range []int{0, 9 << 20} {
		ctx, cancel := context.WithCancel(t.Context())
		r := io.MultiReader(bytes.NewReader(Bytes(10, n)), calling(cancel), bytes.NewReader(Bytes(10, 9<<20)))
		for _, key := range []string{"old", "new"} {
			if _, err := s.Put(ctx, key, r); !errors.Is(err, context.Canceled) {
				t.Errorf("put cancelled after %d bytes = %v, want cancelled", n, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Open(ctx, "old", 0, -1); !errors.Is(err, context.Canceled) {
		t.Errorf("open = %v, want cancelled", err)
	}
	if _, err := s.Stat(ctx, "old"); !errors.Is(err, context.Canceled) {
		t.Errorf("stat = %v, want cancelled", err)
	}
	if err := s.Delete(ctx, "old"); !errors.Is(err, context.Canceled) {
		t.Errorf("delete = %v, want cancelled", err)
	}
	if err := s.Ping(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("ping = %v, want cancelled", err)
	}
	var last error
	for _, err := range s.List(ctx, "") {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("list = %v, want cancelled", last)
	}
	want(t, s, "old", Bytes(9, 1000))
	wantOnly(t, s, "old")
}

// calling is an empty reader that calls the function when it is read.
type calling func()

func (f calling) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

func manyWriters(t *testing.T, s blob.Store) {
	const writers, size = 16, 300 << 10
	values := map[[32]byte]bool{}
	for i := range writers {
		values[sha256.Sum256(Bytes(byte(i), size))] = true
	}
	put(t, s, "one/key", Bytes(0, size))
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if _, err := s.Put(t.Context(), "one/key", bytes.NewReader(Bytes(byte(i), size))); err != nil {
				t.Errorf("put: %v", err)
			}
		})
		wg.Go(func() {
			r, _, err := s.Open(t.Context(), "one/key", 0, -1)
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			defer r.Close()
			if b, err := io.ReadAll(r); err != nil || !values[sha256.Sum256(b)] {
				t.Errorf("read %d bytes that nobody put, %v", len(b), err)
			}
		})
	}
	wg.Wait()
	if b, _ := get(t, s, "one/key", 0, -1); !values[sha256.Sum256(b)] {
		t.Errorf("the key holds %d bytes that nobody put", len(b))
	}
	wantOnly(t, s, "one/key")
}

func readerOutlives(t *testing.T, s blob.Store) {
	value := Bytes(11, 3<<20)
	for name, change := range map[string]func() error{
		"replaced": func() error {
			_, err := s.Put(t.Context(), "v", bytes.NewReader(Bytes(12, 3<<20)))
			return err
		},
		"deleted": func() error { return s.Delete(t.Context(), "v") },
	} {
		put(t, s, "v", value)
		r, _, err := s.Open(t.Context(), "v", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 10)
		if _, err := io.ReadFull(r, head); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(append(head, rest...), value) {
			t.Errorf("%s while it was read: %d bytes of something else, %v", name, len(rest), err)
		}
		r.Close()
	}
}
