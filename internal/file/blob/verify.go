package blob

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"atelier/internal/base/fault"
)

const (
	// chunkSize is the number of bytes that are verified at once, and the
	// buffer size of a reader.
	chunkSize = 64 << 10

	// maxDigestBytes is the maximum memory of a Verifier's cache, in bytes. It
	// is enough for the digests of 100 GB in large files, or of 100,000 small
	// files.
	maxDigestBytes = 16 << 20

	// digestOverhead is the approximate size of a cache entry without its
	// digests, in bytes.
	digestOverhead = 160

	// verifyTimeout is the time limit for the first verification of a file.
	verifyTimeout = 10 * time.Minute
)

// File identifies a stored value and its expected content.
type File struct {
	Key    string
	Size   int64
	SHA256 string // expected hash in hexadecimal; if empty, only the size is checked
}

// OpenVerified returns a reader of a whole value. The reader returns the last
// bytes only after the SHA-256 of all bytes has matched, so a damaged value is
// never read completely.
func OpenVerified(ctx context.Context, s Store, f File) (io.ReadCloser, error) {
	return openWhole(ctx, s, f, nil)
}

// Verifier reads values with a known SHA-256, whole or in ranges.
//
// A range cannot be compared with the hash of the whole file. So before the
// first range of a file is returned, the whole file is read and verified, once
// per content and process even for concurrent readers, and a digest of every
// chunk is cached. Every later read compares each chunk with its digest before
// it returns a byte of the chunk. The cache evicts the least recently used
// digests.
type Verifier struct {
	store  Store
	seed   maphash.Seed
	checks singleflight.Group

	mu      sync.Mutex
	bytes   int
	entries map[string]*list.Element // elements of order, by SHA-256 of the content
	order   *list.List               // *chunkDigests, most recently used first
}

// chunkDigests are the digests of the chunks of one content, which is
// identified by its SHA-256.
type chunkDigests struct {
	content string
	digests []uint64
}

func (c *chunkDigests) memoryBytes() int { return digestOverhead + 8*len(c.digests) }

// NewVerifier returns a Verifier of the values in s, with an empty cache.
func NewVerifier(s Store) *Verifier {
	return &Verifier{store: s, seed: maphash.MakeSeed(), entries: map[string]*list.Element{}, order: list.New()}
}

// Open returns a verified reader of length bytes from offset. The range must
// be within the file. ctx must stay valid until the reader is closed.
func (v *Verifier) Open(ctx context.Context, f File, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 || length < 0 || length > f.Size-offset {
		return nil, fmt.Errorf("range of %d bytes at offset %d exceeds the file size %d", length, offset, f.Size)
	}

	whole := offset == 0 && length == f.Size
	if f.SHA256 == "" {
		return openUnverified(ctx, v.store, f, offset, length)
	}

	known, ok := v.cachedDigests(f.SHA256)
	switch {
	case ok:
	case whole:
		return openWhole(ctx, v.store, f, v)
	default:
		var err error
		if known, err = v.verifyWhole(ctx, f); err != nil {
			return nil, err
		}
	}
	return openChunks(ctx, v, f, known, offset, length)
}

