package media

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"

	"atelier/internal/base/fault"
)

// maxMeta is the maximum size of the meta box, in bytes. The whole box is kept
// in memory.
const maxMeta = 512 << 10

// heifParser is the parser of HEIF files (ISO 23008-12). Data is addressed by
// file offsets, so nothing can be removed: data that does not belong to a
// picture is overwritten with zeros. The meta box lists the data of pictures,
// so it must come before the data.
type heifParser struct {
	*cleaner
	pos       int64  // offset of the next box
	dataEnd   int64  // end of the current mdat box
	keepSpans []span // ranges of the file to keep, in order
	hasMeta   bool   // a meta box was parsed
}

// span is a half-open range of byte offsets in a file: from is included, to is
// excluded.
type span struct{ from, to int64 }

func (h *heifParser) parseSignature() error {
	head, err := h.in.Peek(8)
	if err != nil {
		return readError(Image, err)
	}
	if string(head[4:]) != "ftyp" {
		return damagedError(Image, "the ftyp box is missing")
	}

	h.step = h.parseBox
	return nil
}

func (h *heifParser) parseBox() error {
	if _, err := h.in.Peek(1); err != nil {
		return h.finishFile()
	}

	b, err := h.keepBytes(8)
	if err != nil {
		return err
	}

	kind := b[4:8]
	head := int64(8)
	size := uint64(binary.BigEndian.Uint32(b))
	name := string(kind)
	if size == 1 {
		long, err := h.keepBytes(8)
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
		return damagedError(Image, "a box has an invalid size")
	}

	body := int64(size) - head
	h.pos += head
	switch name {
	case "ftyp":
		if h.pos != 8 || body > maxPeek {
			return damagedError(Image, "the file has two ftyp boxes, or its ftyp box is too large")
		}
		h.copyBytes(body, false)
	case "meta":
		if h.hasMeta || body > maxMeta {
			return damagedError(Image, "the file has two meta boxes, or its meta box is too large")
		}
		h.hasMeta = true
		if err := h.parseMeta(int(body)); err != nil {
			return err
		}
	case "mdat":
		if !h.hasMeta {
			return fault.New(fault.Invalid, "The picture is stored with its metadata after its data, which is not supported. Save it again, or as JPEG.")
		}

		h.dataEnd = h.pos + body
		h.step = h.copyData
		if endless {
			h.step = h.copyTrailingData
		}
		return nil
	default:
		if endless {
			return damagedError(Image, "a box that must have a size has none")
		}
		copy(kind, "free")
		h.copyBytes(body, true)
	}

	h.pos += body
	return nil
}

// finishFile is the step at the end of the file. It checks that all picture
// data that the meta box lists was found.
func (h *heifParser) finishFile() error {
	err := h.expectEnd()
	if errors.Is(err, io.EOF) && (!h.hasMeta || len(h.keepSpans) > 0 && h.keepSpans[len(h.keepSpans)-1].to > h.pos) {
		return damagedError(Image, "the meta box or picture data is missing")
	}
	return err
}

// copyData is the step that copies or zeroes the next range of an mdat box,
// which contains media data.
func (h *heifParser) copyData() error {
	if h.pos == h.dataEnd {
		h.step = h.parseBox
		return nil
	}

	to := h.dataEnd
	kept := false
	for _, s := range h.keepSpans {
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

	h.copyBytes(to-h.pos, !kept)
	h.pos = to
	return nil
}

// copyTrailingData is the step for an mdat box that extends to the end of the
// file.
func (h *heifParser) copyTrailingData() error {
	if len(h.keepSpans) == 0 || h.pos >= h.keepSpans[len(h.keepSpans)-1].to {
		h.copyBytes(h.dataEnd-h.pos, true)
		h.mayEndEarly = true
		h.step = h.finishFile
		return nil
	}
	return h.copyData()
}

// parseMeta parses the meta box, overwrites metadata in it with zeros, and
// determines the ranges of picture data.
func (h *heifParser) parseMeta(n int) error {
	b, err := h.keepBytes(n)
	if err != nil {
		return err
	}

	m := &heifMeta{
		boxReader: boxReader{source: newSource(context.Background(), bytes.NewReader(b), int64(n))},
		bytes:     b, itemTypes: map[uint32]string{}, itemProps: map[uint32][]int{},
	}
	if err := m.parseBoxes(); err != nil {
		return wrapDamaged(Image, err)
	}

	h.keepSpans = mergeSpans(m.pictureSpans(0))
	m.zeroMetadata()
	h.width, h.height = m.primaryDimensions()
	if h.width <= 0 || h.height <= 0 {
		return damagedError(Image, "the size of the picture is missing")
	}
	return nil
}

// mergeSpans sorts byte ranges and joins ranges that overlap or touch.
func mergeSpans(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })

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
