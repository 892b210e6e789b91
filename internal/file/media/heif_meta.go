package media

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// The most that a description may list. A large picture of a phone has some
// hundred tiles.
const (
	maxItems   = 4096
	maxExtents = 8192
	maxLinks   = 1 << 16
)

// What stays of a description and of the items that it names. All other items
// (Exif, XMP and other text, thumbnails in unknown codings) become zeros.
var (
	metaBoxes     = []string{"hdlr", "pitm", "iinf", "iloc", "iprp", "iref", "idat", "grpl", "dinf"}
	pictureKinds  = []string{"hvc1", "hev1", "lhv1", "avc1", "jpeg", "grid", "iovl", "iden", "tmap"}
	describing    = []string{"udes", "crtt", "mdft", "altt", "uuid"} // properties: texts and times
	errMeta       = errors.New("a description that contradicts itself")
	errMetaExcess = errors.New("a description with too much in it")
)

// heifMeta is the meta box of a picture.
type heifMeta struct {
	boxWalk
	bytes   []byte
	kinds   map[uint32]string // of items
	primary uint32
	extents []extent
	props   []property
	of      map[uint32][]int // properties of items, counted from 1
	links   int
	idat    box
	rubbish []box // becomes zeros
}

type extent struct {
	item   uint32
	method int // 0: offset in the file, 1: in the idat box
	span
}

// property is a size or a turn of an item.
type property struct {
	kind          string
	width, height uint32
	quarters      int
}

func (m *heifMeta) read() error {
	if len(m.bytes) < 4 {
		return errMeta
	}
	return m.each(4, int64(len(m.bytes)), func(b box) error {
		switch {
		case !slices.Contains(metaBoxes, b.kind):
			m.rubbish = append(m.rubbish, b)
		case b.kind == "pitm":
			return m.pitm(m.fields(b))
		case b.kind == "iinf":
			return m.iinf(b)
		case b.kind == "iloc":
			return m.iloc(m.fields(b))
		case b.kind == "iprp":
			return m.iprp(b)
		case b.kind == "idat":
			if m.idat.end != 0 {
				return errMeta
			}
			m.idat = b
		}
		return nil
	})
}

// fields reads a box with a version number field by field.
func (m *heifMeta) fields(b box) *fields {
	f := &fields{rest: m.bytes[b.body:b.end]}
	head := f.uint(4)
	f.version = int(head >> 24)
	f.flags = int(head & 0xffffff)
	return f
}

func (m *heifMeta) pitm(f *fields) error {
	m.primary = uint32(f.uint(2 + 2*min(f.version, 1)))
	return f.err
}

func (m *heifMeta) iinf(b box) error {
	f := m.fields(b)
	f.uint(2 + 2*min(f.version, 1)) // the boxes are counted again
	if f.err != nil {
		return f.err
	}
	return m.each(b.end-int64(len(f.rest)), b.end, func(b box) error {
		if b.kind != "infe" {
			return nil
		}
		f := m.fields(b)
		if f.version != 2 && f.version != 3 {
			return nil // has no kind, so it is no picture
		}
		id := uint32(f.uint(2 * (f.version - 1)))
		f.uint(2)
		kind := string(f.bytes(4))
		if len(m.kinds) >= maxItems {
			return errMetaExcess
		}
		if _, twice := m.kinds[id]; twice {
			return errMeta
		}
		m.kinds[id] = kind
		return f.err
	})
}

func (m *heifMeta) iloc(f *fields) error {
	if f.version > 2 || len(m.extents) > 0 {
		return errMeta
	}
	sizes := f.uint(2)
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
	for count := f.uint(wide); count > 0 && f.err == nil; count-- {
		e := extent{item: uint32(f.uint(wide))}
		if f.version > 0 {
			e.method = int(f.uint(2) & 15)
		}
		elsewhere := f.uint(2) != 0 // data in another file
		start := f.uint(base)
		for n := f.uint(2); n > 0 && f.err == nil; n-- {
			f.uint(index)
			from := start + f.uint(offset)
			to := from + f.uint(length)
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

func (m *heifMeta) iprp(b box) error {
	return m.each(b.body, b.end, func(b box) error {
		switch b.kind {
		case "ipco":
			return m.each(b.body, b.end, m.property)
		case "ipma":
			return m.ipma(m.fields(b))
		}
		return nil
	})
}

func (m *heifMeta) property(b box) error {
	p := property{kind: b.kind}
	switch {
	case slices.Contains(describing, b.kind):
		m.rubbish = append(m.rubbish, b)
	case b.kind == "ispe":
		f := m.fields(b)
		p.width = uint32(f.uint(4))
		p.height = uint32(f.uint(4))
		if f.err != nil {
			return f.err
		}
	case b.kind == "irot" && b.end > b.body:
		p.quarters = int(m.bytes[b.body] & 3)
	}
	m.props = append(m.props, p)
	return nil
}

func (m *heifMeta) ipma(f *fields) error {
	for count := f.uint(4); count > 0 && f.err == nil; count-- {
		id := uint32(f.uint(2 + 2*min(f.version, 1)))
		for n := f.uint(1); n > 0 && f.err == nil; n-- {
			if m.links++; m.links > maxLinks {
				return errMetaExcess
			}
			if f.flags&1 != 0 {
				m.of[id] = append(m.of[id], int(f.uint(2)&0x7fff))
			} else {
				m.of[id] = append(m.of[id], int(f.uint(1)&0x7f))
			}
		}
	}
	return f.err
}

// spans are where the pictures lie, in the file or in the idat box.
func (m *heifMeta) spans(method int) []span {
	var all []span
	for _, e := range m.extents {
		if e.method == method && slices.Contains(pictureKinds, m.kinds[e.item]) {
			all = append(all, e.span)
		}
	}
	return all
}

// blank overwrites what is no part of a picture.
func (m *heifMeta) blank() {
	for _, b := range m.rubbish {
		copy(m.bytes[b.start+4:], "free")
		clear(m.bytes[b.body:b.end])
	}
	data := m.bytes[m.idat.body:m.idat.end]
	at := int64(0)
	end := int64(len(data))
	for _, s := range append(merged(m.spans(1)), span{end, end}) {
		if from := min(s.from, end); from > at {
			clear(data[at:from])
		}
		at = max(at, min(s.to, end))
	}
}

// dimensions are those of the primary picture as it is shown.
func (m *heifMeta) dimensions() (width, height int) {
	turned := false
	for _, i := range m.of[m.primary] {
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

// fields reads numbers and remembers when there were too few bytes.
type fields struct {
	rest           []byte
	version, flags int
	err            error
}

func (f *fields) bytes(n int) []byte {
	if n > len(f.rest) {
		f.err = errMeta
		f.rest = nil
		return make([]byte, n)
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

// uint reads a big-endian number of up to eight bytes.
func (f *fields) uint(n int) uint64 {
	if n > 8 {
		f.err = errMeta
		return 0
	}
	var wide [8]byte
	copy(wide[8-n:], f.bytes(n))
	return binary.BigEndian.Uint64(wide[:])
}
