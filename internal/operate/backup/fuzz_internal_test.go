package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// newArchive returns an archive with a header, a database, a secret and one file.
func newArchive(f testing.TB, secret bool) []byte {
	f.Helper()
	spool, err := newSpool(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	defer spool.Close()
	var out bytes.Buffer
	w := &writer{tar: tar.NewWriter(&out), list: bufio.NewWriter(spool), made: time.Unix(1_800_000_000, 0)}
	if err := w.addHeader(f.Context(), Header{Format: format, Made: w.made, Version: "1", Schema: 1, HasSecret: secret}); err != nil {
		f.Fatal(err)
	}
	names := []string{databaseName, secretName, filesPrefix + "ab/cd"}
	if !secret {
		names = []string{databaseName, filesPrefix + "ab/cd"}
	}
	for _, name := range names {
		if _, err := w.addEntry(f.Context(), name, 3, strings.NewReader("abc")); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.finishArchive(f.Context(), spool); err != nil {
		f.Fatal(err)
	}
	return out.Bytes()
}

// FuzzWalkArchive proves that an archive is refused as damaged, or has every
// entry at its place, with the sizes that its manifest names, and no entry that
// could be written outside of the folder of files.
func FuzzWalkArchive(f *testing.F) {
	whole := newArchive(f, true)
	f.Add(whole)
	f.Add(newArchive(f, false))
	f.Add(whole[:len(whole)/2])
	f.Add(bytes.Replace(whole, []byte("abc"), []byte("abd"), 1))
	f.Add([]byte{})
	spool, err := newSpool(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { spool.Close() })
	f.Fuzz(func(t *testing.T, archive []byte) {
		if err := spool.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := spool.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		var names []string
		err := walkArchive(context.Background(), bytes.NewReader(archive), spool, func(h Header) error {
			names = append(names, headerName)
			return nil
		}, func(name string, size int64, r io.Reader) error {
			names = append(names, name)
			n, err := io.Copy(io.Discard, r)
			if err == nil && n != size {
				t.Errorf("the entry %q has %d bytes, want %d", name, n, size)
			}
			return err
		})
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !strings.Contains(err.Error(), "newer version") {
				t.Errorf("%q = %v", archive[:min(len(archive), 600)], err)
			}
			return
		}
		if len(names) < 2 || names[0] != headerName || names[1] != databaseName {
			t.Errorf("the entries are %q", names)
		}
		for _, name := range names[2:] {
			if name != secretName && !strings.HasPrefix(name, filesPrefix) {
				t.Errorf("the entries are %q", names)
			}
		}
	})
}
