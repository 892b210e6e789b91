package media

import (
	"encoding/binary"
	"errors"
	"slices"
)

// maxCleanedBoxes is the maximum number of boxes of a video that is cleaned. It
// exceeds maxBoxes, because cleaning descends into fragments.
const maxCleanedBoxes = 100_000

// The boxes of MP4 and QuickTime files that are kept, by the box that contains
// them. All other boxes (tags, chapters, XMP, encoder names, unused space)
// become free boxes of zeros with the same size, so that no offset in the file
// changes.
var (
	fileBoxes     = []string{"ftyp", "styp", "moov", "moof", "mdat", "mfra", "sidx", "ssix", "pdin"}
	movieBoxes    = []string{"mvhd", "trak", "mvex"}
	extendsBoxes  = []string{"mehd", "trex", "leva"}
	trackBoxes    = []string{"tkhd", "mdia", "edts", "tref", "tapt", "trgr"}
	mediaBoxes    = []string{"mdhd", "hdlr", "minf", "elng"}
	infoBoxes     = []string{"vmhd", "smhd", "sthd", "nmhd", "gmhd", "hdlr", "dinf", "stbl"}
	tableBoxes    = []string{"stsd", "stts", "ctts", "cslg", "stss", "stps", "stsh", "stsc", "stsz", "stz2", "stco", "co64", "sdtp", "sbgp", "sgpd", "subs", "padb", "stdp", "saiz", "saio"}
	fragmentBoxes = []string{"mfhd", "traf"}
	runBoxes      = []string{"tfhd", "tfdt", "trun", "sbgp", "sgpd", "subs", "sdtp", "saiz", "saio", "senc"}

	// keptTracks are the kinds of tracks that are kept: pictures, sound, an
	// additional picture such as an alpha channel, and subtitles.
	keptTracks = []string{"vide", "soun", "auxv", "subt", "sbtl", "clcp"}
	// keptReferences are the kinds of references between tracks that are kept.
	keptReferences = []string{"auxl", "vdep", "fall", "forc", "folw", "sync", "subt"}
)

// mp4Cleaner plans how to clean an MP4 or QuickTime file.
type mp4Cleaner struct {
	boxReader
	overwrites
	tracks    map[uint32]*mp4Track
	chapters  []uint32 // IDs of the tracks that contain chapters
	keepSpans []span   // ranges of samples of kept tracks
	data      []box    // the mdat boxes
}

// mp4Track is a track of an MP4 file.
type mp4Track struct {
	kind              string
	removed           bool
	defaultSampleSize uint32 // default size of samples, for fragments that state no size
	pcmSize           int64  // bytes of an uncompressed sample of all channels, in QuickTime
	packetSamples     int64  // QuickTime: samples in a packet of compressed sound
	packetSize        int64  // QuickTime: bytes of a packet of compressed sound
}

// planMP4 plans how to clean an MP4 or QuickTime file. All metadata and all
// media data that belongs to no kept track are overwritten with zeros.
func planMP4(s *source) ([]part, error) {
	c := &mp4Cleaner{boxReader: boxReader{source: s, limit: maxCleanedBoxes}, tracks: map[uint32]*mp4Track{}}

	movies := 0
	err := c.visitBoxes(0, s.size, func(b box) error {
		if b.kind != "moov" {
			return nil
		}
		if movies++; movies > 1 {
			return errors.New("the file has two moov boxes")
		}
		return c.listTracks(b)
	})
	if err != nil {
		return nil, err
	}
	if err := c.cleanChildren(0, s.size, fileBoxes, c.cleanFileBox); err != nil {
		return nil, err
	}

	c.zeroUnusedData()
	return c.overwrites.parts(s.size)
}

// blank turns a box into a free box of zeros.
func (c *mp4Cleaner) blank(b box) {
	c.write(b.start+4, []byte("free"))
	c.zero(b.body, b.end)
}

