package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"atelier/internal/base/failpoint"
	"atelier/internal/file/blob"
)

// The maximum sizes, in bytes, of the header, the secret, and one line of the
// manifest in an archive.
const (
	maxHeader = 64 << 10
	maxSecret = 64 << 10
	maxLine   = 4 << 10
)

// databaseURL returns the URL of the SQLite database in the file at path.
func databaseURL(path string) string {
	return "sqlite://" + (&url.URL{Path: path}).EscapedPath()
}

// writer writes the entries of an archive and collects the lines for its
// manifest.
type writer struct {
	tar     *tar.Writer
	list    *bufio.Writer
	made    time.Time
	written int64 // total bytes of the entries written so far
}

// addEntry writes an entry of the given size, adds its line to the manifest,
// and returns its SHA-256 in hexadecimal.
func (w *writer) addEntry(ctx context.Context, name string, size int64, r io.Reader) (sum string, err error) {
	if sum, err = w.putEntry(ctx, name, size, r); err != nil {
		return "", err
	}
	text, err := json.Marshal(line{name, size, sum})
	if err == nil {
		_, err = w.list.Write(append(text, '\n'))
	}
	return sum, err
}

func (w *writer) putEntry(ctx context.Context, name string, size int64, r io.Reader) (sum string, err error) {
	err = w.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg,
		Name:     name,
		Size:     size,
		Mode:     0o600,
		ModTime:  w.made,
	})
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(w.tar, hash), blob.ReaderWithContext(ctx, r))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	w.written += n
	failpoint.Hit("backup.mid")
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func (w *writer) addHeader(ctx context.Context, h Header) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.addEntry(ctx, headerName, int64(len(text)), bytes.NewReader(text))
	return err
}

func (w *writer) addDatabase(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = w.addEntry(ctx, databaseName, info.Size(), f)
	return err
}

// finishArchive writes the manifest as the last entry of the archive. The lines
// of the manifest are in spool.
func (w *writer) finishArchive(ctx context.Context, spool *os.File) error {
	if err := w.list.Flush(); err != nil {
		return err
	}
	size, err := spool.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	if _, err := w.putEntry(ctx, manifestName, size, spool); err != nil {
		return err
	}
	return w.tar.Close()
}

// ErrDamaged is returned for a file that is not an archive or is damaged.
var ErrDamaged = errors.New("the file is not a valid backup")

func damagedArchive(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// entryTaker is called with each entry of an archive. It must read r until EOF.
type entryTaker func(name string, size int64, r io.Reader) error

// walkArchive reads an archive to its end. It calls begin with the header, and
// take with every other entry except the manifest. It returns an error if an
// entry is out of order or is not a regular file, or if the entries do not
// match the manifest. Callers must not trust any entry before walkArchive has
// returned nil.
func walkArchive(ctx context.Context, r io.Reader, spool *os.File, begin func(Header) error, take entryTaker) error {
	archive := tar.NewReader(bufio.NewReaderSize(blob.ReaderWithContext(ctx, r), 1<<20))
	list := bufio.NewWriter(spool)
	var header Header
	before := ""
	for {
		h, err := archive.Next()
		if err != nil {
			return unreadableArchive(err)
		}
		if err := checkEntry(h, before, header.HasSecret); err != nil {
			return err
		}
		before = h.Name
		if h.Name == manifestName {
			break
		}
		hash := sha256.New()
		entry := io.TeeReader(archive, hash)
		if h.Name == headerName {
			if header, err = readHeader(entry); err == nil {
				err = begin(header)
			}
		} else {
			err = take(h.Name, h.Size, entry)
		}
		if err != nil {
			return unreadableArchive(err)
		}
		text, err := json.Marshal(line{h.Name, h.Size, hex.EncodeToString(hash.Sum(nil))})
		if err == nil {
			_, err = list.Write(append(text, '\n'))
		}
		if err != nil {
			return err
		}
	}
	if err := list.Flush(); err != nil {
		return err
	}
	if err := compareManifest(archive, spool); err != nil {
		return err
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		return damagedArchive("there is data after the manifest")
	}
	return nil
}

// unreadableArchive converts read errors that are caused by a damaged archive
// to ErrDamaged, and returns other errors unchanged.
func unreadableArchive(err error) error {
	switch {
	case errors.Is(err, tar.ErrHeader):
		return damagedArchive("it is not a tar archive, or it is damaged")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damagedArchive("the archive is truncated")
	}
	return err
}

// checkEntry returns an error for links, folders, devices and sparse files
// (which could be larger than the archive), and for entries that are out of
// order.
func checkEntry(h *tar.Header, before string, hasSecret bool) error {
	if h.Typeflag != tar.TypeReg || h.Size < 0 {
		return damagedArchive("the entry %q is not a regular file", h.Name)
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return damagedArchive("the entry %q is not a regular file", h.Name)
		}
	}
	ordered := false
	switch {
	case h.Name == headerName:
		ordered = before == "" && h.Size <= maxHeader
	case h.Name == databaseName:
		ordered = before == headerName
	case h.Name == secretName:
		ordered = before == databaseName && hasSecret && h.Size <= maxSecret
	case h.Name == manifestName, strings.HasPrefix(h.Name, filesPrefix):
		ordered = before == secretName || before == databaseName && !hasSecret || strings.HasPrefix(before, filesPrefix)
	}
	if !ordered {
		return damagedArchive("the entry %q is out of order or too large", h.Name)
	}
	return nil
}

func readHeader(r io.Reader) (h Header, err error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(text, &h); err != nil || h.Format < 1 {
		return h, damagedArchive("the entry %s is invalid", headerName)
	}
	if h.Format > format {
		return h, fmt.Errorf("the backup was made by a newer version of atelier (%s); restore it with that version", h.Version)
	}
	return h, nil
}

// compareManifest compares the manifest with the entries that were read. spool
// contains the expected lines of the manifest.
func compareManifest(manifest io.Reader, spool *os.File) error {
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	said := bufio.NewScanner(manifest)
	found := bufio.NewScanner(spool)
	said.Buffer(nil, maxLine)
	found.Buffer(nil, maxLine)
	for found.Scan() {
		if !said.Scan() {
			return errors.Join(said.Err(), damagedArchive("the manifest is truncated"))
		}
		if !bytes.Equal(said.Bytes(), found.Bytes()) {
			var is line
			_ = json.Unmarshal(found.Bytes(), &is) // cannot fail: walkArchive wrote the line
			return damagedArchive("the entry %s does not match the manifest", is.Name)
		}
	}
	if err := found.Err(); err != nil {
		return err
	}
	if said.Scan() {
		return damagedArchive("the manifest lists more entries than the archive contains")
	}
	if err := said.Err(); err != nil {
		return damagedArchive("the manifest cannot be read: %v", err)
	}
	return nil
}

// verifyArchive reads an archive from its beginning and verifies it against its
// manifest.
func verifyArchive(ctx context.Context, archive *os.File) error {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	spool, err := newSpool(filepath.Dir(archive.Name()))
	if err != nil {
		return err
	}
	defer spool.Close()
	return walkArchive(ctx, archive, spool, func(Header) error { return nil }, func(_ string, _ int64, r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
}
