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

// boxWalk counts the boxes that a walk has seen.
type boxWalk struct {
	*source
	seen int
}

var errBox = errors.New("a box that does not fit where it lies")

// each visits the boxes between two offsets.
func (w *boxWalk) each(start, end int64, visit func(box) error) error {
	for start < end {
		if w.seen++; w.seen > maxBoxes {
			return errors.New("too many boxes")
		}
		b, err := w.peek(start, 8)
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
			if b, err = w.peek(start+8, 8); err != nil {
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

// head shows the first n bytes of a box's content.
func (w *boxWalk) head(b box, n int) ([]byte, error) {
	if b.end-b.body < int64(n) {
		return nil, errBox
	}
	return w.peek(b.body, n)
}

// film is what an MP4 or QuickTime file says about itself.
type film struct {
	duration      time.Duration
	width, height int
	seen, data    bool
	video         bool
}

// track is one of its tracks.
type track struct {
	kind          string
	width, height int
}

// isoFilm measures an MP4 or QuickTime file. It never reads the samples.
func isoFilm(s *source) (film, error) {
	var f film
	w := &boxWalk{source: s}
	err := w.each(0, s.size, func(b box) error {
		switch b.kind {
		case "moov":
			if f.seen {
				return errors.New("two moov boxes")
			}
			f.seen = true
			return w.movie(b, &f)
		case "mdat":
			f.data = true
		}
		return nil
	})
	switch {
	case err != nil:
		return f, spoilt(Video, err)
	case !f.seen || !f.data:
		return f, broken(Video, "no moov or no mdat")
	case !f.video:
		return f, fault.New(fault.Invalid, "The file has no video in it.")
	case f.width == 0 || f.height == 0:
		return f, broken(Video, "a side of no length")
	}
	return f, nil
}

func (w *boxWalk) movie(moov box, f *film) error {
	var scale, units, more uint64
	err := w.each(moov.body, moov.end, func(b box) (err error) {
		switch b.kind {
		case "mvhd":
			scale, units, err = w.times(b)
		case "mvex":
			return w.each(b.body, b.end, func(b box) (err error) {
				if b.kind == "mehd" {
					more, err = w.fragments(b)
				}
				return err
			})
		case "trak":
			var t track
			if err := w.track(b, &t); err != nil {
				return err
			}
			if t.kind == "vide" && (!f.video || f.width == 0) {
				f.video = true
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
	f.duration = lasting(float64(max(units, more)), float64(scale))
	return nil
}

// times reads the time scale and the duration from mvhd. They lie at other
// offsets in the version with long numbers. A duration of all ones is unknown.
func (w *boxWalk) times(b box) (scale, units uint64, err error) {
	p, err := w.head(b, 24)
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
	if p, err = w.head(b, 32); err != nil {
		return 0, 0, err
	}
	scale = uint64(binary.BigEndian.Uint32(p[20:]))
	units = binary.BigEndian.Uint64(p[24:])
	if units == math.MaxUint64 {
		units = 0
	}
	return scale, units, nil
}

// fragments reads how long a file is whose samples come in pieces.
func (w *boxWalk) fragments(b box) (uint64, error) {
	p, err := w.head(b, 8)
	if err != nil {
		return 0, err
	}
	if p[0] == 0 {
		return uint64(binary.BigEndian.Uint32(p[4:])), nil
	}
	if p, err = w.head(b, 12); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(p[4:]), nil
}

func (w *boxWalk) track(trak box, t *track) error {
	return w.each(trak.body, trak.end, func(b box) error {
		switch b.kind {
		case "tkhd":
			return w.trackHead(b, t)
		case "mdia":
			return w.each(b.body, b.end, func(b box) error {
				if b.kind == "hdlr" {
					p, err := w.head(b, 12)
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

// trackHead reads the size at which a track is shown, turned as its matrix
// says.
func (w *boxWalk) trackHead(b box, t *track) error {
	n := 84
	p, err := w.head(b, n)
	if err != nil {
		return err
	}
	if p[0] == 1 {
		n = 96
		if p, err = w.head(b, n); err != nil {
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

// lasting is a duration of units at so many a second. What is absurd becomes
// long enough to be refused by every limit.
func lasting(units, perSecond float64) time.Duration {
	const most = 1e9 // seconds
	seconds := units / perSecond
	if !(seconds < most) { // not a number too
		seconds = most
	}
	return time.Duration(max(0, seconds) * float64(time.Second))
}
