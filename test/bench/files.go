package main

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
)

// noise gives so many bytes that nothing can compress.
func noise(n int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{1}), n)
}

// writeWAV writes a recording of fileBytes bytes: 48 kHz, two channels.
func writeWAV(w io.Writer) error {
	const head = 44
	h := make([]byte, 0, head)
	h = append(h, "RIFF"...)
	h = binary.LittleEndian.AppendUint32(h, fileBytes-8)
	h = append(h, "WAVEfmt "...)
	h = binary.LittleEndian.AppendUint32(h, 16)
	h = binary.LittleEndian.AppendUint16(h, 1) // plain samples
	h = binary.LittleEndian.AppendUint16(h, 2)
	h = binary.LittleEndian.AppendUint32(h, 48000)
	h = binary.LittleEndian.AppendUint32(h, 48000*4)
	h = binary.LittleEndian.AppendUint16(h, 4)
	h = binary.LittleEndian.AppendUint16(h, 16)
	h = append(h, "data"...)
	h = binary.LittleEndian.AppendUint32(h, fileBytes-head)
	if _, err := w.Write(h); err != nil {
		return err
	}
	_, err := io.Copy(w, noise(fileBytes-head))
	return err
}

// writePNG writes a picture of fileBytes bytes: noise in full colour, stored and
// not compressed, with a comment that fills it up.
func writePNG(w io.Writer) error {
	const side = 4096
	out := &chunks{w: w}
	out.write([]byte("\x89PNG\r\n\x1a\n"))
	h := binary.BigEndian.AppendUint32(nil, side)
	h = binary.BigEndian.AppendUint32(h, side)
	out.chunk("IHDR", append(h, 8, 2, 0, 0, 0))
	body := bufio.NewWriterSize(out, 256<<10) // a chunk each
	z, err := zlib.NewWriterLevel(body, zlib.NoCompression)
	if err != nil {
		return err
	}
	pixels := noise(3 * side * side)
	row := make([]byte, 1+3*side) // the first byte: no filter
	for range side {
		if _, err := io.ReadFull(pixels, row[1:]); err != nil {
			return err
		}
		if _, err := z.Write(row); err != nil {
			return err
		}
	}
	if err := errors.Join(z.Close(), body.Flush()); err != nil {
		return err
	}
	const frame = 12
	out.chunk("tEXt", append([]byte("Comment\x00"), bytes.Repeat([]byte("."), int(fileBytes-out.n-2*frame-8))...))
	out.chunk("IEND", nil)
	return out.err
}

// chunks writes the parts of a PNG. What is written to it is a part of the
// picture's data.
type chunks struct {
	w   io.Writer
	n   int64
	err error
}

func (c *chunks) write(b []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(b)
		c.n += int64(len(b))
	}
}

func (c *chunks) chunk(name string, data []byte) {
	c.write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
	c.write([]byte(name))
	c.write(data)
	sum := crc32.Update(crc32.ChecksumIEEE([]byte(name)), crc32.IEEETable, data)
	c.write(binary.BigEndian.AppendUint32(nil, sum))
}

func (c *chunks) Write(b []byte) (int, error) {
	c.chunk("IDAT", b)
	return len(b), c.err
}
