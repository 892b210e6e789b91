// Package blob stores bytes by key, in a folder or in a bucket of an S3
// server.
//
// Keys are made by this program, never from a name that a client sent. A key
// is one or more segments of A-Z a-z 0-9 . _ - joined by slashes. No segment
// is "." or "..". A segment has at most 255 bytes, a key 512. No key may be
// the folder of another: "a" and "a/b" cannot both exist. Any other key fails
// with ErrBadKey before the store is accessed. The content type follows from
// the key's extension, so it cannot get lost or differ between two stores.
//
// Errors: ErrNotFound for a missing key; a *fault.Error with code Unavailable
// if the disk is full or the server is unreachable, too slow or reports a
// failure of its own. Every other error is a bug or a wrong configuration.
//
// In S3 the access key needs permission to list, read, write and delete
// objects, and to list and abort multipart uploads. Requests name the bucket in
// the path and go only to the configured endpoint: no proxy, no redirects, no
// lookup of regions or roles.
package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

var (
	// ErrNotFound is returned for a key that does not exist.
	ErrNotFound = errors.New("blob not found")
	// ErrBadKey is returned for a key that does not follow the rules in the
	// package's documentation.
	ErrBadKey = errors.New("invalid blob key")
)

// defaultUnfinishedMaxAge is the age at which an unfinished Put counts as
// abandoned, unless Options.UnfinishedMaxAge is set.
const defaultUnfinishedMaxAge = time.Hour

// Store stores bytes by key. All methods are safe for concurrent use.
type Store interface {
	// Put stores all bytes of r and returns their number. When Put returns,
	// the value is durable and has replaced the old one atomically.
	//
	// A failed Put leaves the old value unchanged and no partial data. One
	// exception: if the last step of storing failed or was cancelled, the new
	// value may be stored; it is complete even then. An error of r is returned
	// wrapped.
	Put(ctx context.Context, key string, r io.Reader) (int64, error)

	// Open returns a reader of length bytes from offset, or fewer if the value
	// ends earlier. A negative length reads to the end. Info describes the
	// whole value. The reader returns bytes of one value even if the key is
	// replaced meanwhile. ctx must stay valid until the reader is closed.
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Info, error)

	// Stat returns the size and content type of a key's value without reading
	// it.
	Stat(ctx context.Context, key string) (Info, error)

	// Delete removes the key permanently. It returns no error if the key does
	// not exist.
	Delete(ctx context.Context, key string) error

	// List returns every key below folder, or all keys if folder is "", in no
	// particular order. Keys that are added or removed meanwhile may be
	// missing. After an error the iteration ends.
	List(ctx context.Context, folder string) iter.Seq2[Item, error]

	// SweepUnfinished deletes partial data of Puts that began before the given
	// time and never finished, for example because the process was killed. A
	// Put that is still running fails if its data is deleted.
	SweepUnfinished(ctx context.Context, before time.Time) error

	// Ping returns an error if the store is not usable now.
	Ping(ctx context.Context) error

	// Close releases files and connections. Open readers stay usable.
	Close() error
}

// Info describes a stored value without its bytes.
type Info struct {
	Size        int64
	ContentType string
	Modified    time.Time
}

// Item is an entry of List: a key and the description of its value.
type Item struct {
	Key string
	Info
}

// Options are the settings of a store other than its URL.
type Options struct {
	// AccessKey and SecretKey sign requests to S3. A store in a folder needs
	// neither.
	AccessKey, SecretKey string

	// UnfinishedMaxAge is the age at which an unfinished Put counts as
	// abandoned. Default: one hour.
	UnfinishedMaxAge time.Duration

	// Now returns the current time. It is used to determine the age of
	// unfinished Puts.
	Now func() time.Time

	// SkipSync skips fsync in a folder. The caller must make the files durable,
	// for example by syncing many files at once.
	SkipSync bool

	// ReadOnly opens an existing store without creating or deleting anything.
	// Methods that change the store fail.
	ReadOnly bool
}

// Open opens the store at a URL and deletes the data of abandoned Puts. The
// URL is file:///folder, which is created if it does not exist, or
// s3://bucket?endpoint=https://host:port&region=name, whose bucket must exist.
// The default region is us-east-1.
func Open(ctx context.Context, address string, o Options) (Store, error) {
	s, err := openAddress(ctx, address, o)
	if err != nil {
		return nil, fmt.Errorf("open blob store: %w", err)
	}
	if o.ReadOnly {
		return readOnlyStore{s}, nil
	}
	if o.UnfinishedMaxAge < 0 { // otherwise data of other processes' running Puts would be deleted
		return nil, errors.Join(errors.New("open blob store: the maximum age of unfinished files must not be negative"), s.Close())
	}
	if err := s.SweepUnfinished(ctx, o.Now().Add(-cmp.Or(o.UnfinishedMaxAge, defaultUnfinishedMaxAge))); err != nil {
		return nil, fmt.Errorf("open blob store: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

func openAddress(ctx context.Context, address string, o Options) (Store, error) {
	if folder, ok := volumePath(address); ok {
		return openFolder(folder, o)
	}
	u, err := url.Parse(address)
	if err != nil {
		// The error of url.Parse repeats the URL, which may contain a password
		// by mistake.
		return nil, errors.New("the address is not a URL")
	}

	switch u.Scheme {
	case "file":
		if u.Host != "" || u.User != nil || u.Path == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, errors.New("the address of a folder must be file:///path, without host, query or fragment")
		}
		return openFolder(u.Path, o)
	case "s3":
		a, err := parseS3(u)
		if err != nil {
			return nil, err
		}
		return openS3(ctx, a, o.AccessKey, o.SecretKey)
	}
	return nil, errors.New("the address must start with file:// or s3://")
}

// volumePath returns the path of an address such as file://C:\files or
// file:///C:/files, which is no valid URL or has a slash too many. Paths begin
// with a volume on Windows only.
func volumePath(address string) (string, bool) {
	rest, ok := strings.CutPrefix(address, "file://")
	path := filepath.FromSlash(strings.TrimPrefix(rest, "/"))
	return path, ok && filepath.VolumeName(path) != ""
}

func openFolder(path string, o Options) (Store, error) {
	if o.ReadOnly {
		return openDiskReadOnly(path)
	}
	return openDisk(path, o.SkipSync)
}

const (
	maxKey     = 512
	maxSegment = 255 // maximum length of a segment, in bytes, as for file names
)

func checkKey(key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("%w: the key has %d bytes; at most %d are allowed", ErrBadKey, len(key), maxKey)
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

// checkRange returns an error if offset is negative.
func checkRange(offset int64) error {
	if offset < 0 {
		return fmt.Errorf("read blob: negative offset %d", offset)
	}
	return nil
}

// ReaderWithContext returns a reader of r that fails when ctx is cancelled.
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
