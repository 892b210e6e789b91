package media

import (
	"errors"
	"slices"
)

// Types of FLAC metadata blocks (RFC 9639, section 8.1).
const (
	flacStreamInfo = 0
	flacPadding    = 1
	flacSeekTable  = 3
	flacComment    = 4
	flacLast       = 0x80 // flag in the type of the last block
)

// keptBlocks are the FLAC metadata blocks that players need.
var keptBlocks = []byte{flacStreamInfo, flacSeekTable}

// flacBlock is a metadata block of a FLAC file, without its header.
type flacBlock struct {
	kind byte
	last bool
	span
}

// visitFLACBlocks calls visit for each metadata block, starting at the given
// offset, and returns the offset after the last one.
func visitFLACBlocks(s *source, at, end int64, visit func(flacBlock)) (int64, error) {
	for range maxChunks {
		if end-at < 4 {
			return 0, errors.New("a metadata block extends past the end of the file")
		}

		b, err := s.peekBytes(at, 4)
		if err != nil {
			return 0, err
		}

		block := flacBlock{kind: b[0] &^ flacLast, last: b[0]&flacLast != 0}
		block.from = at + 4
		block.to = block.from + (int64(b[1])<<16 | int64(b[2])<<8 | int64(b[3]))
		if block.to > end {
			return 0, errors.New("a metadata block extends past the end of the file")
		}

		visit(block)
		at = block.to
		if block.last {
			return at, nil
		}
	}
	return 0, errors.New("the file has too many metadata blocks")
}

// blankFLACBlocks turns the metadata blocks in a range, except the blocks that
// players need, into padding of zeros. The range is a FLAC header inside
// another container format.
func blankFLACBlocks(s *source, o *overwrites, from, to int64) error {
	end, err := visitFLACBlocks(s, from, to, func(b flacBlock) {
		if slices.Contains(keptBlocks, b.kind) {
			return
		}

		kind := byte(flacPadding)
		if b.last {
			kind |= flacLast
		}
		o.write(b.from-4, []byte{kind})
		o.zero(b.from, b.to)
	})
	if err == nil {
		o.zero(end, to)
	}
	return err
}

// planFLAC plans how to clean a FLAC file. Only the metadata blocks that
// players need are kept. Tags in other formats, such as ID3v1 or APE, that
// follow the audio frames are removed.
func planFLAC(s *source) ([]part, error) {
	b, err := s.peekBytes(0, 4)
	if err != nil {
		return nil, err
	}
	if string(b) != "fLaC" {
		return nil, errors.New("the FLAC signature is missing")
	}

	var blocks []flacBlock
	start, err := visitFLACBlocks(s, 4, s.size, func(b flacBlock) {
		isFirst := !slices.ContainsFunc(blocks, func(other flacBlock) bool { return other.kind == b.kind })
		if slices.Contains(keptBlocks, b.kind) && isFirst {
			blocks = append(blocks, b)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(blocks) == 0 {
		return nil, errors.New("the STREAMINFO block is missing")
	}

	parts := []part{{data: []byte("fLaC")}}
	for i, b := range blocks {
		kind := b.kind
		if i == len(blocks)-1 {
			kind |= flacLast
		}

		n := b.to - b.from
		parts = append(parts, part{data: []byte{kind, byte(n >> 16), byte(n >> 8), byte(n)}}, part{span: b.span})
	}

	end, err := trimTags(s, start, s.size)
	if err != nil {
		return nil, err
	}
	return append(parts, part{span: span{start, end}}), nil
}
