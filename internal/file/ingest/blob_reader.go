package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	blockSize = 256 << 10
	maxBlocks = 8
)

// BlobReader provides random access to a stored value, for parsers that follow
// offsets. It caches the most recently read blocks, at most 2 MiB.
type BlobReader struct {
	fetch func(offset, length int64) (io.ReadCloser, error)
	size  int64

	mu     sync.Mutex
	blocks []block // cached blocks, most recently used last
}

type block struct {
	number int64
	bytes  []byte
}

// OpenFile opens a stored value for random access until ctx is cancelled. The
// value must not be replaced meanwhile; this program writes each key only
// once.
func (in *Pipeline) OpenFile(ctx context.Context, key string) (*BlobReader, error) {
	info, err := in.Blobs.Stat(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	return &BlobReader{size: info.Size, fetch: func(offset, length int64) (io.ReadCloser, error) {
		r, _, err := in.Blobs.Open(ctx, key, offset, length)
		return r, err
	}}, nil
}

// Size returns the size of the value in bytes.
func (f *BlobReader) Size() int64 { return f.size }

// ReadAt implements io.ReaderAt.
func (f *BlobReader) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, errors.New("negative offset")
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for n < len(p) {
		at := offset + int64(n)
		if at >= f.size {
			return n, io.EOF
		}

		b, err := f.readBlock(at / blockSize)
		if err != nil {
			return n, err
		}

		n += copy(p[n:], b[at%blockSize:])
	}
	return n, nil
}

// readBlock returns the block with the given number, from the cache if
// possible.
func (f *BlobReader) readBlock(number int64) ([]byte, error) {
	for i, b := range f.blocks {
		if b.number == number {
			copy(f.blocks[i:], f.blocks[i+1:])
			f.blocks[len(f.blocks)-1] = b
			return b.bytes, nil
		}
	}

	var buf []byte
	if len(f.blocks) == maxBlocks { // reuse the memory of the least recently used block
		buf = f.blocks[0].bytes[:0]
		f.blocks = append(f.blocks[:0], f.blocks[1:]...)
	}

	start := number * blockSize
	length := min(blockSize, f.size-start)
	if int64(cap(buf)) < length {
		buf = make([]byte, length)
	}

	buf = buf[:length]
	r, err := f.fetch(start, length)
	if err != nil {
		return nil, err
	}

	got, err := io.ReadFull(r, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		// The error is not io.EOF, because the parser would then report the
		// file as truncated.
		err = fmt.Errorf("the store returned %d bytes, want %d", got, length)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read stored file: %w", err)
	}

	f.blocks = append(f.blocks, block{number, buf})
	return buf, nil
}

var _ io.ReaderAt = (*BlobReader)(nil)
