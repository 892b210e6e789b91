package media

import (
	"context"
	"errors"
	"io"
)

// maxPeek is the maximum number of bytes that peekBytes can return.
const maxPeek = 4 << 10

// source provides random access to a stored file. It caches the last block,
// fails when its context is cancelled, and records read errors of the storage,
// which must not be reported as a damaged file.
type source struct {
	ctxErr func() error
	file   io.ReaderAt
	size   int64
	err    error

	block []byte
	start int64
}

func newSource(ctx context.Context, from io.ReaderAt, size int64) *source {
	return &source{ctxErr: ctx.Err, file: from, size: size}
}

// clone returns a source of the same file with its own cache, for reading
// alternately from several places of the file.
func (s *source) clone() *source {
	return &source{ctxErr: s.ctxErr, file: s, size: s.size}
}

// ReadAt implements io.ReaderAt.
func (s *source) ReadAt(p []byte, offset int64) (int, error) {
	if s.err == nil {
		s.err = s.ctxErr()
	}
	if s.err != nil {
		return 0, s.err
	}

	n, err := s.file.ReadAt(p, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// newReader returns a reader of the whole file.
func (s *source) newReader() *io.SectionReader { return io.NewSectionReader(s, 0, s.size) }

// peekBytes returns n bytes at an offset, which are valid until the next call.
// If the file is too short, the error is io.ErrUnexpectedEOF.
func (s *source) peekBytes(offset int64, n int) ([]byte, error) {
	if offset < 0 || n > maxPeek || offset > s.size-int64(n) {
		return nil, io.ErrUnexpectedEOF
	}
	if at := offset - s.start; at >= 0 && at+int64(n) <= int64(len(s.block)) {
		return s.block[at : at+int64(n)], nil
	}
	if s.block == nil {
		s.block = make([]byte, 4*maxPeek)
	}

	s.start = offset
	s.block = s.block[:min(int64(cap(s.block)), s.size-offset)]
	if m, err := s.ReadAt(s.block, offset); m < len(s.block) {
		s.block = s.block[:0]
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return s.block[:n], nil
}
