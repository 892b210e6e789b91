// Package blob keeps bytes by key: in a folder, or in a bucket of an S3 server.
//
// A key is ours: made in Go, never from a name that somebody sent. It is one or
// more segments of A-Z a-z 0-9 . _ - joined by slashes, no segment being "." or
// "..", at most 255 bytes a segment and 512 in all. No key may be the folder of
// another ("a" beside "a/b"). Any other key is ErrBadKey before anything is
// touched. The type of the bytes follows from the key's extension, so it cannot
// get lost or disagree between two stores.
//
// Failures: ErrNotFound where there is no such key, a *fault.Error with the
// code Unavailable where the disk is full or the server cannot be reached, is
// too slow or says that it is ill. Everything else is an accident.
//
// In S3 the key pair needs the right to list, read, write and delete objects,
// and to list and abort multipart uploads. Requests name the bucket in the
// path and go to the endpoint of the address and nowhere else: no proxy, no
// redirects, no look-up of regions or roles.
package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strings"
	"time"
)

var (
	ErrNotFound = errors.New("blob not found")
	ErrBadKey   = errors.New("bad blob key")
)

// defaultUnfinishedMaxAge is when an unfinished Put counts as abandoned, unless the options
// say otherwise.
const defaultUnfinishedMaxAge = time.Hour

// Store keeps bytes by key. All methods may be called at the same time.
type Store interface {
	// Put stores what r gives until its end and says how many bytes that was.
	// The value is durable when Put returns and replaces the old one at once.
	//
	// A Put that fails leaves the key as it was and nothing behind. There is
	// one exception: where storing itself failed or was cancelled at the very
	// end, the new value may be there. It is whole even then. An error of r
	// comes back wrapped.
	Put(ctx context.Context, key string, r io.Reader) (int64, error)

	// Open reads length bytes from offset, fewer where the value ends before;
	// a negative length reads to the end. Info is that of the whole value.
	// The reader gives bytes of one value even when the key is replaced
	// meanwhile. ctx has to last until the reader is closed.
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Info, error)

	Stat(ctx context.Context, key string) (Info, error)

	// Delete removes the key for good. A missing one is no error.
	Delete(ctx context.Context, key string) error

	// List gives every key below the folder, all keys for "", in no order.
	// Keys that come or go meanwhile may or may not be among them. An error
	// is the last thing it gives.
	List(ctx context.Context, folder string) iter.Seq2[Item, error]

	// Sweep removes what killed processes left of Puts that began before the
	// given time. A Put that still runs fails where its parts are swept.
	Sweep(ctx context.Context, before time.Time) error

	// Ping proves that the store can be used now.
	Ping(ctx context.Context) error

	// Close gives back files and connections. Readers stay usable.
	Close() error
}

// Info describes a stored value.
type Info struct {
	Size        int64
	ContentType string
	Modified    time.Time
}

// Item is a key in a list.
type Item struct {
	Key string
	Info
}

// Options are what an address does not say.
type Options struct {
	// AccessKey and SecretKey sign the requests to S3. A folder needs none.
	AccessKey, SecretKey string

	// Leftovers is the age at which an unfinished Put counts as abandoned: an
	// hour.
	Leftovers time.Duration
	Now       func() time.Time

	// Unsynced leaves it to the caller to make what was Put into a folder
	// durable: for many files at once.
	Unsynced bool

	// ReadOnly opens what is there: nothing is made or swept, and changes are
	// refused.
	ReadOnly bool
}

// Open opens the store at address: file:///folder, which is made where it does
// not exist, or s3://bucket?endpoint=https://host:port&region=name, which has
// to exist. The region is us-east-1 where none is given. Leftovers are swept.
func Open(ctx context.Context, address string, o Options) (Store, error) {
	s, err := openAddress(ctx, address, o)
	if err != nil {
		return nil, fmt.Errorf("open blob store: %w", err)
	}
	if o.ReadOnly {
		return readOnlyStore{s}, nil
	}
	if o.Leftovers < 0 { // what others are writing now would be swept
		return nil, errors.Join(errors.New("open blob store: leftovers cannot have an age below 0"), s.Close())
	}
	if err := s.Sweep(ctx, o.Now().Add(-cmp.Or(o.Leftovers, defaultUnfinishedMaxAge))); err != nil {
		return nil, fmt.Errorf("open blob store: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

func openAddress(ctx context.Context, address string, o Options) (Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error repeats the address, which may hold a secret by mistake.
		return nil, errors.New("the address is no URL")
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || u.User != nil || u.Path == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, errors.New("the address of a folder is file:///path and nothing more")
		}
		if o.ReadOnly {
			return openDiskReadOnly(u.Path)
		}
		return openDisk(u.Path, o.Unsynced)
	case "s3":
		a, err := parseS3(u)
		if err != nil {
			return nil, err
		}
		return openS3(ctx, a, o.AccessKey, o.SecretKey)
	}
	return nil, errors.New("the address starts with neither file:// nor s3://")
}

const (
	maxKey     = 512
	maxSegment = 255 // the longest name a file can have
)

func checkKey(key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("%w: %d bytes", ErrBadKey, len(key))
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." || len(segment) > maxSegment || strings.ContainsFunc(segment, isForbiddenRune) {
			return fmt.Errorf("%w: %q", ErrBadKey, key)
		}
	}
	return nil
}

func isForbiddenRune(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-')
}

// checkRange refuses what no value can hold.
func checkRange(offset int64) error {
	if offset < 0 {
		return fmt.Errorf("read a blob from offset %d", offset)
	}
	return nil
}

// ReaderWithContext gives the bytes of r until ctx ends.
func ReaderWithContext(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
