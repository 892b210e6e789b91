package media

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"atelier/internal/base/fault"
	"atelier/internal/base/osfile"
)

// spoolMemory is the maximum size, in bytes, of a file that is kept in memory
// while it is cleaned. A larger file is copied to a temporary file.
const spoolMemory = 256 << 10

// cleaningPlans are the functions that plan how a file is cleaned, for formats
// that need random access.
var cleaningPlans = map[Format]func(*source) ([]part, error){
	mp4Format:  planMP4,
	movFormat:  planMP4,
	webmFormat: planWebM,
	mp3Format:  planMP3,
	flacFormat: planFLAC,
	wavFormat:  planWAV,
	glbFormat:  planGLB,
}

// part is a part of a cleaned file: bytes of the original, new bytes, or zeros.
type part struct {
	span          // range of the original to copy, or the number of zeros
	data   []byte // new bytes, in place of the span
	zeroed bool   // write zeros in place of the span
}

// spooledCleaner copies a file to a temporary file, plans how to clean it, and
// then returns the bytes of the cleaned file.
type spooledCleaner struct {
	format Format
	plan   func(*source) ([]part, error)
	in     io.Reader

	file  *os.File
	from  *source
	parts []part
	err   error
}

// Read implements io.Reader. It returns the bytes without metadata.
func (c *spooledCleaner) Read(p []byte) (int, error) {
	if c.from == nil && c.err == nil {
		c.err = c.begin()
	}
	if c.err != nil {
		return 0, c.err
	}

	for len(c.parts) > 0 && len(p) > 0 {
		n, err := c.readPart(p)
		if n > 0 || err != nil {
			return n, err
		}
		c.parts = c.parts[1:]
	}
	if len(p) == 0 {
		return 0, nil
	}
	return 0, io.EOF
}

// readPart returns the next bytes of the first part and removes them from it.
// It returns 0 at the end of the part.
func (c *spooledCleaner) readPart(p []byte) (int, error) {
	first := &c.parts[0]
	if first.data != nil {
		n := copy(p, first.data)
		first.data = first.data[n:]
		return n, nil
	}

	p = p[:min(int64(len(p)), first.to-first.from)]
	if first.zeroed {
		clear(p)
		first.from += int64(len(p))
		return len(p), nil
	}
	if len(p) == 0 {
		return 0, nil
	}

	n, err := c.from.ReadAt(p, first.from)
	first.from += int64(n)
	if n > 0 {
		return n, nil
	}
	c.err = fmt.Errorf("read temporary file: %w", errors.Join(err, io.ErrNoProgress))
	return 0, c.err
}

// begin copies the file and plans how to clean it.
func (c *spooledCleaner) begin() error {
	file, size, err := c.spoolFile()
	if err != nil {
		return err
	}

	c.from = newSource(context.Background(), file, size)
	c.parts, err = c.plan(c.from)
	if c.from.err != nil { // the original error; the parser wraps it with less detail
		return fmt.Errorf("read temporary file: %w", c.from.err)
	}
	if err != nil && !fault.Is(err, fault.Invalid) {
		return wrapDamaged(c.format.Type, err)
	}
	return err
}

// spoolFile reads the file to its end, into memory or a temporary file.
func (c *spooledCleaner) spoolFile() (io.ReaderAt, int64, error) {
	var head bytes.Buffer
	size, err := io.Copy(&head, io.LimitReader(c.in, spoolMemory))
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("read %s: %w", c.format.Type.displayName(), err)
	case size < spoolMemory:
		return bytes.NewReader(head.Bytes()), size, nil
	}
	if c.file, err = osfile.CreateUnnamed("", "atelier-media-"); err != nil {
		return nil, 0, spoolError(err)
	}

	in := &errorReader{from: io.MultiReader(&head, c.in)}
	size, err = io.Copy(c.file, in)
	switch {
	case in.err != nil:
		return nil, 0, fmt.Errorf("read %s: %w", c.format.Type.displayName(), in.err)
	case err != nil:
		return nil, 0, spoolError(err)
	}
	return c.file, size, nil
}

// Close deletes the temporary file.
func (c *spooledCleaner) Close() error {
	if c.err == nil {
		c.err = os.ErrClosed
	}
	if c.file == nil {
		return nil
	}

	file := c.file
	c.file = nil
	return file.Close()
}

// errorReader records the error of a reader, to distinguish it from a write
// error while copying.
type errorReader struct {
	from io.Reader
	err  error
}

func (r *errorReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// spoolError wraps an error of the temporary file. If the disk is full, the
// result is a *fault.Error with code Unavailable.
func spoolError(err error) error {
	err = fmt.Errorf("write temporary file: %w", err)
	if osfile.IsDiskFull(err) {
		return fault.New(fault.Unavailable, "The file storage is full.").Because(err)
	}
	return err
}

// overwrites is a list of ranges of a file to overwrite in place, so that no
// offset in the file changes.
type overwrites []part

// zero overwrites a range with zeros.
func (o *overwrites) zero(from, to int64) {
	if from < to {
		*o = append(*o, part{span: span{from, to}, zeroed: true})
	}
}

// write overwrites the bytes at an offset.
func (o *overwrites) write(at int64, data []byte) {
	if len(data) > 0 {
		*o = append(*o, part{span: span{at, at + int64(len(data))}, data: data})
	}
}

// parts returns the parts of the file with all overwritten ranges, which must
// not overlap.
func (o overwrites) parts(size int64) ([]part, error) {
	slices.SortFunc(o, func(a, b part) int { return cmp.Compare(a.from, b.from) })

	all := make([]part, 0, 2*len(o)+1)
	at := int64(0)
	for _, p := range o {
		if p.from < at || p.to > size {
			return nil, errors.New("parts of the file overlap or extend past its end")
		}
		if at < p.from {
			all = append(all, part{span: span{at, p.from}})
		}
		all = append(all, p)
		at = p.to
	}
	return append(all, part{span: span{at, size}}), nil
}
