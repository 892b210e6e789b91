package media

import (
	"encoding/binary"
	"errors"
	"slices"
)

// The elements of WebM files that are kept, by the element that contains them
// (RFC 8794, RFC 9559). All other elements (tags, chapters, attachments,
// titles, names, dates, checksums) become Void elements of zeros with the same
// size, so that no position in the file changes.
var (
	headerElements = []uint32{0x4286, 0x42f7, 0x42f2, 0x42f3, ebmlDocType, 0x4287, 0x4285}
	// segmentElements also has the children of a cluster: the elements of a
	// cluster of unknown size are visited together with the elements of the
	// segment.
	segmentElements = []uint32{
		mkvSeekHead, mkvInfo, mkvTracks, mkvCues, mkvCluster,
		mkvTimestamp, mkvSimpleBlock, mkvBlockGroup, 0xab, 0xa7, // PrevSize, Position
	}
	infoElements  = []uint32{mkvScale, mkvDuration, mkvMuxingApp, mkvWritingApp}
	trackElements = []uint32{
		mkvTrackNumber, 0x73c5, mkvTrackType, // TrackUID
		0xb9, 0x88, 0x55aa, 0x55ab, 0x55ac, 0x55ad, 0x55ae, 0x55af, 0x9c, // flags
		0x6de7, 0x6df8, 0x23e383, 0x234e7a, 0x23314f, 0x55ee, // caches, durations, timestamp scale, block additions
		0x22b59c, 0x22b59d, mkvCodecID, mkvCodecPrivate, 0x56aa, 0x56bb, // languages, codec, delay, pre-roll
		mkvVideo, 0xe1, 0xe2, 0x6d80, // Video, Audio, TrackOperation, ContentEncodings
	}
	// keptTrackTypes are video, audio and subtitles.
	keptTrackTypes = []uint64{mkvVideoTrack, 2, 17}
)

// neutralName replaces the names of the programs that wrote a WebM file, which
// are mandatory elements.
const neutralName = "-"

// webmCleaner plans how to clean a WebM file.
type webmCleaner struct {
	*webmParser
	overwrites
	removed map[uint64]bool // numbers of the tracks that are removed
}

// planWebM plans how to clean a WebM file.
func planWebM(s *source) ([]part, error) {
	c := &webmCleaner{removed: map[uint64]bool{}}
	walk := func(visit func(element) error) error {
		c.webmParser = &webmParser{source: s}
		return c.visitElements(0, s.size, 0, visit)
	}

	err := walk(func(e element) error {
		if e.id != mkvSegment {
			return nil
		}
		return c.visitElements(e.body, e.end, mkvCluster, c.listTracks)
	})
	if err != nil {
		return nil, err
	}
	if err := walk(c.cleanTopLevel); err != nil {
		return nil, err
	}
	return c.overwrites.parts(s.size)
}

// listTracks determines the tracks that are removed.
func (c *webmCleaner) listTracks(e element) error {
	if e.id != mkvTracks {
		return nil
	}
	return c.visitElements(e.body, e.end, 0, func(e element) error {
		if e.id != mkvTrack {
			return nil
		}

		number, kind, err := c.readTrack(e)
		if !slices.Contains(keptTrackTypes, kind) {
			c.removed[number] = true
		}
		return err
	})
}

// readTrack returns the number and the type of a track.
func (c *webmCleaner) readTrack(e element) (number, kind uint64, err error) {
	err = c.visitElements(e.body, e.end, 0, func(e element) (err error) {
		switch e.id {
		case mkvTrackNumber:
			number, err = c.readUint(e)
		case mkvTrackType:
			kind, err = c.readUint(e)
		}
		return err
	})
	return number, kind, err
}

// void turns an element into a Void element of zeros with the same size.
func (c *webmCleaner) void(e element) {
	if e.id == mkvVoid {
		c.zero(e.body, e.end)
		return
	}

	head := voidHeader(e.end - e.start)
	c.write(e.start, head)
	c.zero(e.start+int64(len(head)), e.end)
}

// voidHeader returns the header of a Void element whose total size, including
// the header, is the given size.
func voidHeader(size int64) []byte {
	width := 1
	for width < 8 && size-1-int64(width) >= 1<<(7*width)-1 {
		width++
	}

	body := size - 1 - int64(width)
	head := binary.BigEndian.AppendUint64(nil, uint64(body)|1<<(7*width))
	return append([]byte{mkvVoid}, head[8-width:]...)
}

// cleanChildren turns the children of an element that are not in the list of
// kept elements into Void elements, and calls clean for the kept children. It
// descends into elements whose ID equals the parameter open.
func (c *webmCleaner) cleanChildren(parent element, open uint32, kept []uint32, clean func(element) error) error {
	return c.visitElements(parent.body, parent.end, open, func(e element) error {
		if !slices.Contains(kept, e.id) {
			c.void(e)
			return nil
		}
		return clean(e)
	})
}

