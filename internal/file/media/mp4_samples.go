package media

import (
	"encoding/binary"
	"errors"
	"math"
)

// maxChunkSpans is the maximum number of separate ranges of samples in a video.
const maxChunkSpans = 1 << 19

// sampleTables are the boxes of a track that locate its samples (ISO 14496-12,
// section 8.7).
type sampleTables struct {
	sizes, chunks, offsets box
}

func (t *sampleTables) addBox(b box) error {
	var at *box
	switch b.kind {
	case "stsz", "stz2":
		at = &t.sizes
	case "stsc":
		at = &t.chunks
	case "stco", "co64":
		at = &t.offsets
	default:
		return nil
	}
	if at.kind != "" {
		return errors.New("a track has two sample tables of the same kind")
	}
	*at = b
	return nil
}

// tableReader reads the entries of a table in order. It has its own cache.
type tableReader struct {
	*source
	at, end int64
	left    uint32 // number of entries that are left
}

// openTable returns a reader of a table that follows the first skip bytes of
// the box's body and begins with its number of entries.
func (c *mp4Cleaner) openTable(b box, skip int64) (*tableReader, error) {
	if b.kind == "" {
		return &tableReader{source: c.source}, nil
	}

	p, err := c.peekBody(b, int(skip)+4)
	if err != nil {
		return nil, err
	}
	return &tableReader{source: c.source.clone(), at: b.body + skip + 4, end: b.end, left: binary.BigEndian.Uint32(p[skip:])}, nil
}

// readField returns the next number of the table, of 4 or 8 bytes.
func (t *tableReader) readField(width int64) (uint64, error) {
	if t.end-t.at < width {
		return 0, errBox
	}

	p, err := t.peekBytes(t.at, int(width))
	if err != nil {
		return 0, err
	}

	t.at += width
	if width == 8 {
		return binary.BigEndian.Uint64(p), nil
	}
	return uint64(binary.BigEndian.Uint32(p)), nil
}

// keepSamples adds the ranges of a track's samples to keepSpans.
func (c *mp4Cleaner) keepSamples(t *mp4Track, tables sampleTables) error {
	offsets, err := c.openTable(tables.offsets, 4)
	if err != nil || offsets.left == 0 {
		return err // a fragmented file has empty tables
	}

	runs, err := c.openTable(tables.chunks, 4)
	if err != nil {
		return err
	}

	sizes, err := c.openSizes(t, tables.sizes)
	if err != nil {
		return err
	}

	width := int64(4)
	if tables.offsets.kind == "co64" {
		width = 8
	}

	var perChunk, nextPerChunk, nextChunk uint64 // number of samples per chunk: now, and beginning with chunk nextChunk
	nextChunk = 1
	for chunk := uint64(1); offsets.left > 0; chunk++ {
		for chunk == nextChunk {
			perChunk = nextPerChunk
			nextChunk = math.MaxUint64
			if runs.left == 0 {
				break
			}

			runs.left--
			first, err := runs.readField(4)
			if err != nil {
				return err
			}
			if nextPerChunk, err = runs.readField(4); err != nil {
				return err
			}
			if _, err := runs.readField(4); err != nil { // skips the index of the sample description
				return err
			}
			if first < chunk {
				return errors.New("the chunk numbers of a track are not in ascending order")
			}
			nextChunk = first
		}

		offsets.left--
		from, err := offsets.readField(width)
		if err != nil {
			return err
		}

		length, err := sizes.sum(perChunk)
		if err != nil {
			return err
		}
		if err := c.keepSpan(from, length); err != nil {
			return err
		}
	}
	return nil
}

// keepSpan adds a range to keepSpans, without the part beyond the end of the
// file.
func (c *mp4Cleaner) keepSpan(from, length uint64) error {
	if from >= uint64(c.size) || length == 0 {
		return nil
	}

	s := span{int64(from), int64(min(from+min(length, uint64(c.size)), uint64(c.size)))}
	if last := len(c.keepSpans) - 1; last >= 0 && c.keepSpans[last].to == s.from {
		c.keepSpans[last].to = s.to
		return nil
	}
	if len(c.keepSpans) >= maxChunkSpans {
		return errors.New("a track has too many chunks")
	}
	c.keepSpans = append(c.keepSpans, s)
	return nil
}

// sampleSizes reads the sizes of a track's samples in order.
type sampleSizes struct {
	*tableReader
	track *mp4Track
	fixed uint64 // common size of all samples; 0 if the table lists a size for each
	bits  int64  // length of a size in the table, in bits
	half  int64  // index of the next size in an stz2 box with sizes of 4 bits
}

func (c *mp4Cleaner) openSizes(t *mp4Track, b box) (*sampleSizes, error) {
	table, err := c.openTable(b, 8)
	if err != nil || b.kind == "" {
		return &sampleSizes{tableReader: table, track: t}, err
	}

	p, err := c.peekBody(b, 8)
	if err != nil {
		return nil, err
	}

	s := &sampleSizes{tableReader: table, track: t, bits: 32}
	if b.kind == "stsz" {
		s.fixed = uint64(binary.BigEndian.Uint32(p[4:]))
		return s, nil
	}
	if s.bits = int64(p[7]); s.bits != 4 && s.bits != 8 && s.bits != 16 {
		return nil, errors.New("a table of sample sizes has entries of an unsupported width")
	}
	return s, nil
}

// sum returns the total size of the next samples.
func (s *sampleSizes) sum(samples uint64) (uint64, error) {
	if s.fixed > 0 {
		return s.fixedSum(samples), nil
	}

	var total uint64
	for ; samples > 0 && s.left > 0; samples-- {
		s.left--
		n, err := s.readSize()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// fixedSum returns the total size of samples of the same size. In QuickTime
// files the stated size of uncompressed sound is often 1, and the real size
// follows from the description, so the largest of the possible sizes is used.
func (s *sampleSizes) fixedSum(samples uint64) uint64 {
	samples = min(samples, math.MaxUint32)
	total := samples * s.fixed
	if s.track.kind != "soun" || s.fixed > 1 {
		return total
	}

	total = max(total, samples*uint64(s.track.pcmSize))
	if s.track.packetSamples > 0 {
		total = max(total, (samples/uint64(s.track.packetSamples)+1)*uint64(s.track.packetSize))
	}
	return total
}

func (s *sampleSizes) readSize() (uint64, error) {
	if s.bits == 32 {
		return s.readField(4)
	}

	width := max(1, s.bits/8)
	if s.end-s.at < width {
		return 0, errBox
	}

	p, err := s.peekBytes(s.at, int(width))
	switch {
	case err != nil:
		return 0, err
	case s.bits == 16:
		s.at += 2
		return uint64(binary.BigEndian.Uint16(p)), nil
	case s.bits == 8:
		s.at++
		return uint64(p[0]), nil
	}

	s.half++
	if s.half%2 == 1 {
		return uint64(p[0] >> 4), nil
	}
	s.at++
	return uint64(p[0] & 15), nil
}
