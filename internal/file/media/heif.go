package media

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"

	"atelier/internal/base/fault"
)

// maxMeta is the longest description of a picture that is held in memory.
const maxMeta = 512 << 10

// heifWalk goes through a HEIF file (ISO 23008-12). Everything lies where
// offsets point to, so nothing can be cut out: what does not belong to a
// picture becomes zeros in its place. That is decided by the meta box, which
// must therefore come before the data.
type heifWalk struct {
	*cleaner
	pos  int64  // of the next box
	stop int64  // where the box with data ends
	keep []span // of the file, in order
	seen bool   // the meta box
}

// span is a range of bytes.
type span struct{ from, to int64 }

func (h *heifWalk) start() error {
	head, err := h.in.Peek(8)
	if err != nil {
		return early(Image, err)
	}
	if string(head[4:]) != "ftyp" {
		return broken(Image, "no ftyp")
	}
	h.step = h.box
	return nil
}

func (h *heifWalk) box() error {
	if _, err := h.in.Peek(1); err != nil {
		return h.finish()
	}
	b, err := h.take(8)
	if err != nil {
		return err
	}
	kind := b[4:8]
	head := int64(8)
	size := uint64(binary.BigEndian.Uint32(b))
	name := string(kind)
	if size == 1 {
		long, err := h.take(8)
		if err != nil {
			return err
		}
		kind = h.out[len(h.out)-12:][:4]
		head = 16
		size = binary.BigEndian.Uint64(long)
	}
	endless := size == 0
	if endless {
		size = math.MaxInt64/2 - uint64(h.pos)
	}
	if size < uint64(head) || size > math.MaxInt64/2-uint64(h.pos) {
		return broken(Image, "a box of an absurd size")
	}
	body := int64(size) - head
	h.pos += head
	switch name {
	case "ftyp":
		if h.pos != 8 || body > maxPeek {
			return broken(Image, "a second or an absurd ftyp")
		}
		h.let(body, false)
	case "meta":
		if h.seen || body > maxMeta {
			return broken(Image, "a second or an absurd meta box")
		}
		h.seen = true
		if err := h.meta(int(body)); err != nil {
			return err
		}
	case "mdat":
		if !h.seen {
			return fault.New(fault.Invalid, "The picture's description lies behind its data. Save it anew, or as JPEG.")
		}
		h.stop = h.pos + body
		h.step = h.data
		if endless {
			h.step = h.tail
		}
		return nil
	default:
		if endless {
			return broken(Image, "a box without an end")
		}
		copy(kind, "free")
		h.let(body, true)
	}
	h.pos += body
	return nil
}

// finish is the end of the file. All of what the pictures need was there.
func (h *heifWalk) finish() error {
	err := h.end()
	if errors.Is(err, io.EOF) && (!h.seen || len(h.keep) > 0 && h.keep[len(h.keep)-1].to > h.pos) {
		return broken(Image, "no description, or data missing")
	}
	return err
}

// data passes the next run of a box with data.
func (h *heifWalk) data() error {
	if h.pos == h.stop {
		h.step = h.box
		return nil
	}
	to := h.stop
	kept := false
	for _, s := range h.keep {
		if s.to <= h.pos {
			continue
		}
		if kept = s.from <= h.pos; kept {
			to = min(to, s.to)
		} else {
			to = min(to, s.from)
		}
		break
	}
	h.let(to-h.pos, !kept)
	h.pos = to
	return nil
}

// tail is data up to the end of a file that does not say where that is.
func (h *heifWalk) tail() error {
	if len(h.keep) == 0 || h.pos >= h.keep[len(h.keep)-1].to {
		h.let(h.stop-h.pos, true)
		h.open = true
		h.step = h.finish
		return nil
	}
	return h.data()
}

// meta reads the description, blanks what does not belong to a picture in it,
// and learns which data does.
func (h *heifWalk) meta(n int) error {
	b, err := h.take(n)
	if err != nil {
		return err
	}
	m := &heifMeta{
		boxWalk: boxWalk{source: newSource(context.Background(), bytes.NewReader(b), int64(n))},
		bytes:   b, kinds: map[uint32]string{}, of: map[uint32][]int{},
	}
	if err := m.read(); err != nil {
		return spoilt(Image, err)
	}
	h.keep = merged(m.spans(0))
	m.blank()
	h.width, h.height = m.dimensions()
	if h.width <= 0 || h.height <= 0 {
		return broken(Image, "the picture has no size")
	}
	return nil
}

// merged sorts spans and joins those that touch.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		switch {
		case a.from < b.from:
			return -1
		case a.from > b.from:
			return 1
		}
		return 0
	})
	var all []span
	for _, s := range spans {
		if last := len(all) - 1; last >= 0 && s.from <= all[last].to {
			all[last].to = max(all[last].to, s.to)
		} else {
			all = append(all, s)
		}
	}
	return all
}
