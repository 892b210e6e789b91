package media

import (
	"encoding/binary"
	"errors"
	"slices"
)

// entryMetadata are the boxes of a sample entry that are removed. All other
// boxes configure a decoder.
var entryMetadata = []string{"free", "skip", "uuid", "udta", "meta", "name", "ilst"}

// cleanDescriptions removes metadata from the sample entries of a track.
func (c *mp4Cleaner) cleanDescriptions(t *mp4Track, b box) error {
	p, err := c.peekBody(b, 8)
	if err != nil {
		return err
	}

	version := p[0]
	return c.visitBoxes(b.body+8, b.end, func(b box) error {
		switch t.kind {
		case "vide", "auxv":
			return c.cleanPictureEntry(b)
		case "soun":
			return c.cleanSoundEntry(t, version, b)
		}
		return nil
	})
}

// cleanPictureEntry removes the vendor, the name of the compressor and metadata
// boxes from the sample entry of a picture track.
func (c *mp4Cleaner) cleanPictureEntry(b box) error {
	const length = 78 // length of the fields before the boxes, in bytes
	if b.end-b.body < length {
		return errBox
	}
	c.zero(b.body+12, b.body+16)
	c.zero(b.body+42, b.body+74)
	return c.cleanEntryBoxes(b.body+length, b.end)
}

// cleanSoundEntry removes the vendor and metadata boxes from the sample entry
// of a sound track. Versions 1 and 2 of the entry, which QuickTime defines,
// have more fields.
func (c *mp4Cleaner) cleanSoundEntry(t *mp4Track, version byte, b box) error {
	p, err := c.peekBody(b, 28)
	if err != nil {
		return err
	}

	length := int64(28)
	entryVersion := binary.BigEndian.Uint16(p[8:])
	t.pcmSize = int64(binary.BigEndian.Uint16(p[16:])) * int64((binary.BigEndian.Uint16(p[18:])+7)/8)
	switch {
	case version == 0 && entryVersion == 1:
		length = 44
		if p, err = c.peekBody(b, 44); err != nil {
			return err
		}
		t.packetSamples = int64(binary.BigEndian.Uint32(p[28:]))
		t.packetSize = int64(binary.BigEndian.Uint32(p[36:]))
	case version == 0 && entryVersion == 2:
		length = 64
	}
	if b.end-b.body < length {
		return errBox
	}
	c.zero(b.body+12, b.body+16)
	return c.cleanEntryBoxes(b.body+length, b.end)
}

// cleanEntryBoxes removes metadata boxes from a sample entry. Some programs end
// the boxes with four zero bytes, which are not a box.
func (c *mp4Cleaner) cleanEntryBoxes(start, end int64) error {
	for end-start >= 8 {
		p, err := c.peekBytes(start, 8)
		if err != nil {
			return err
		}

		size := int64(binary.BigEndian.Uint32(p))
		if size < 8 || size > end-start {
			break
		}

		b := box{kind: string(p[4:]), start: start, body: start + 8, end: start + size}
		if c.boxCount++; c.boxCount > maxCleanedBoxes {
			return errors.New("the file has too many boxes")
		}
		switch {
		case slices.Contains(entryMetadata, b.kind):
			c.blank(b)
		case b.kind == "dfLa" && b.end-b.body >= 4:
			if err := blankFLACBlocks(c.source, &c.overwrites, b.body+4, b.end); err != nil {
				return err
			}
		}
		start = b.end
	}
	c.zero(start, end)
	return nil
}
