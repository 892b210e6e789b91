package media

import (
	"bufio"
	"errors"
	"hash/crc32"
	"io"

	"atelier/internal/base/fault"
)

// The blocks that a cleaner holds.
const (
	inBlock  = 32 << 10
	outBlock = 16 << 10
)

// Clean gives the file's bytes without what tells about place, device, time or
// author, and without anything behind the picture's end; the way up of a JPEG
// stays. It reads r to its end, with bounded memory. Cleaning what is clean
// changes nothing. Formats other than pictures pass through unchanged.
//
// A broken structure gives a *fault.Error with the code Invalid from Read: the
// bytes read before are then worth nothing.
func Clean(f Format, r io.Reader) io.Reader {
	if c := newCleaner(f, r); c != nil {
		return c
	}
	return r
}

// cleaner is a machine of steps. A step reads a bounded piece of the file,
// appends to out what stays of it, and may let a long run of bytes pass.
type cleaner struct {
	in          *bufio.Reader
	out         []byte
	outRead     int    // how much of out was read
	copyLeft    int64  // bytes of the file that come next, unchanged
	asZeros     bool   // but as zeros
	mayEndEarly bool   // the run may end with the file
	hasCRC      bool   // of PNG: the run counts for the checksum
	crc         uint32 // of PNG: what the chunk's checksum has to be so far
	step        func() error
	err         error

	pictureInfo
}

// pictureInfo is what the walk through the structure of a picture learnt. Examine
// uses the same walk and throws the bytes away.
type pictureInfo struct {
	width, height int
	orientation   int  // as Exif counts, 0 and 1 upright
	frames        int  // of an animation, 0 for a still
	canDecode     bool // by a decoder that we have
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

// Read gives the cleaned bytes.
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

// keepBytes keeps the next n bytes and shows them, for reading and for patching
// until the next call.
func (c *cleaner) keepBytes(n int) ([]byte, error) {
	at := len(c.out)
	c.out = append(c.out, make([]byte, n)...)
	if err := c.readFull(c.out[at:]); err != nil {
		c.out = c.out[:at]
		return nil, err
	}
	return c.out[at:], nil
}

// readBytes shows the next few bytes, which are not kept, until the next call.
func (c *cleaner) readBytes(n int) ([]byte, error) {
	b, err := c.in.Peek(n)
	if err != nil {
		return nil, readError(Image, err)
	}
	_, err = c.in.Discard(n)
	return b, err
}

// readFull reads the next bytes without keeping them.
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

// skipBytes leaves the next n bytes out. A part of a picture is below 4 GiB.
func (c *cleaner) skipBytes(n int64) error {
	if _, err := c.in.Discard(int(n)); err != nil {
		return readError(Image, err)
	}
	return nil
}

// copyBytes passes the next n bytes, blank as zeros.
func (c *cleaner) copyBytes(n int64, blank bool) {
	c.copyLeft = n
	c.asZeros = blank
	c.mayEndEarly = false
}

// expectEnd is the step behind the last byte of a picture.
func (c *cleaner) expectEnd() error {
	switch _, err := c.in.ReadByte(); {
	case err == nil:
		return fault.New(fault.Invalid, "The file holds something behind the end of the picture.")
	case !errors.Is(err, io.EOF):
		return readError(Image, err)
	}
	return io.EOF
}

// skipTrailing is the last step where what comes behind a picture is dropped.
func (c *cleaner) skipTrailing() error {
	if _, err := io.Copy(io.Discard, c.in); err != nil {
		return readError(Image, err)
	}
	return io.EOF
}
