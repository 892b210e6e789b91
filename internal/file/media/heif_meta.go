package media

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// Limits of a HEIF file's meta box. A large picture from a phone has about a
// hundred tiles.
const (
	maxItems        = 4096
	maxExtents      = 8192
	maxAssociations = 1 << 16
)

// The boxes, item types and properties of a HEIF file that are kept. All other
// items (Exif, XMP and other text, thumbnails in unknown codecs) are
// overwritten with zeros.
var (
	metaBoxes        = []string{"hdlr", "pitm", "iinf", "iloc", "iprp", "iref", "idat", "grpl", "dinf"}
	pictureItemTypes = []string{"hvc1", "hev1", "lhv1", "avc1", "jpeg", "grid", "iovl", "iden", "tmap"}
	textProperties   = []string{"udes", "crtt", "mdft", "altt", "uuid"} // descriptions and times, which are overwritten with zeros
	errMeta          = errors.New("the meta box is inconsistent")
	errMetaExcess    = errors.New("the meta box has too many entries")
)

// heifMeta is the parsed meta box of a HEIF file.
type heifMeta struct {
	boxReader
	bytes        []byte
	itemTypes    map[uint32]string // item types, by item ID
	primary      uint32
	extents      []extent
	props        []property
	itemProps    map[uint32][]int // indexes of properties, counted from 1, by item ID
	associations int
	idat         box
	zeroedBoxes  []box
}

type extent struct {
	item   uint32
	method int // 0 if the range is in the file, 1 if it is in the idat box
	span
}

// property is the size (ispe) or the rotation (irot) of an item in a HEIF
// file.
type property struct {
	kind          string
	width, height uint32
	quarters      int
}

func (m *heifMeta) parseBoxes() error {
	if len(m.bytes) < 4 {
		return errMeta
	}
	return m.visitBoxes(4, int64(len(m.bytes)), func(b box) error {
		switch {
		case !slices.Contains(metaBoxes, b.kind):
			m.zeroedBoxes = append(m.zeroedBoxes, b)
		case b.kind == "pitm":
			return m.parsePitm(m.readFields(b))
		case b.kind == "iinf":
			return m.parseIinf(b)
		case b.kind == "iloc":
			return m.parseIloc(m.readFields(b))
		case b.kind == "iprp":
			return m.parseIprp(b)
		case b.kind == "idat":
			if m.idat.end != 0 {
				return errMeta
			}
			m.idat = b
		}
		return nil
	})
}

// readFields returns a reader of the fields of a full box, after its version
// and flags.
func (m *heifMeta) readFields(b box) *fieldReader {
	f := &fieldReader{rest: m.bytes[b.body:b.end]}
	head := f.readUint(4)
	f.version = int(head >> 24)
	f.flags = int(head & 0xffffff)
	return f
}

func (m *heifMeta) parsePitm(f *fieldReader) error {
	m.primary = uint32(f.readUint(2 + 2*min(f.version, 1)))
	return f.err
}

func (m *heifMeta) parseIinf(b box) error {
	f := m.readFields(b)
	f.readUint(2 + 2*min(f.version, 1)) // skips the number of entries, which is not needed
	if f.err != nil {
		return f.err
	}
	return m.visitBoxes(b.end-int64(len(f.rest)), b.end, func(b box) error {
		if b.kind != "infe" {
			return nil
		}

		f := m.readFields(b)
		if f.version != 2 && f.version != 3 {
			return nil // older versions have no item type, so the item is not a picture
		}

		id := uint32(f.readUint(2 * (f.version - 1)))
		f.readUint(2)
		kind := string(f.readBytes(4))
		if len(m.itemTypes) >= maxItems {
			return errMetaExcess
		}
		if _, twice := m.itemTypes[id]; twice {
			return errMeta
		}

		m.itemTypes[id] = kind
		return f.err
	})
}

func (m *heifMeta) parseIloc(f *fieldReader) error {
	if f.version > 2 || len(m.extents) > 0 {
		return errMeta
	}

	sizes := f.readUint(2)
	offset := int(sizes >> 12)
	length := int(sizes >> 8 & 15)
	base := int(sizes >> 4 & 15)
	index := int(sizes & 15)
	if f.version == 0 {
		index = 0
	}

	wide := 2
	if f.version == 2 {
		wide = 4
	}

	for count := f.readUint(wide); count > 0 && f.err == nil; count-- {
		e := extent{item: uint32(f.readUint(wide))}
		if f.version > 0 {
			e.method = int(f.readUint(2) & 15)
		}

		elsewhere := f.readUint(2) != 0 // the data is in another file
		start := f.readUint(base)
		for n := f.readUint(2); n > 0 && f.err == nil; n-- {
			f.readUint(index)
			from := start + f.readUint(offset)
			to := from + f.readUint(length)
			if elsewhere || e.method > 1 || from > math.MaxInt64/4 || to > math.MaxInt64/4 || to <= from {
				return errMeta
			}
			if e.span = (span{int64(from), int64(to)}); len(m.extents) >= maxExtents {
				return errMetaExcess
			}

			m.extents = append(m.extents, e)
		}
	}
	return f.err
}