// keepElement is passed to cleanChildren for elements that contain no metadata.
func keepElement(element) error { return nil }

func (c *webmCleaner) cleanTopLevel(e element) error {
	switch e.id {
	case ebmlHeader:
		return c.cleanChildren(e, 0, headerElements, keepElement)
	case mkvSegment:
		return c.cleanChildren(e, mkvCluster, segmentElements, c.cleanSegmentChild)
	}
	c.void(e)
	return nil
}

func (c *webmCleaner) cleanSegmentChild(e element) error {
	switch e.id {
	case mkvSeekHead:
		return c.cleanChildren(e, 0, []uint32{mkvSeek}, c.cleanSeek)
	case mkvInfo:
		return c.cleanChildren(e, 0, infoElements, c.cleanInfo)
	case mkvTracks:
		return c.cleanChildren(e, 0, []uint32{mkvTrack}, c.cleanTrack)
	case mkvSimpleBlock, mkvBlockGroup:
		return c.cleanBlock(e)
	}
	return nil
}

// cleanSeek removes a seek entry that refers to a removed element.
func (c *webmCleaner) cleanSeek(seek element) error {
	var id uint64
	err := c.visitElements(seek.body, seek.end, 0, func(e element) (err error) {
		if e.id == mkvSeekID {
			id, err = c.readUint(e)
		}
		return err
	})
	if err == nil && !slices.Contains(segmentElements, uint32(id)) {
		c.void(seek)
	}
	return err
}

// cleanInfo replaces the names of the programs that wrote the file.
func (c *webmCleaner) cleanInfo(e element) error {
	if e.id == mkvMuxingApp || e.id == mkvWritingApp {
		name := []byte(neutralName)[:min(int64(len(neutralName)), e.end-e.body)]
		c.write(e.body, name)
		c.zero(e.body+int64(len(name)), e.end)
	}
	return nil
}

func (c *webmCleaner) cleanTrack(track element) error {
	number, _, err := c.readTrack(track)
	if err != nil {
		return err
	}
	if c.removed[number] {
		c.void(track)
		return nil
	}

	var codec string
	err = c.visitElements(track.body, track.end, 0, func(e element) error {
		if e.id != mkvCodecID {
			return nil
		}

		b, err := c.peekBytes(e.body, int(min(e.end-e.body, 32)))
		codec = string(b)
		return err
	})
	if err != nil {
		return err
	}
	return c.cleanChildren(track, 0, trackElements, func(e element) error {
		switch {
		case e.id == mkvCodecPrivate && codec == "A_VORBIS":
			return c.cleanVorbisHeaders(e)
		case e.id == mkvCodecPrivate && codec == "A_FLAC" && e.end-e.body >= 4:
			return blankFLACBlocks(c.source, &c.overwrites, e.body+4, e.end)
		}
		return nil
	})
}

// cleanVorbisHeaders removes the comments from the three header packets of a
// Vorbis track. The packet with the comments keeps its length.
func (c *webmCleaner) cleanVorbisHeaders(e element) error {
	b, err := c.peekBytes(e.body, int(min(e.end-e.body, maxPeek)))
	if err != nil {
		return err
	}
	if len(b) < 3 || b[0] != 2 {
		return errors.New("a Vorbis track does not have three headers")
	}

	var lengths [2]int64
	at := 1
	for i := range lengths {
		for {
			if at == len(b) {
				return errors.New("the headers of a Vorbis track are too long")
			}

			n := b[at]
			at++
			lengths[i] += int64(n)
			if n < 255 {
				break
			}
		}
	}

	from := e.body + int64(at) + lengths[0]
	to := from + lengths[1]
	empty := vorbisComment(vorbisCommentMagic, nil)
	if to > e.end || lengths[1] < int64(len(empty)) {
		return errors.New("the headers of a Vorbis track are inconsistent")
	}
	c.write(from, empty)
	c.zero(from+int64(len(empty)), to)
	return nil
}

// cleanBlock removes the block of a removed track.
func (c *webmCleaner) cleanBlock(e element) error {
	if len(c.removed) == 0 {
		return nil
	}

	block := e
	if e.id == mkvBlockGroup {
		err := c.visitElements(e.body, e.end, 0, func(child element) error {
			if child.id == mkvBlock {
				block = child
			}
			return nil
		})
		if err != nil {
			return err
		}
	}

	b, err := c.peekBytes(block.body, int(min(8, block.end-block.body)))
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return nil
	}
	if width, number, _ := parseVint(b); width > 0 && c.removed[number] {
		c.void(e)
	}
	return nil
}
