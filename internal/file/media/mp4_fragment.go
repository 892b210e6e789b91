package media

import (
	"encoding/binary"
	"errors"

	"atelier/internal/base/fault"
)

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

// errImplicitOffset is the error for a fragment whose samples cannot be located
// after another track was removed from it.
var errImplicitOffset = fault.New(fault.Invalid, "The video has a data track that cannot be removed from it. Save the video again without that track.")

// cleanFragment removes metadata and the parts of removed tracks from a moof
// box, and adds the ranges of its samples to keepSpans.
func (c *mp4Cleaner) cleanFragment(moof box) error {
	next := uint64(moof.start) // offset of the next track's samples, if the track does not state it
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
	size     uint32 // default size of samples
	implicit bool   // the samples follow the samples of the previous track
	track    *mp4Track
}

func (f *trackFragment) parse(traf box) error {
	err := f.cleaner.visitBoxes(traf.body, traf.end, func(b box) error {
		switch b.kind {
		case "tfhd":
			if f.track != nil {
				return errors.New("a track fragment has two headers")
			}
			return f.parseHeader(b)
		case "trun":
			if f.track == nil {
				return errors.New("samples precede the header of their track fragment")
			}
			return f.parseRun(b)
		}
		return nil
	})
	if err == nil && f.track == nil {
		err = errors.New("a track fragment has no header")
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
// the size of each sample.
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