// verifyWhole reads and verifies the whole file and returns the digests of its
// chunks. Concurrent callers wait for one common verification, which continues
// if one of them is cancelled.
func (v *Verifier) verifyWhole(ctx context.Context, f File) ([]uint64, error) {
	checked := v.checks.DoChan(f.SHA256+" "+f.Key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyTimeout)
		defer cancel()
		r, err := openWhole(ctx, v.store, f, v)
		if err != nil {
			return nil, err
		}

		defer r.Close()
		if _, err := io.Copy(io.Discard, r); err != nil {
			return nil, err
		}
		return r.digests, nil
	})
	select {
	case result := <-checked:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.([]uint64), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cachedDigests returns the chunk digests of a content that has been verified.
// It returns false if they are not in the cache.
func (v *Verifier) cachedDigests(content string) ([]uint64, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e, ok := v.entries[content]
	if !ok {
		return nil, false
	}

	v.order.MoveToFront(e)
	return e.Value.(*chunkDigests).digests, true
}

// cacheDigests adds the chunk digests of a verified content to the cache.
func (v *Verifier) cacheDigests(content string, digests []uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.entries[content]; ok {
		return
	}

	one := &chunkDigests{content: content, digests: digests}
	v.entries[content] = v.order.PushFront(one)
	v.bytes += one.memoryBytes()
	for v.bytes > maxDigestBytes && v.order.Len() > 1 {
		oldest := v.order.Remove(v.order.Back()).(*chunkDigests)
		delete(v.entries, oldest.content)
		v.bytes -= oldest.memoryBytes()
	}
}

// damagedError returns the error for bytes that differ from the expected
// content. Its code is Unavailable, because an operator can restore the file
// from a backup.
func damagedError(key, how string) error {
	return fault.New(fault.Unavailable, "The stored file is damaged.").Because(fmt.Errorf("the file %s is damaged: %s", key, how))
}

// openSized opens a range of a value and checks that the value has the expected
// size.
func openSized(ctx context.Context, s Store, f File, offset, length int64) (io.ReadCloser, error) {
	r, info, err := s.Open(ctx, f.Key, offset, length)
	if err != nil {
		return nil, err
	}
	if info.Size != f.Size {
		r.Close()
		return nil, damagedError(f.Key, fmt.Sprintf("size is %d bytes, want %d", info.Size, f.Size))
	}
	return r, nil
}

// chunkReader reads a file chunk by chunk and returns only the bytes of chunks
// that passed the function verify.
type chunkReader struct {
	io.Closer
	from      io.Reader
	key       string
	buffer    []byte
	ready     []byte // verified bytes of the buffer that have not been returned yet
	storeLeft int64  // number of bytes not read from the store yet
	skipBytes int64  // number of bytes in the next chunk before the requested range
	remaining int64  // number of bytes of the range not returned yet
	verify    func(chunk []byte, last bool) error
}

func (c *chunkReader) Read(p []byte) (int, error) {
	if c.remaining == 0 {
		return 0, io.EOF
	}
	if len(c.ready) == 0 {
		if err := c.readChunk(); err != nil {
			return 0, err
		}
	}

	n := copy(p, c.ready[:min(int64(len(c.ready)), c.remaining)])
	c.ready = c.ready[n:]
	c.remaining -= int64(n)
	return n, nil
}

// readChunk reads and verifies the next chunk.
func (c *chunkReader) readChunk() error {
	chunk := c.buffer[:min(int64(len(c.buffer)), c.storeLeft)]
	n, err := io.ReadFull(c.from, chunk)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damagedError(c.key, fmt.Sprintf("file is %d bytes too short", c.storeLeft-int64(n)))
	}
	if err != nil {
		return err
	}

	c.storeLeft -= int64(n)
	if err := c.verify(chunk, c.storeLeft == 0); err != nil {
		return err
	}

	c.ready = chunk[c.skipBytes:]
	c.skipBytes = 0
	return nil
}

// openUnverified returns a reader of a range of a file whose hash is unknown.
// Only the size is checked.
func openUnverified(ctx context.Context, s Store, f File, offset, length int64) (io.ReadCloser, error) {
	r, err := openSized(ctx, s, f, offset, length)
	if err != nil {
		return nil, err
	}
	return &chunkReader{
		Closer:    r,
		from:      r,
		key:       f.Key,
		buffer:    make([]byte, min(chunkSize, length)),
		storeLeft: length,
		remaining: length,
		verify:    func([]byte, bool) error { return nil },
	}, nil
}

// wholeReader reads a whole file and verifies its SHA-256.
type wholeReader struct {
	chunkReader
	digests []uint64 // chunk digests for the Verifier's cache
}

// openWhole returns a reader that verifies a whole file. If v is not nil, the
// reader adds the chunk digests to its cache.
func openWhole(ctx context.Context, s Store, f File, v *Verifier) (*wholeReader, error) {
	r, err := openSized(ctx, s, f, 0, -1)
	if err != nil {
		return nil, err
	}

	whole := &wholeReader{chunkReader: chunkReader{
		Closer:    r,
		from:      r,
		key:       f.Key,
		buffer:    make([]byte, min(chunkSize, f.Size)),
		storeLeft: f.Size,
		remaining: f.Size,
	}}
	sum := sha256.New()
	whole.verify = func(chunk []byte, last bool) error { return whole.addChunk(f, v, sum, chunk, last) }
	return whole, nil
}

func (s *wholeReader) addChunk(f File, v *Verifier, sum hash.Hash, chunk []byte, last bool) error {
	sum.Write(chunk)
	if v != nil {
		s.digests = append(s.digests, maphash.Bytes(v.seed, chunk))
	}
	if !last {
		return nil
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return damagedError(f.Key, "SHA-256 mismatch")
	}
	if v != nil {
		v.cacheDigests(f.SHA256, s.digests)
	}
	return nil
}

// openChunks returns a reader of a range that verifies the chunks containing
// the range. known are the digests of all chunks of the file.
func openChunks(ctx context.Context, v *Verifier, f File, known []uint64, offset, length int64) (io.ReadCloser, error) {
	skip := offset % chunkSize
	start := offset - skip
	end := min(f.Size, (offset+length+chunkSize-1)/chunkSize*chunkSize)
	r, err := openSized(ctx, v.store, f, start, end-start)
	if err != nil {
		return nil, err
	}

	number := start / chunkSize
	return &chunkReader{
		Closer:    r,
		from:      r,
		key:       f.Key,
		buffer:    make([]byte, min(chunkSize, end-start)),
		storeLeft: end - start,
		skipBytes: skip,
		remaining: length,
		verify: func(chunk []byte, _ bool) error {
			if number >= int64(len(known)) || maphash.Bytes(v.seed, chunk) != known[number] {
				return damagedError(f.Key, fmt.Sprintf("digest mismatch in chunk %d", number))
			}
			number++
			return nil
		},
	}, nil
}
