package media

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"atelier/internal/base/fault"
)

// maxBoxes is the maximum number of boxes in a file. For comparison, a video
// of ten minutes with fragments of one second has two boxes per fragment.
const maxBoxes = 10_000

// box is a box of the ISO base media format (ISO 14496-12): its type and the
// offsets of the box and its content.
type box struct {
	kind             string
	start, body, end int64
}

// boxReader reads boxes and limits their number to maxBoxes, or to another
// limit if one is set.
type boxReader struct {
	*source
	boxCount int
	limit    int
}

var errBox = errors.New("a box extends past the end of its parent box")

// visitBoxes calls visit for each box between the offsets start and end.
func (w *boxReader) visitBoxes(start, end int64, visit func(box) error) error {
	for start < end {
		if w.boxCount++; w.boxCount > cmp.Or(w.limit, maxBoxes) {
			return errors.New("the file has too many boxes")
		}

		b, err := w.peekBytes(start, 8)
		if err != nil {
			return err
		}

		next := box{kind: string(b[4:]), start: start, body: start + 8}
		size := uint64(binary.BigEndian.Uint32(b))
		switch size {
		case 0: // the box extends to the end of the file
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

// peekBody returns the first n bytes of a box's content.
func (w *boxReader) peekBody(b box, n int) ([]byte, error) {
	if b.end-b.body < int64(n) {
		return nil, errBox
	}
	return w.peekBytes(b.body, n)
}

// videoInfo contains the properties of a video file.
type videoInfo struct {
	duration           time.Duration
	width, height      int
	hasHeader, hasData bool
	hasVideo           bool
}

// trackInfo contains the properties of one track of a video file.
type trackInfo struct {
	kind          string
	width, height int
}

// measureMP4 returns the properties of an MP4 or QuickTime file from its
// boxes. It never reads the media data.
func measureMP4(s *source) (videoInfo, error) {
	var f videoInfo
	w := &boxReader{source: s}
	err := w.visitBoxes(0, s.size, func(b box) error {
		switch b.kind {
		case "moov":
			if f.hasHeader {
				return errors.New("the file has two moov boxes")
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
		return f, damagedError(Video, "the moov box or the mdat box is missing")
	case !f.hasVideo:
		return f, fault.New(fault.Invalid, "The file does not contain a video track.")
	case f.width == 0 || f.height == 0:
		return f, damagedError(Video, "width or height is 0")
	}
	return f, nil
}

func (w *boxReader) parseMovie(moov box, f *videoInfo) error {
	var scale, units, fragmentUnits uint64
	err := w.visitBoxes(moov.body, moov.end, func(b box) (err error) {
		switch b.kind {
		case "mvhd":
			scale, units, err = w.parseMovieHeader(b)
		case "mvex":
			return w.visitBoxes(b.body, b.end, func(b box) (err error) {
				if b.kind == "mehd" {
					fragmentUnits, err = w.parseFragmentDuration(b)
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
		err = errors.New("the time scale is missing")
	}
	if err != nil {
		return err
	}

	f.duration = toDuration(float64(max(units, fragmentUnits)), float64(scale))
	return nil
}

// parseMovieHeader returns the time scale, in units per second, and the
// duration, in units, from an mvhd box. Version 1 of the box has 64-bit fields
// at other offsets. A duration with all bits set is unknown and becomes 0.
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

// parseFragmentDuration returns the duration of a fragmented file, in units of
// the movie's time scale, from an mehd box.
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

// parseTrackHeader sets the display size of a track from a tkhd box, after the
// rotation by the box's matrix.
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
	if at(0) == 0 && at(16) == 0 && at(4) != 0 && at(12) != 0 { // rotated by 90 degrees
		t.width, t.height = t.height, t.width
	}
	return nil
}

// toDuration converts a number of time units to a duration. Invalid and huge
// values become 1e9 seconds, which exceeds every limit.
func toDuration(units, perSecond float64) time.Duration {
	const maxSeconds = 1e9
	seconds := units / perSecond
	if !(seconds < maxSeconds) { // also true for NaN
		seconds = maxSeconds
	}
	return time.Duration(max(0, seconds) * float64(time.Second))
}