// cleanChildren handles the boxes between two offsets: it calls clean for boxes
// in the list of kept boxes and blanks all other boxes.
func (c *mp4Cleaner) cleanChildren(start, end int64, kept []string, clean func(box) error) error {
	return c.visitBoxes(start, end, func(b box) error {
		if !slices.Contains(kept, b.kind) {
			c.blank(b)
			return nil
		}
		return clean(b)
	})
}

// keepBox is passed to cleanChildren for boxes that contain no metadata.
func keepBox(box) error { return nil }

// listTracks determines the tracks of the movie and which of them are removed.
func (c *mp4Cleaner) listTracks(moov box) error {
	err := c.visitBoxes(moov.body, moov.end, func(b box) error {
		switch b.kind {
		case "trak":
			return c.listTrack(b)
		case "mvex":
			return c.visitBoxes(b.body, b.end, func(b box) error {
				if b.kind != "trex" {
					return nil
				}

				p, err := c.peekBody(b, 24)
				if err == nil {
					c.track(binary.BigEndian.Uint32(p[4:])).defaultSampleSize = binary.BigEndian.Uint32(p[16:])
				}
				return err
			})
		}
		return nil
	})
	for _, id := range c.chapters {
		c.track(id).removed = true
	}
	return err
}

// track returns the track with the given ID. If the movie has no such track, it
// returns a track that counts as removed.
func (c *mp4Cleaner) track(id uint32) *mp4Track {
	if c.tracks[id] == nil {
		c.tracks[id] = &mp4Track{removed: true}
	}
	return c.tracks[id]
}

func (c *mp4Cleaner) listTrack(trak box) error {
	var id uint32
	var kind string
	err := c.visitBoxes(trak.body, trak.end, func(b box) (err error) {
		switch b.kind {
		case "tkhd":
			id, err = c.readTrackID(b)
		case "mdia":
			return c.visitBoxes(b.body, b.end, func(b box) error {
				if b.kind != "hdlr" {
					return nil
				}

				p, err := c.peekBody(b, 12)
				if err == nil {
					kind = string(p[8:])
				}
				return err
			})
		case "tref":
			return c.visitBoxes(b.body, b.end, func(b box) error {
				if b.kind != "chap" {
					return nil
				}

				n := min(b.end-b.body, maxPeek) &^ 3
				p, err := c.peekBody(b, int(n))
				for ; len(p) > 0; p = p[4:] {
					c.chapters = append(c.chapters, binary.BigEndian.Uint32(p))
				}
				return err
			})
		}
		return err
	})
	if err != nil {
		return err
	}

	t := c.track(id)
	if t.kind != "" {
		return errors.New("two tracks have the same ID")
	}
	t.kind = kind
	t.removed = !slices.Contains(keptTracks, kind)
	return nil
}

// readTrackID returns the ID in a tkhd box.
func (c *mp4Cleaner) readTrackID(b box) (uint32, error) {
	p, err := c.peekBody(b, 24)
	switch {
	case err != nil:
		return 0, err
	case p[0] == 1:
		return binary.BigEndian.Uint32(p[20:]), nil
	}
	return binary.BigEndian.Uint32(p[12:]), nil
}

func (c *mp4Cleaner) cleanFileBox(b box) error {
	switch b.kind {
	case "moov":
		return c.cleanChildren(b.body, b.end, movieBoxes, c.cleanMovieBox)
	case "moof":
		return c.cleanFragment(b)
	case "mfra":
		return c.cleanChildren(b.body, b.end, []string{"tfra", "mfro"}, c.cleanRandomAccess)
	case "mdat":
		c.data = append(c.data, b)
	}
	return nil
}

// cleanRandomAccess blanks the random access table of a removed track.
func (c *mp4Cleaner) cleanRandomAccess(b box) error {
	if b.kind != "tfra" {
		return nil
	}

	p, err := c.peekBody(b, 8)
	if err == nil && c.track(binary.BigEndian.Uint32(p[4:])).removed {
		c.blank(b)
	}
	return err
}