func (m *heifMeta) parseIprp(b box) error {
	return m.visitBoxes(b.body, b.end, func(b box) error {
		switch b.kind {
		case "ipco":
			return m.visitBoxes(b.body, b.end, m.parseProperty)
		case "ipma":
			return m.parseIpma(m.readFields(b))
		}
		return nil
	})
}

func (m *heifMeta) parseProperty(b box) error {
	p := property{kind: b.kind}
	switch {
	case slices.Contains(textProperties, b.kind):
		m.zeroedBoxes = append(m.zeroedBoxes, b)
	case b.kind == "ispe":
		f := m.readFields(b)
		p.width = uint32(f.readUint(4))
		p.height = uint32(f.readUint(4))
		if f.err != nil {
			return f.err
		}
	case b.kind == "irot" && b.end > b.body:
		p.quarters = int(m.bytes[b.body] & 3)
	}

	m.props = append(m.props, p)
	return nil
}

func (m *heifMeta) parseIpma(f *fieldReader) error {
	for count := f.readUint(4); count > 0 && f.err == nil; count-- {
		id := uint32(f.readUint(2 + 2*min(f.version, 1)))
		for n := f.readUint(1); n > 0 && f.err == nil; n-- {
			if m.associations++; m.associations > maxAssociations {
				return errMetaExcess
			}
			if f.flags&1 != 0 {
				m.itemProps[id] = append(m.itemProps[id], int(f.readUint(2)&0x7fff))
			} else {
				m.itemProps[id] = append(m.itemProps[id], int(f.readUint(1)&0x7f))
			}
		}
	}
	return f.err
}

// pictureSpans returns the byte ranges of picture data: in the file for method
// 0, in the idat box for method 1.
func (m *heifMeta) pictureSpans(method int) []span {
	var all []span
	for _, e := range m.extents {
		if e.method == method && slices.Contains(pictureItemTypes, m.itemTypes[e.item]) {
			all = append(all, e.span)
		}
	}
	return all
}

// zeroMetadata overwrites everything in the meta box that does not belong to a
// picture with zeros.
func (m *heifMeta) zeroMetadata() {
	for _, b := range m.zeroedBoxes {
		copy(m.bytes[b.start+4:], "free")
		clear(m.bytes[b.body:b.end])
	}

	data := m.bytes[m.idat.body:m.idat.end]
	at := int64(0)
	end := int64(len(data))
	for _, s := range append(mergeSpans(m.pictureSpans(1)), span{end, end}) {
		if from := min(s.from, end); from > at {
			clear(data[at:from])
		}
		at = max(at, min(s.to, end))
	}
}

// primaryDimensions returns the width and height of the primary picture, in
// pixels, as displayed after rotation.
func (m *heifMeta) primaryDimensions() (width, height int) {
	turned := false
	for _, i := range m.itemProps[m.primary] {
		if i < 1 || i > len(m.props) {
			continue
		}
		switch p := m.props[i-1]; p.kind {
		case "ispe":
			if p.width <= math.MaxInt32 && p.height <= math.MaxInt32 {
				width = int(p.width)
				height = int(p.height)
			}
		case "irot":
			turned = turned != (p.quarters%2 == 1)
		}
	}
	if turned {
		return height, width
	}
	return width, height
}

// fieldReader reads the fields of a box and records an error if the box is too
// short.
type fieldReader struct {
	rest           []byte
	version, flags int
	err            error
}

func (f *fieldReader) readBytes(n int) []byte {
	if n > len(f.rest) {
		f.err = errMeta
		f.rest = nil
		return make([]byte, n)
	}

	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

// readUint reads a big-endian number of up to eight bytes.
func (f *fieldReader) readUint(n int) uint64 {
	if n > 8 {
		f.err = errMeta
		return 0
	}

	var wide [8]byte
	copy(wide[8-n:], f.readBytes(n))
	return binary.BigEndian.Uint64(wide[:])
}
