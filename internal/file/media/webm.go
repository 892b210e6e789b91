package media

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"time"

	"atelier/internal/base/fault"
)

// maxElements is the maximum number of elements in a WebM file. For comparison,
// ten minutes of audio and video without a duration in the header have about
// fifty thousand elements.
const maxElements = 1 << 17

// IDs of WebM elements, as defined in RFC 8794 and RFC 9559.
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

	mkvVoid         = 0xec
	mkvSeekHead     = 0x114d9b74
	mkvSeek         = 0x4dbb
	mkvSeekID       = 0x53ab
	mkvCues         = 0x1c53bb6b
	mkvMuxingApp    = 0x4d80
	mkvWritingApp   = 0x5741
	mkvTrackNumber  = 0xd7
	mkvCodecID      = 0x86
	mkvCodecPrivate = 0x63a2
	mkvSimpleBlock  = 0xa3
	mkvBlockGroup   = 0xa0
	mkvBlock        = 0xa1
)

// parseEBMLHeader parses the header of an EBML element. It returns the
// element's ID, the size of its content (-1 if unknown), and the length of the
// header (0 if it is invalid), in bytes.
func parseEBMLHeader(b []byte) (id uint32, size int64, n int) {
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

// webmParser is the parser of WebM files.
type webmParser struct {
	*source
	elementCount int
	scale        uint64 // nanoseconds per tick
	ticks        float64
	last         uint64 // timestamp of the last cluster in ticks
	clusters     int
	videoInfo
}

// measureWebM returns the properties of a WebM file from its elements.
func measureWebM(s *source) (videoInfo, error) {
	w := &webmParser{source: s, scale: 1e6}
	err := w.visitElements(0, s.size, 0, w.parseTopLevel)
	switch {
	case err != nil:
		return w.videoInfo, wrapDamaged(Video, err)
	case !w.videoInfo.hasHeader || w.clusters == 0:
		return w.videoInfo, damagedError(Video, "the segment or its first cluster is missing")
	case !w.hasVideo:
		return w.videoInfo, fault.New(fault.Invalid, "The file does not contain a video track.")
	case w.width <= 0 || w.height <= 0:
		return w.videoInfo, damagedError(Video, "width or height is 0")
	}

	w.duration = toDuration(max(w.ticks, float64(w.last))*float64(w.scale), float64(time.Second))
	return w.videoInfo, nil
}

type element struct {
	id               uint32
	start, body, end int64
}

// visitElements calls visit for each element between the offsets start and end.
// It descends into elements whose ID equals the parameter open and into
// clusters of unknown size, so that their children are visited next.
func (w *webmParser) visitElements(start, end int64, open uint32, visit func(element) error) error {
	for start < end {
		if w.elementCount++; w.elementCount > maxElements {
			return errors.New("the file has too many elements")
		}

		b, err := w.peekBytes(start, int(min(12, end-start)))
		if err != nil {
			return err
		}

		id, size, n := parseEBMLHeader(b)
		e := element{id: id, start: start, body: start + int64(n)}
		unknown := size < 0
		switch {
		case n == 0:
			return errors.New("an element has an invalid header")
		case unknown && id != mkvSegment && id != mkvCluster:
			return errors.New("an element that must have a size has none")
		case unknown:
			size = end - e.body
		case size > end-e.body:
			return errors.New("an element extends past the end of its parent element")
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

func (w *webmParser) parseTopLevel(e element) error {
	switch {
	case w.elementCount == 1 && e.id != ebmlHeader:
		return errors.New("the EBML header is missing")
	case e.id == mkvSegment && w.videoInfo.hasHeader:
		return errors.New("the file has two segments")
	case e.id == mkvSegment:
		w.videoInfo.hasHeader = true
		return w.visitElements(e.body, e.end, mkvCluster, w.parseSegmentChild)
	}
	return nil
}

// parseSegmentChild parses an element that is a child of a segment or of a
// cluster.
func (w *webmParser) parseSegmentChild(e element) error {
	switch e.id {
	case mkvInfo:
		return w.visitElements(e.body, e.end, 0, func(e element) (err error) {
			switch e.id {
			case mkvScale:
				w.scale, err = w.readUint(e)
			case mkvDuration:
				w.ticks, err = w.readFloat(e)
			}
			return err
		})
	case mkvTracks:
		return w.visitElements(e.body, e.end, 0, func(e element) error {
			if e.id != mkvTrack {
				return nil
			}
			return w.parseTrack(e)
		})
	case mkvCluster:
		w.clusters++
	case mkvTimestamp:
		at, err := w.readUint(e)
		w.last = max(w.last, at)
		return err
	}
	return nil
}

func (w *webmParser) parseTrack(e element) error {
	var kind, width, height uint64
	err := w.visitElements(e.body, e.end, mkvVideo, func(e element) (err error) {
		switch e.id {
		case mkvTrackType:
			kind, err = w.readUint(e)
		case mkvWidth:
			width, err = w.readUint(e)
		case mkvHeight:
			height, err = w.readUint(e)
		}
		return err
	})
	if err == nil && kind == mkvVideoTrack && !w.hasVideo {
		w.hasVideo = true
		w.width = int(min(width, math.MaxInt32))
		w.height = int(min(height, math.MaxInt32))
	}
	return err
}

func (w *webmParser) readUint(e element) (v uint64, err error) {
	if e.end-e.body > 8 {
		return 0, errors.New("an integer has more than 8 bytes")
	}

	b, err := w.peekBytes(e.body, int(e.end-e.body))
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, err
}

func (w *webmParser) readFloat(e element) (float64, error) {
	b, err := w.peekBytes(e.body, int(min(8, e.end-e.body)))
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
	return 0, errors.New("a float has an invalid length")
}
