package media

import (
	"bufio"
	"errors"
	"hash/crc32"
	"io"

	"atelier/internal/base/fault"
)

// Buffer sizes of a cleaner.
const (
	inBlock  = 32 << 10
	outBlock = 16 << 10
)

// Clean returns the file's bytes without metadata about location, device, time
// or author, and without data after the end of the picture. The orientation of
// a JPEG is kept. Clean reads r to its end and uses a bounded amount of memory.
// Cleaning a clean file changes nothing. Formats other than pictures are
// returned unchanged.
//
// If the structure is damaged, Read fails with a *fault.Error with code
// Invalid; the bytes read before must then be discarded.
func Clean(f Format, r io.Reader) io.Reader {
	if c := newCleaner(f, r); c != nil {
		return c
	}
	return r
}

// cleaner is a state machine. Each step reads a bounded part of the file,
// appends the part that is kept to out, and may set a longer run of bytes to be
// copied.
type cleaner struct {
	in          *bufio.Reader
	out         []byte
	outRead     int    // bytes of out that were returned
	copyLeft    int64  // bytes of the file to copy unchanged
	asZeros     bool   // copy them as zeros
	mayEndEarly bool   // the file may end within the copied bytes
	hasCRC      bool   // PNG: copied bytes count for the checksum
	crc         uint32 // PNG: checksum of the chunk so far
	step        func() error
	err         error

	pictureInfo
}

// pictureInfo contains the properties of a picture that a parser found.
// AnalyzeFile runs the same parser and discards the bytes.
type pictureInfo struct {
	width, height int
	orientation   int  // Exif orientation; 0 and 1 are upright
	frames        int  // frames of an animation, 0 for a still picture
	canDecode     bool // a decoder for it is available
	decodeCost    func(size int64) (memory int64, why string)
}

func newCleaner(f Format, r io.Reader) *cleaner {
	c := &cleaner{}
	switch f.MimeType {
	case jpegFormat.MimeType:
		c.step = (&jpegParser{cleaner: c}).parseSOI
	case pngFormat.MimeType:
		c.hasCRC = true
		c.step = (&pngParser{cleaner: c}).parseSignature
	case gifFormat.MimeType:
		c.step = (&gifParser{cleaner: c}).parseHeader
	case webpFormat.MimeType:
		c.step = (&webpParser{cleaner: c}).parseHeader
	case heicFormat.MimeType, heifFormat.MimeType:
		c.step = (&heifParser{cleaner: c}).parseSignature
	default:
		return nil
	}

	c.in = bufio.NewReaderSize(r, inBlock)
	return c
}

// Read returns the cleaned bytes.
func (c *cleaner) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		switch {
		case c.outRead < len(c.out):
			n := copy(p, c.out[c.outRead:])
			c.outRead += n
			return n, nil
		case c.copyLeft > 0:
			n, err := c.in.Read(p[:min(int64(len(p)), c.copyLeft)])
			c.copyLeft -= int64(n)
			if c.asZeros {
				clear(p[:n])
			}
			if c.hasCRC {
				c.crc = crc32.Update(c.crc, crc32.IEEETable, p[:n])
			}
			if n > 0 {
				return n, nil
			}
			if c.mayEndEarly && errors.Is(err, io.EOF) {
				c.copyLeft = 0
				err = nil
			}
			if err != nil {
				c.copyLeft = 0
				c.err = readError(Image, err)
			}
		case c.err != nil:
			return 0, c.err
		default:
			c.out = c.out[:0]
			c.outRead = 0
			for c.err == nil && c.copyLeft == 0 && len(c.out) < outBlock {
				c.err = c.step()
			}
		}
	}
}

// keepBytes appends the next n bytes to the output and returns them. The caller
// may read and change them until the next call.
func (c *cleaner) keepBytes(n int) ([]byte, error) {
	at := len(c.out)
	c.out = append(c.out, make([]byte, n)...)
	if err := c.readFull(c.out[at:]); err != nil {
		c.out = c.out[:at]
		return nil, err
	}
	return c.out[at:], nil
}

// readBytes returns the next n bytes without keeping them. They are valid until
// the next call.
func (c *cleaner) readBytes(n int) ([]byte, error) {
	b, err := c.in.Peek(n)
	if err != nil {
		return nil, readError(Image, err)
	}

	_, err = c.in.Discard(n)
	return b, err
}

// readFull reads the next bytes into p without keeping them.
func (c *cleaner) readFull(p []byte) error {
	if _, err := io.ReadFull(c.in, p); err != nil {
		return readError(Image, err)
	}
	return nil
}

func (c *cleaner) readByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err != nil {
		return 0, readError(Image, err)
	}
	return b, nil
}

// skipBytes removes the next n bytes. Parts of a picture have less than 4 GiB.
func (c *cleaner) skipBytes(n int64) error {
	if _, err := c.in.Discard(int(n)); err != nil {
		return readError(Image, err)
	}
	return nil
}

// copyBytes copies the next n bytes to the output, as zeros if asZeros is set.
func (c *cleaner) copyBytes(n int64, blank bool) {
	c.copyLeft = n
	c.asZeros = blank
	c.mayEndEarly = false
}

// expectEnd is the step after the last byte of a picture.
func (c *cleaner) expectEnd() error {
	switch _, err := c.in.ReadByte(); {
	case err == nil:
		return fault.New(fault.Invalid, "The file contains data after the end of the picture.")
	case !errors.Is(err, io.EOF):
		return readError(Image, err)
	}
	return io.EOF
}

// skipTrailing is the last step of a format whose trailing data is removed.
func (c *cleaner) skipTrailing() error {
	if _, err := io.Copy(io.Discard, c.in); err != nil {
		return readError(Image, err)
	}
	return io.EOF
}
