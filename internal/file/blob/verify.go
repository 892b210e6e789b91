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
	// chunkSize is how much is checked at once, and what a reader holds.
	chunkSize = 64 << 10

	// maxDigestBytes bounds the memory of a Verifier: enough for the digests of
	// 100 GB in large files, or of 100,000 small ones.
	maxDigestBytes = 16 << 20

	// digestOverhead is about what an entry takes besides its digests.
	digestOverhead = 160

	// verifyTimeout bounds how long the first check of a file may take.
	verifyTimeout = 10 * time.Minute
)

// File is a stored value as its owner knows it.
type File struct {
	Key    string
	Size   int64
	SHA256 string // in hex; "" where nobody knows it, and then only the length is checked
}

// OpenVerified reads a whole value. Its last bytes come only after all of it
// was found to be what it should be: a damaged value never arrives whole.
func OpenVerified(ctx context.Context, s Store, f File) (io.ReadCloser, error) {
	return openWhole(ctx, s, f, nil)
}

// Verifier reads values whose SHA-256 is known, in parts too.
//
// A part cannot be compared with the hash of the whole. So before the first part
// of a file is given, the whole file is read and compared, once for each content
// and process however many ask, and a digest of every chunk is kept in memory.
// Every chunk of every later read is compared with its digest before one byte
// of it is given. The digests that were not used for longest go first.
type Verifier struct {
	store  Store
	seed   maphash.Seed
	checks singleflight.Group

	mu      sync.Mutex
	bytes   int
	entries map[string]*list.Element // of *chunkDigests, by SHA-256
	order   *list.List               // the last used one in front
}

// chunkDigests are the digests of one content's chunks.
type chunkDigests struct {
	content string
	digests []uint64
}

func (c *chunkDigests) memoryBytes() int { return digestOverhead + 8*len(c.digests) }

// NewVerifier makes a Verifier that knows no file yet.
func NewVerifier(s Store) *Verifier {
	return &Verifier{store: s, seed: maphash.MakeSeed(), entries: map[string]*list.Element{}, order: list.New()}
}

// Open reads length bytes from offset; the range has to lie within the file.
// ctx has to last until the reader is closed.
func (v *Verifier) Open(ctx context.Context, f File, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 || length < 0 || length > f.Size-offset {
		return nil, fmt.Errorf("read %d bytes from %d of %d", length, offset, f.Size)
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

// verifyWhole reads the whole file and gives the digests of its chunks. A caller
// that leaves does not end it for others who wait.
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

// cachedDigests gives the digests of a content that was checked.
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

// cacheDigests keeps the digests of a content that was checked.
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

// damagedError is the error for bytes that are not what was stored. It is an outage:
// the file may come back from a backup.
func damagedError(key, how string) error {
	return fault.New(fault.Unavailable, "The stored file is damaged.").Because(fmt.Errorf("the file %s is damaged: %s", key, how))
}

// openSized opens a part of a value that has to be as long as its owner says.
func openSized(ctx context.Context, s Store, f File, offset, length int64) (io.ReadCloser, error) {
	r, info, err := s.Open(ctx, f.Key, offset, length)
	if err != nil {
		return nil, err
	}
	if info.Size != f.Size {
		r.Close()
		return nil, damagedError(f.Key, fmt.Sprintf("it is %d bytes and should be %d", info.Size, f.Size))
	}
	return r, nil
}

// chunkReader gives the bytes of a file that verify let through, a chunk at a time.
type chunkReader struct {
	io.Closer
	from      io.Reader
	key       string
	buffer    []byte
	ready     []byte // of the buffer, to be given next
	storeLeft int64  // to be read from the store
	skipBytes int64  // to be left out of the next chunk
	remaining int64  // to be given in all
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

// readChunk reads and checks a chunk.
func (c *chunkReader) readChunk() error {
	chunk := c.buffer[:min(int64(len(c.buffer)), c.storeLeft)]
	n, err := io.ReadFull(c.from, chunk)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damagedError(c.key, fmt.Sprintf("it ends %d bytes early", c.storeLeft-int64(n)))
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

// openUnverified reads a part of a file of which only the length is known.
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

// wholeReader reads a whole file and compares it with its hash.
type wholeReader struct {
	chunkReader
	digests []uint64 // of its chunks, for a Verifier
}

// openWhole reads a whole file. v remembers its digests where it is not nil.
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
		return damagedError(f.Key, "its hash is not what it was")
	}
	if v != nil {
		v.cacheDigests(f.SHA256, s.digests)
	}
	return nil
}

// openChunks reads the chunks that a part lies in.
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
				return damagedError(f.Key, fmt.Sprintf("chunk %d is not what it was", number))
			}
			number++
			return nil
		},
	}, nil
}
