package blob_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"atelier/internal/file/blob"
)

// TestWithSpace stores until the space ends in the middle of a value, of which
// nothing stays behind.
func TestWithSpace(t *testing.T) {
	t.Parallel()
	disk, err := blob.Open(t.Context(), "file://"+t.TempDir(), blob.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	full := errors.New("full")
	looks := 0
	store := blob.WithSpaceCheck(disk, func() error {
		if looks++; looks > 3 {
			return full
		}
		return nil
	})
	if n, err := store.Put(t.Context(), "a/small", bytes.NewReader(make([]byte, 5<<20))); err != nil || n != 5<<20 || looks != 2 {
		t.Errorf("a small value: %d bytes, %v, %d looks", n, err, looks)
	}
	if _, err := store.Put(t.Context(), "a/large", bytes.NewReader(make([]byte, 64<<20))); !errors.Is(err, full) || looks != 4 {
		t.Errorf("a large value: %v after %d looks", err, looks)
	}
	if _, err := store.Put(t.Context(), "a/none", bytes.NewReader(nil)); !errors.Is(err, full) {
		t.Errorf("a value while it is full: %v", err)
	}
	for item, err := range disk.List(t.Context(), "") {
		if err != nil || item.Key != "a/small" {
			t.Errorf("stored %s, %v", item.Key, err)
		}
	}
	if err := store.Delete(t.Context(), "a/small"); err != nil {
		t.Errorf("delete while it is full: %v", err)
	}
}
