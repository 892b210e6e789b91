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

// File reads a stored value anywhere, as those must who follow offsets in it.
// It keeps the blocks that were read last, 2 MiB at most.
type File struct {
	fetch func(offset, length int64) (io.ReadCloser, error)
	size  int64

	mu     sync.Mutex
	blocks []block // the last used one at the end
}

type block struct {
	number int64
	bytes  []byte
}

// File opens stored bytes for random access until ctx ends. The value must not
// be replaced meanwhile, which no key of ours is.
func (in *Intake) File(ctx context.Context, key string) (*File, error) {
	info, err := in.Blobs.Stat(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	return &File{size: info.Size, fetch: func(offset, length int64) (io.ReadCloser, error) {
		r, _, err := in.Blobs.Open(ctx, key, offset, length)
		return r, err
	}}, nil
}

// Size is how many bytes there are.
func (f *File) Size() int64 { return f.size }

// ReadAt reads like io.ReaderAt says.
func (f *File) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, errors.New("read before the beginning of a file")
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

// readBlock gives one block, from memory where it is there.
func (f *File) readBlock(number int64) ([]byte, error) {
	for i, b := range f.blocks {
		if b.number == number {
			copy(f.blocks[i:], f.blocks[i+1:])
			f.blocks[len(f.blocks)-1] = b
			return b.bytes, nil
		}
	}
	var buf []byte
	if len(f.blocks) == maxBlocks { // the oldest one's memory serves again
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
		// No EOF may leave here: the reader would take the file for broken.
		err = fmt.Errorf("%d bytes where %d were stored", got, length)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read a stored file: %w", err)
	}
	f.blocks = append(f.blocks, block{number, buf})
	return buf, nil
}

var _ io.ReaderAt = (*File)(nil)
