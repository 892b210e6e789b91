package media

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"atelier/internal/base/fault"
)

// maxBoxes is how many boxes are looked at in one file. A film of ten minutes
// in pieces of one second has two for each piece.
const maxBoxes = 10_000

// box is a box of ISO 14496-12: its kind, and where it and its content lie.
type box struct {
	kind             string
	start, body, end int64
}

// boxReader counts the boxes that a walk has seen.
type boxReader struct {
	*source
	boxCount int
}

var errBox = errors.New("a box that does not fit where it lies")

// visitBoxes visits the boxes between two offsets.
func (w *boxReader) visitBoxes(start, end int64, visit func(box) error) error {
	for start < end {
		if w.boxCount++; w.boxCount > maxBoxes {
			return errors.New("too many boxes")
		}
		b, err := w.peekBytes(start, 8)
		if err != nil {
			return err
		}
		next := box{kind: string(b[4:]), start: start, body: start + 8}
		size := uint64(binary.BigEndian.Uint32(b))
		switch size {
		case 0: // to the end of the file
			if end != w.size {
				return errBox
			}
			size = uint64(end - start)
		case 1:
			if b, err = w.peekBytes(start+8, 8); err != nil {
				return err
			}
			next.body += 8
			size = binary.BigEndian.Uint64(b)
		}
		if size > uint64(end-start) || size < uint64(next.body-start) {
			return errBox
		}
		next.end = start + int64(size)
		if err := visit(next); err != nil {
			return err
		}
		start = next.end
	}
	return nil
}

// peekBody shows the first n bytes of a box's content.
func (w *boxReader) peekBody(b box, n int) ([]byte, error) {
	if b.end-b.body < int64(n) {
		return nil, errBox
	}
	return w.peekBytes(b.body, n)
}

// videoInfo is what an MP4 or QuickTime file says about itself.
type videoInfo struct {
	duration           time.Duration
	width, height      int
	hasHeader, hasData bool
	hasVideo           bool
}

// trackInfo is one of its tracks.
type trackInfo struct {
	kind          string
	width, height int
}

// measureMP4 measures an MP4 or QuickTime file. It never reads the samples.
func measureMP4(s *source) (videoInfo, error) {
	var f videoInfo
	w := &boxReader{source: s}
	err := w.visitBoxes(0, s.size, func(b box) error {
		switch b.kind {
		case "moov":
			if f.hasHeader {
				return errors.New("two moov boxes")
			}
			f.hasHeader = true
			return w.parseMovie(b, &f)
		case "mdat":
			f.hasData = true
		}
		return nil
	})
	switch {
	case err != nil:
		return f, wrapDamaged(Video, err)
	case !f.hasHeader || !f.hasData:
		return f, damagedError(Video, "no moov or no mdat")
	case !f.hasVideo:
		return f, fault.New(fault.Invalid, "The file has no video in it.")
	case f.width == 0 || f.height == 0:
		return f, damagedError(Video, "a side of no length")
	}
	return f, nil
}

func (w *boxReader) parseMovie(moov box, f *videoInfo) error {
	var scale, units, more uint64
	err := w.visitBoxes(moov.body, moov.end, func(b box) (err error) {
		switch b.kind {
		case "mvhd":
			scale, units, err = w.parseMovieHeader(b)
		case "mvex":
			return w.visitBoxes(b.body, b.end, func(b box) (err error) {
				if b.kind == "mehd" {
					more, err = w.parseFragmentDuration(b)
				}
				return err
			})
		case "trak":
			var t trackInfo
			if err := w.parseTrack(b, &t); err != nil {
				return err
			}
			if t.kind == "vide" && (!f.hasVideo || f.width == 0) {
				f.hasVideo = true
				f.width = t.width
				f.height = t.height
			}
		}
		return err
	})
	if err == nil && scale == 0 {
		err = errors.New("no time scale")
	}
	if err != nil {
		return err
	}
	f.duration = toDuration(float64(max(units, more)), float64(scale))
	return nil
}

// parseMovieHeader reads the time scale and the duration from mvhd. They lie at other
// offsets in the version with long numbers. A duration of all ones is unknown.
func (w *boxReader) parseMovieHeader(b box) (scale, units uint64, err error) {
	p, err := w.peekBody(b, 24)
	if err != nil {
		return 0, 0, err
	}
	if p[0] == 0 {
		scale = uint64(binary.BigEndian.Uint32(p[12:]))
		units = uint64(binary.BigEndian.Uint32(p[16:]))
		if units == math.MaxUint32 {
			units = 0
		}
		return scale, units, nil
	}
	if p, err = w.peekBody(b, 32); err != nil {
		return 0, 0, err
	}
	scale = uint64(binary.BigEndian.Uint32(p[20:]))
	units = binary.BigEndian.Uint64(p[24:])
	if units == math.MaxUint64 {
		units = 0
	}
	return scale, units, nil
}

// parseFragmentDuration reads how long a file is whose samples come in pieces.
func (w *boxReader) parseFragmentDuration(b box) (uint64, error) {
	p, err := w.peekBody(b, 8)
	if err != nil {
		return 0, err
	}
	if p[0] == 0 {
		return uint64(binary.BigEndian.Uint32(p[4:])), nil
	}
	if p, err = w.peekBody(b, 12); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(p[4:]), nil
}

func (w *boxReader) parseTrack(trak box, t *trackInfo) error {
	return w.visitBoxes(trak.body, trak.end, func(b box) error {
		switch b.kind {
		case "tkhd":
			return w.parseTrackHeader(b, t)
		case "mdia":
			return w.visitBoxes(b.body, b.end, func(b box) error {
				if b.kind == "hdlr" {
					p, err := w.peekBody(b, 12)
					if err != nil {
						return err
					}
					t.kind = string(p[8:])
				}
				return nil
			})
		}
		return nil
	})
}

// parseTrackHeader reads the size at which a track is shown, turned as its matrix
// says.
func (w *boxReader) parseTrackHeader(b box, t *trackInfo) error {
	n := 84
	p, err := w.peekBody(b, n)
	if err != nil {
		return err
	}
	if p[0] == 1 {
		n = 96
		if p, err = w.peekBody(b, n); err != nil {
			return err
		}
	}
	p = p[n-44:]
	at := func(i int) uint32 { return binary.BigEndian.Uint32(p[i:]) }
	t.width = int(at(36) >> 16)
	t.height = int(at(40) >> 16)
	if at(0) == 0 && at(16) == 0 && at(4) != 0 && at(12) != 0 { // a quarter turn
		t.width, t.height = t.height, t.width
	}
	return nil
}

// toDuration is a duration of units at so many a second. What is absurd becomes
// long enough to be refused by every limit.
func toDuration(units, perSecond float64) time.Duration {
	const most = 1e9 // seconds
	seconds := units / perSecond
	if !(seconds < most) { // not a number too
		seconds = most
	}
	return time.Duration(max(0, seconds) * float64(time.Second))
}
