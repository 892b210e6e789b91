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
		return errors.New("two sample tables of the same kind")
	}
	*at = b
	return nil
}

// tableReader reads the entries of a table in order. It has a cache of its own.
type tableReader struct {
	*source
	at, end int64
	left    uint32 // number of entries that are left
}

// openTable returns a reader of a table whose number of entries is at the
// offset skip of the box's body.
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

// keepSamples adds the ranges of a track's samples to those that are kept.
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

	var perChunk, nextPerChunk, nextChunk uint64 // samples in a chunk now, and from nextChunk on
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
			if _, err := runs.readField(4); err != nil { // the index of the description
				return err
			}
			if first < chunk {
				return errors.New("the chunks are not in order")
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

// keepSpan adds a range to those that are kept, as far as it is in the file.
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
		return errors.New("too many chunks")
	}
	c.keepSpans = append(c.keepSpans, s)
	return nil
}

// sampleSizes reads the sizes of a track's samples in order.
type sampleSizes struct {
	*tableReader
	track *mp4Track
	fixed uint64 // size of all samples; 0 if the table has one size for each
	bits  int64  // length of a size in the table
	half  int64  // stz2 with 4 bits: index of the next size
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
		return nil, errors.New("a table of sample sizes with an unknown width")
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

// fixedSum returns the total size of samples of the same size. In QuickTime the
// size of uncompressed sound is often stated as 1 and follows from the
// description instead, so the largest of the possible sizes is used.
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

// Flags of the boxes tfhd and trun (ISO 14496-12, sections 8.8.7 and 8.8.8).
const (
	tfhdBaseOffset  = 0x000001
	tfhdDescription = 0x000002
	tfhdDuration    = 0x000008
	tfhdSize        = 0x000010
	tfhdBaseIsMoof  = 0x020000

	trunOffset      = 0x000001
	trunFirstFlags  = 0x000004
	trunDuration    = 0x000100
	trunSize        = 0x000200
	trunFlags       = 0x000400
	trunComposition = 0x000800
)

// cleanFragment removes metadata and removed tracks from a moof box, and adds
// the ranges of its samples to those that are kept.
func (c *mp4Cleaner) cleanFragment(moof box) error {
	next := uint64(moof.start) // where the samples of the next track begin if it does not say
	removed := false
	return c.cleanChildren(moof.body, moof.end, fragmentBoxes, func(b box) error {
		if b.kind != "traf" {
			return nil
		}

		f := &trackFragment{cleaner: c, moof: moof.start, next: next}
		if err := f.parse(b); err != nil {
			return err
		}
		next = f.next
		if f.track.removed {
			removed = true
			c.blank(b)
			return nil
		}
		if removed && f.implicit {
			return errImplicitOffset
		}
		return c.cleanChildren(b.body, b.end, runBoxes, keepBox)
	})
}

// trackFragment is the fragment of one track, a traf box.
type trackFragment struct {
	cleaner  *mp4Cleaner
	moof     int64
	next     uint64 // offset of the next sample
	base     uint64
	size     uint32 // size of samples that do not state it
	implicit bool   // the samples begin where those of the track before end
	track    *mp4Track
}

func (f *trackFragment) parse(traf box) error {
	err := f.cleaner.visitBoxes(traf.body, traf.end, func(b box) error {
		switch b.kind {
		case "tfhd":
			if f.track != nil {
				return errors.New("two headers of a fragment")
			}
			return f.parseHeader(b)
		case "trun":
			if f.track == nil {
				return errors.New("samples before the header of a fragment")
			}
			return f.parseRun(b)
		}
		return nil
	})
	if err == nil && f.track == nil {
		err = errors.New("a fragment without a header")
	}
	return err
}

func (f *trackFragment) parseHeader(b box) error {
	p, err := f.cleaner.peekBody(b, 8)
	if err != nil {
		return err
	}

	flags := binary.BigEndian.Uint32(p) & 0xffffff
	f.track = f.cleaner.track(binary.BigEndian.Uint32(p[4:]))
	f.size = f.track.defaultSampleSize

	fields := &tableReader{source: f.cleaner.source, at: b.body + 8, end: b.end}
	read := func(flag uint32, width int64) (v uint64) {
		if err == nil && flags&flag != 0 {
			v, err = fields.readField(width)
		}
		return v
	}
	base := read(tfhdBaseOffset, 8)
	read(tfhdDescription, 4)
	read(tfhdDuration, 4)
	if size := read(tfhdSize, 4); flags&tfhdSize != 0 {
		f.size = uint32(size)
	}

	switch {
	case flags&tfhdBaseOffset != 0:
		f.base = base
	case flags&tfhdBaseIsMoof != 0:
		f.base = uint64(f.moof)
	default:
		f.base = f.next
		f.implicit = true
	}
	f.next = f.base
	return err
}

func (f *trackFragment) parseRun(b box) error {
	p, err := f.cleaner.peekBody(b, 8)
	if err != nil {
		return err
	}

	flags := binary.BigEndian.Uint32(p) & 0xffffff
	count := uint64(binary.BigEndian.Uint32(p[4:]))
	fields := &tableReader{source: f.cleaner.source.clone(), at: b.body + 8, end: b.end}
	if flags&trunOffset != 0 {
		offset, err := fields.readField(4)
		if err != nil {
			return err
		}
		f.next = f.base + uint64(int64(int32(offset))) // wraps around for a negative offset, as intended
	}
	if flags&trunFirstFlags != 0 {
		fields.at += 4
	}

	length := count * uint64(f.size)
	if flags&trunSize != 0 {
		if length, err = sumRunSizes(fields, flags, count); err != nil {
			return err
		}
	}

	from := f.next
	f.next += length
	if f.track.removed {
		return nil
	}
	return f.cleaner.keepSpan(from, length)
}

// sumRunSizes returns the total size of the samples of a trun box that states
// the size of each.
func sumRunSizes(fields *tableReader, flags uint32, count uint64) (uint64, error) {
	var before, after int64
	if flags&trunDuration != 0 {
		before = 4
	}
	for _, flag := range []uint32{trunFlags, trunComposition} {
		if flags&flag != 0 {
			after += 4
		}
	}

	var total uint64
	for ; count > 0; count-- {
		fields.at += before
		n, err := fields.readField(4)
		if err != nil {
			return 0, err
		}
		fields.at += after
		total += n
	}
	return total, nil
}