func (c *mp4Cleaner) cleanMovieBox(b box) error {
	switch b.kind {
	case "mvhd":
		return c.zeroTimes(b)
	case "mvex":
		return c.cleanChildren(b.body, b.end, extendsBoxes, func(b box) error {
			if b.kind != "trex" {
				return nil
			}

			p, err := c.peekBody(b, 8)
			if err == nil && c.track(binary.BigEndian.Uint32(p[4:])).removed {
				c.blank(b)
			}
			return err
		})
	}
	return c.cleanTrack(b)
}

// zeroTimes sets the times of creation and modification in a mvhd, tkhd or mdhd
// box to 0.
func (c *mp4Cleaner) zeroTimes(b box) error {
	p, err := c.peekBody(b, 20)
	if err != nil {
		return err
	}

	length := int64(8)
	if p[0] == 1 {
		length = 16
	}
	c.zero(b.body+4, b.body+4+length)
	return nil
}

func (c *mp4Cleaner) cleanTrack(trak box) error {
	var t *mp4Track
	err := c.visitBoxes(trak.body, trak.end, func(b box) error {
		if b.kind != "tkhd" {
			return nil
		}

		id, err := c.readTrackID(b)
		t = c.track(id)
		return err
	})
	switch {
	case err != nil:
		return err
	case t == nil:
		return errors.New("a track has no header")
	case t.removed:
		c.blank(trak)
		return nil
	}

	cleanMedia := func(b box) error {
		switch b.kind {
		case "mdhd":
			return c.zeroTimes(b)
		case "hdlr":
			return c.zeroHandlerName(b)
		case "minf":
			return c.cleanChildren(b.body, b.end, infoBoxes, func(b box) error { return c.cleanMediaInfo(t, b) })
		}
		return nil
	}
	return c.cleanChildren(trak.body, trak.end, trackBoxes, func(b box) error {
		switch b.kind {
		case "tkhd":
			return c.zeroTimes(b)
		case "mdia":
			return c.cleanChildren(b.body, b.end, mediaBoxes, cleanMedia)
		case "tref":
			return c.cleanChildren(b.body, b.end, keptReferences, keepBox)
		}
		return nil
	})
}

// zeroHandlerName removes the manufacturer and the name from a hdlr box.
func (c *mp4Cleaner) zeroHandlerName(b box) error {
	if b.end-b.body < 12 {
		return errBox
	}
	c.zero(b.body+12, b.end)
	return nil
}

func (c *mp4Cleaner) cleanMediaInfo(t *mp4Track, b box) error {
	switch b.kind {
	case "hdlr":
		return c.zeroHandlerName(b)
	case "dinf":
		return c.cleanChildren(b.body, b.end, []string{"dref"}, c.cleanDataReferences)
	case "stbl":
		var tables sampleTables
		err := c.cleanChildren(b.body, b.end, tableBoxes, func(b box) error {
			if b.kind == "stsd" {
				return c.cleanDescriptions(t, b)
			}
			return tables.addBox(b)
		})
		if err != nil {
			return err
		}
		return c.keepSamples(t, tables)
	}
	return nil
}

// cleanDataReferences removes the locations, which can contain names of files
// and folders, from the data references of a track. The samples are in the
// file itself.
func (c *mp4Cleaner) cleanDataReferences(b box) error {
	if b.end-b.body < 8 {
		return errBox
	}
	return c.visitBoxes(b.body+8, b.end, func(b box) error {
		c.zero(min(b.body+4, b.end), b.end)
		return nil
	})
}

// zeroUnusedData overwrites the media data that belongs to no sample of a kept
// track with zeros.
func (c *mp4Cleaner) zeroUnusedData() {
	kept := mergeSpans(c.keepSpans)
	for _, b := range c.data {
		at := b.body
		first, _ := slices.BinarySearchFunc(kept, at, func(s span, at int64) int {
			if s.to <= at {
				return -1
			}
			return 1
		})
		for _, s := range kept[first:] {
			if s.from >= b.end {
				break
			}
			c.zero(at, min(max(at, s.from), b.end))
			at = min(max(at, s.to), b.end)
		}
		c.zero(at, b.end)
	}
}
