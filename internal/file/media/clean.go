package media

import (
	"bufio"
	"errors"
	"hash/crc32"
	"io"

	"atelier/internal/base/fault"
)

// Buffer sizes of a cleaner, in bytes.
const (
	inBlock  = 32 << 10
	outBlock = 16 << 10
)

// Clean returns the file's bytes without metadata about location, device, time,
// author or origin: tags, chapters, comments, attachments, attached pictures
// and names of encoders. Data after the end of the file's format is removed or
// refused. Pixels, sound and subtitles are copied unchanged, as is the
// orientation of a JPEG. Cleaning a clean file changes nothing. Plain text is
// returned unchanged.
//
// Clean reads r to its end and uses a bounded amount of memory. Video, sound
// (except Ogg) and 3D models are copied to a temporary file first, because
// their parts refer to each other by offset. Close deletes that file.
//
// If the structure is damaged, Read fails with a *fault.Error with code
// Invalid; the bytes read before must then be discarded.
func Clean(f Format, r io.Reader) io.ReadCloser {
	if c := newCleaner(f, r); c != nil {
		return io.NopCloser(c)
	}
	if plan := cleaningPlans[f]; plan != nil {
		return &spooledCleaner{format: f, plan: plan, in: r}
	}
	return io.NopCloser(r)
}

// cleaner is a state machine that removes metadata from a file while it is
// read, which is possible for pictures and Ogg. Each step reads a bounded part
// of the file, appends the bytes that are kept to out, and may request that a
// longer range of bytes be copied.
type cleaner struct {
	kind        Type
	in          *bufio.Reader
	out         []byte
	outRead     int    // number of bytes of out that have been returned
	copyLeft    int64  // number of bytes of the file that are copied unchanged
	asZeros     bool   // write zeros instead of the copied bytes
	mayEndEarly bool   // the file may end within the copied bytes
	hasCRC      bool   // PNG: copied bytes are part of the checksum
	crc         uint32 // PNG: checksum of the chunk so far
	step        func() error
	err         error

	pictureInfo
}

// pictureInfo contains the properties of a picture that its parser found.
// AnalyzeFile runs the same parser as Clean and discards the output.
type pictureInfo struct {
	width, height int
	orientation   int  // Exif orientation; 0 and 1 mean upright
	frames        int  // number of frames of an animation, 0 for a still picture
	canDecode     bool // this program has a decoder for the picture
	decodeCost    func(size int64) (memory int64, why string)
}

func newCleaner(f Format, r io.Reader) *cleaner {
	c := &cleaner{kind: f.Type}
	block := inBlock
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
	case oggFormat.MimeType:
		block = oggBlock
		c.step = newOggParser(c, nil).parsePage
	default:
		return nil
	}

	c.in = bufio.NewReaderSize(r, block)
	return c
}

// Read implements io.Reader. It returns the bytes without metadata.
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
				c.err = readError(c.kind, err)
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

// keepBytes reads the next n bytes, appends them to the output and returns
// them. The caller may change them until the next call.
func (c *cleaner) keepBytes(n int) ([]byte, error) {
	at := len(c.out)
	c.out = append(c.out, make([]byte, n)...)
	if err := c.readFull(c.out[at:]); err != nil {
		c.out = c.out[:at]
		return nil, err
	}
	return c.out[at:], nil
}

// readBytes reads the next n bytes and returns them without adding them to the
// output. They are valid until the next call.
func (c *cleaner) readBytes(n int) ([]byte, error) {
	b, err := c.in.Peek(n)
	if err != nil {
		return nil, readError(c.kind, err)
	}

	_, err = c.in.Discard(n)
	return b, err
}

// readFull reads the next len(p) bytes into p without adding them to the
// output.
func (c *cleaner) readFull(p []byte) error {
	if _, err := io.ReadFull(c.in, p); err != nil {
		return readError(c.kind, err)
	}
	return nil
}

func (c *cleaner) readByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err != nil {
		return 0, readError(c.kind, err)
	}
	return b, nil
}

// skipBytes leaves the next n bytes out of the output. Parts of a picture have
// less than 4 GiB, so n fits into an int.
func (c *cleaner) skipBytes(n int64) error {
	if _, err := c.in.Discard(int(n)); err != nil {
		return readError(c.kind, err)
	}
	return nil
}

// copyBytes makes Read copy the next n bytes to the output, or write zeros
// instead if blank is true.
func (c *cleaner) copyBytes(n int64, blank bool) {
	c.copyLeft = n
	c.asZeros = blank
	c.mayEndEarly = false
}

// expectEnd is the step after the last byte of a picture. It returns an error
// if more bytes follow.
func (c *cleaner) expectEnd() error {
	switch _, err := c.in.ReadByte(); {
	case err == nil:
		return fault.New(fault.Invalid, "The file contains data after the end of the picture.")
	case !errors.Is(err, io.EOF):
		return readError(c.kind, err)
	}
	return io.EOF
}

// skipTrailing is the last step for formats whose data after the end of the
// picture is removed.
func (c *cleaner) skipTrailing() error {
	if _, err := io.Copy(io.Discard, c.in); err != nil {
		return readError(c.kind, err)
	}
	return io.EOF
}
