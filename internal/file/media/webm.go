package media

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"time"

	"atelier/internal/base/fault"
)

// maxElements is how many elements are looked at in one WebM file. Ten minutes
// of sound and pictures without a stated duration have some fifty thousand.
const maxElements = 1 << 17

// The elements of RFC 8794 and RFC 9559 that matter here.
const (
	ebmlHeader    = 0x1a45dfa3
	ebmlDocType   = 0x4282
	mkvSegment    = 0x18538067
	mkvInfo       = 0x1549a966
	mkvScale      = 0x2ad7b1
	mkvDuration   = 0x4489
	mkvTracks     = 0x1654ae6b
	mkvTrack      = 0xae
	mkvTrackType  = 0x83
	mkvVideo      = 0xe0
	mkvWidth      = 0xb0
	mkvHeight     = 0xba
	mkvCluster    = 0x1f43b675
	mkvTimestamp  = 0xe7
	mkvVideoTrack = 1
)

// ebmlElement reads the head of an element: its id, the size of its content,
// -1 where that is unknown, and how long the head is, 0 where it is no head.
func ebmlElement(b []byte) (id uint32, size int64, n int) {
	if len(b) == 0 || b[0] < 0x10 {
		return 0, 0, 0
	}
	n = bits.LeadingZeros8(b[0]) + 1
	if len(b) <= n || b[n] == 0 {
		return 0, 0, 0
	}
	for _, c := range b[:n] {
		id = id<<8 | uint32(c)
	}
	b = b[n:]
	wide := bits.LeadingZeros8(b[0]) + 1
	if len(b) < wide {
		return 0, 0, 0
	}
	size = int64(b[0]) &^ (1 << (8 - wide))
	for _, c := range b[1:wide] {
		size = size<<8 | int64(c)
	}
	if size == 1<<(7*wide)-1 {
		size = -1
	}
	return id, size, n + wide
}

// webmWalk goes through a WebM file.
type webmWalk struct {
	*source
	seen     int
	scale    uint64 // nanoseconds of a tick
	ticks    float64
	last     uint64 // the time of the last cluster, in ticks
	clusters int
	film
}

// webmFilm measures a WebM file.
func webmFilm(s *source) (film, error) {
	w := &webmWalk{source: s, scale: 1e6}
	err := w.each(0, s.size, 0, w.top)
	switch {
	case err != nil:
		return w.film, spoilt(Video, err)
	case !w.film.seen || w.clusters == 0:
		return w.film, broken(Video, "no segment or no cluster")
	case !w.video:
		return w.film, fault.New(fault.Invalid, "The file has no video in it.")
	case w.width <= 0 || w.height <= 0:
		return w.film, broken(Video, "a side of no length")
	}
	w.duration = lasting(max(w.ticks, float64(w.last))*float64(w.scale), float64(time.Second))
	return w.film, nil
}

type element struct {
	id        uint32
	body, end int64
}

// each visits the elements between two offsets. Those of unknown size, and
// those called open, are entered: what is in them comes next.
func (w *webmWalk) each(start, end int64, open uint32, visit func(element) error) error {
	for start < end {
		if w.seen++; w.seen > maxElements {
			return errors.New("too many elements")
		}
		b, err := w.peek(start, int(min(12, end-start)))
		if err != nil {
			return err
		}
		id, size, n := ebmlElement(b)
		e := element{id: id, body: start + int64(n)}
		unknown := size < 0
		switch {
		case n == 0:
			return errors.New("no element")
		case unknown && id != mkvSegment && id != mkvCluster:
			return errors.New("an element without an end")
		case unknown:
			size = end - e.body
		case size > end-e.body:
			return errors.New("an element that does not fit where it lies")
		}
		e.end = e.body + size
		if err := visit(e); err != nil {
			return err
		}
		if start = e.end; id == open || unknown && id == mkvCluster {
			start = e.body
		}
	}
	return nil
}

func (w *webmWalk) top(e element) error {
	switch {
	case w.seen == 1 && e.id != ebmlHeader:
		return errors.New("no EBML header")
	case e.id == mkvSegment && w.film.seen:
		return errors.New("two segments")
	case e.id == mkvSegment:
		w.film.seen = true
		return w.each(e.body, e.end, mkvCluster, w.segment)
	}
	return nil
}

// segment visits the parts of a segment, and those of its clusters too.
func (w *webmWalk) segment(e element) error {
	switch e.id {
	case mkvInfo:
		return w.each(e.body, e.end, 0, func(e element) (err error) {
			switch e.id {
			case mkvScale:
				w.scale, err = w.uint(e)
			case mkvDuration:
				w.ticks, err = w.float(e)
			}
			return err
		})
	case mkvTracks:
		return w.each(e.body, e.end, 0, func(e element) error {
			if e.id != mkvTrack {
				return nil
			}
			return w.track(e)
		})
	case mkvCluster:
		w.clusters++
	case mkvTimestamp:
		at, err := w.uint(e)
		w.last = max(w.last, at)
		return err
	}
	return nil
}

func (w *webmWalk) track(e element) error {
	var kind, width, height uint64
	err := w.each(e.body, e.end, mkvVideo, func(e element) (err error) {
		switch e.id {
		case mkvTrackType:
			kind, err = w.uint(e)
		case mkvWidth:
			width, err = w.uint(e)
		case mkvHeight:
			height, err = w.uint(e)
		}
		return err
	})
	if err == nil && kind == mkvVideoTrack && !w.video {
		w.video = true
		w.width = int(min(width, math.MaxInt32))
		w.height = int(min(height, math.MaxInt32))
	}
	return err
}

func (w *webmWalk) uint(e element) (v uint64, err error) {
	if e.end-e.body > 8 {
		return 0, errors.New("a number of more than 8 bytes")
	}
	b, err := w.peek(e.body, int(e.end-e.body))
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, err
}

func (w *webmWalk) float(e element) (float64, error) {
	b, err := w.peek(e.body, int(min(8, e.end-e.body)))
	switch {
	case err != nil:
		return 0, err
	case e.end-e.body == 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b))), nil
	case e.end-e.body == 8:
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case e.end == e.body:
		return 0, nil
	}
	return 0, errors.New("a number of an odd length")
}
