package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"atelier/internal/base/fault"
)

const (
	// partSize is the size of one part of a multipart upload, in bytes. A Put
	// buffers one part on disk. S3 allows 10,000 parts, so a value can have at
	// most 78 GiB.
	partSize = 8 << 20

	// partTimeout is the time limit for the upload of one part of a value.
	partTimeout = 2 * time.Minute

	// defaultStallTimeout is the maximum time that a reader waits for the next
	// bytes from the server.
	defaultStallTimeout = time.Minute

	// maxAttempts is the number of times that a request is sent, including the
	// first. With few attempts an outage is reported within seconds, while the
	// caller's client is still waiting.
	maxAttempts = 3
)

// bucket is a store in an S3 bucket.
type bucket struct {
	name         string
	core         minio.Core
	transport    *http.Transport
	stallTimeout time.Duration
}

func openS3(ctx context.Context, a s3Address, accessKey, secretKey string) (*bucket, error) {
	b, err := newBucket(a, accessKey, secretKey)
	if err != nil {
		return nil, err
	}
	if err := b.Ping(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func newBucket(a s3Address, accessKey, secretKey string) (*bucket, error) {
	if accessKey == "" || secretKey == "" {
		return nil, errors.New("S3 requires an access key and a secret key")
	}

	transport := a.newTransport()
	client, err := minio.New(a.endpoint.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(accessKey, secretKey, ""),
		Secure:       a.endpoint.Scheme == "https",
		Transport:    transport,
		Region:       a.region, // must not be empty, or minio would look up the region
		BucketLookup: minio.BucketLookupPath,
		MaxRetries:   maxAttempts,
	})
	if err != nil {
		return nil, err
	}

	client.SetS3EnableDualstack(false) // dual-stack endpoints have another host name
	return &bucket{name: a.bucket, core: minio.Core{Client: client}, transport: transport, stallTimeout: defaultStallTimeout}, nil
}

// Put implements Store. It sends a value in one request if it fits into one
// part, otherwise as a multipart upload. Each part is buffered before it is
// sent, so that a slow client does not occupy a connection to the server and a
// request can be retried. Each request contains the SHA-256 of its bytes,
// which the server verifies.
func (b *bucket) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}

	r = ReaderWithContext(ctx, r)
	part := newSpool()
	defer part.closeFile()
	last, err := part.fillPart(r, partSize)
	if err != nil {
		return 0, fmt.Errorf("put %s: %w", key, err)
	}
	if !last {
		return b.putParts(ctx, key, part, r)
	}

	opts := minio.PutObjectOptions{ContentType: contentTypeOf(key), DisableContentSha256: true} // minio's chunked hashes are not needed, because the request contains a hash
	limited, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	if _, err := b.core.PutObject(limited, b.name, key, part.newReader(), part.size, "", part.sha256Hex(), opts); err != nil {
		return 0, s3Error(ctx, "put "+key, err)
	}
	return part.size, nil
}

// putParts sends a multipart upload: the given part, which is already buffered,
// and then the rest of the source. It returns the total size.
func (b *bucket) putParts(ctx context.Context, key string, part *spool, rest io.Reader) (size int64, err error) {
	upload, err := b.core.NewMultipartUpload(ctx, b.name, key, minio.PutObjectOptions{ContentType: contentTypeOf(key)})
	if err != nil {
		return 0, s3Error(ctx, "put "+key, err)
	}

	defer func() {
		if err != nil {
			b.abortUpload(ctx, key, upload)
		}
	}()

	var sent []minio.CompletePart
	for last := false; part.size > 0; {
		p, err := b.putPart(ctx, key, upload, len(sent)+1, part)
		if err != nil {
			return 0, s3Error(ctx, "put "+key, err)
		}

		sent = append(sent, minio.CompletePart{PartNumber: p.PartNumber, ETag: p.ETag})
		size += part.size
		if last {
			break
		}
		if last, err = part.fillPart(rest, partSize); err != nil {
			return 0, fmt.Errorf("put %s: %w", key, err)
		}
	}
	if _, err := b.core.CompleteMultipartUpload(ctx, b.name, key, upload, sent, minio.PutObjectOptions{}); err != nil {
		return 0, s3Error(ctx, "put "+key, err)
	}
	return size, nil
}

func (b *bucket) putPart(ctx context.Context, key, upload string, number int, part *spool) (minio.ObjectPart, error) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	opts := minio.PutObjectPartOptions{Sha256Hex: part.sha256Hex(), DisableContentSha256: true}
	return b.core.PutObjectPart(ctx, b.name, key, upload, number, part.newReader(), part.size, opts)
}

// abortUpload deletes the parts of a failed upload from the server, even if
// ctx is cancelled. If the request fails, SweepUnfinished deletes them later.
func (b *bucket) abortUpload(ctx context.Context, key, upload string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = b.core.AbortMultipartUpload(ctx, b.name, key, upload)
}

func (b *bucket) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Info, error) {
	if err := errors.Join(checkKey(key), checkRange(offset)); err != nil {
		return nil, Info{}, err
	}
	if length == 0 {
		return b.openEmpty(ctx, key)
	}

	var opts minio.GetObjectOptions
	whole := offset == 0 && length < 0
	if !whole {
		opts.Set("Range", byteRange(offset, length))
	}

	inner, cancel := context.WithCancel(ctx)
	r, object, header, err := b.core.GetObject(inner, b.name, key, opts)
	if err != nil {
		cancel()
		if errorCode(err) == minio.InvalidRange {
			return b.openEmpty(ctx, key)
		}
		return nil, Info{}, s3Error(ctx, "open "+key, err)
	}

	info := Info{Size: object.Size, ContentType: contentTypeOf(key), Modified: object.LastModified}
	body := &objectBody{r: r, cancel: cancel, stallTimeout: b.stallTimeout, wrapError: func(err error) error { return s3Error(ctx, "read "+key, err) }}
	if !whole {
		if info.Size, err = totalSize(header.Get("Content-Range")); err != nil {
			_ = body.Close()
			return nil, Info{}, fmt.Errorf("open %s: %w", key, err)
		}
	}
	return body, info, nil
}

// openEmpty is Open for a length of zero bytes, which a Range header cannot
// express.
func (b *bucket) openEmpty(ctx context.Context, key string) (io.ReadCloser, Info, error) {
	info, err := b.Stat(ctx, key)
	if err != nil {
		return nil, Info{}, err
	}
	return http.NoBody, info, nil
}

// byteRange returns the Range header for length bytes from offset (RFC 9110,
// section 14.1.2).
func byteRange(offset, length int64) string {
	last := offset + length - 1
	if length < 0 || last < offset { // to the end of the value, or beyond the range of int64
		return fmt.Sprintf("bytes=%d-", offset)
	}
	return fmt.Sprintf("bytes=%d-%d", offset, last)
}

// totalSize parses the size of the whole value, in bytes, from a Content-Range
// header (RFC 9110, section 14.4).
func totalSize(contentRange string) (int64, error) {
	_, total, _ := strings.Cut(contentRange, "/")
	n, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the server sent an invalid Content-Range: %q", contentRange)
	}
	return n, nil
}

var errStalled = errors.New("the server stopped sending data")

// objectBody is a reader of an S3 object that fails if no bytes arrive for
// stallTimeout.
type objectBody struct {
	r            io.ReadCloser
	cancel       context.CancelFunc
	stallTimeout time.Duration
	wrapError    func(error) error
}

func (b *objectBody) Read(p []byte) (int, error) {
	timer := time.AfterFunc(b.stallTimeout, b.cancel)
	n, err := b.r.Read(p)
	if fired := !timer.Stop(); fired && err != nil {
		err = errStalled
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.wrapError(err)
	}
	return n, err
}

func (b *objectBody) Close() error {
	b.cancel()
	return b.r.Close()
}

func (b *bucket) Stat(ctx context.Context, key string) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}

	object, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if err != nil {
		return Info{}, s3Error(ctx, "stat "+key, err)
	}
	return Info{Size: object.Size, ContentType: contentTypeOf(key), Modified: object.LastModified}, nil
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}

	err := b.core.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{})
	if err != nil && errorCode(err) != minio.NoSuchKey {
		return s3Error(ctx, "delete "+key, err)
	}
	return nil
}

func (b *bucket) List(ctx context.Context, folder string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		opts := minio.ListObjectsOptions{Recursive: true}
		if folder != "" {
			if err := checkKey(folder); err != nil {
				yield(Item{}, err)
				return
			}
			opts.Prefix = folder + "/"
		}

		for object := range b.core.ListObjectsIter(ctx, b.name, opts) {
			if object.Err != nil {
				yield(Item{}, s3Error(ctx, "list blobs", object.Err))
				return
			}
			item := Item{object.Key, Info{Size: object.Size, ContentType: contentTypeOf(object.Key), Modified: object.LastModified}}
			if checkKey(object.Key) == nil && !yield(item, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil { // minio does not report that ctx was cancelled
			yield(Item{}, fmt.Errorf("list blobs: %w", err))
		}
	}
}

// SweepUnfinished implements Store. It compares the time at which a multipart
// upload was initiated, because the list of uploads contains no other time.
func (b *bucket) SweepUnfinished(ctx context.Context, before time.Time) error {
	var key, upload string
	for {
		page, err := b.core.ListMultipartUploads(ctx, b.name, "", key, upload, "", 1000)
		if err != nil {
			return s3Error(ctx, "list unfinished uploads", err)
		}

		for _, u := range page.Uploads {
			if !u.Initiated.Before(before) {
				continue
			}
			err := b.core.AbortMultipartUpload(ctx, b.name, u.Key, u.UploadID)
			if err != nil && errorCode(err) != minio.NoSuchUpload {
				return s3Error(ctx, "abort unfinished upload", err)
			}
		}
		if !page.IsTruncated {
			return nil
		}

		key = page.NextKeyMarker
		upload = page.NextUploadIDMarker
	}
}

func (b *bucket) Ping(ctx context.Context) error {
	exists, err := b.core.BucketExists(ctx, b.name)
	if err != nil {
		return s3Error(ctx, "find bucket "+b.name, err)
	}
	if !exists {
		return fmt.Errorf("bucket %s does not exist", b.name)
	}
	return nil
}

func (b *bucket) Close() error {
	b.transport.CloseIdleConnections()
	return nil
}

// errorCode returns the S3 error code of a response. It returns "" if there
// was no response.
func errorCode(err error) string {
	answer, _ := errors.AsType[minio.ErrorResponse](err)
	return answer.Code
}

// s3Error converts an error of minio to the error that Store documents. doing
// is the operation that failed. ctx must be the caller's context, so that
// timeouts of this package are not mistaken for a cancelled request.
func s3Error(ctx context.Context, doing string, err error) error {
	answer, answered := errors.AsType[minio.ErrorResponse](err)
	wrapped := fmt.Errorf("%s: %w", doing, err)
	switch {
	case answer.Code == minio.NoSuchKey:
		return fmt.Errorf("%s: %w", doing, ErrNotFound)
	case errors.Is(ctx.Err(), context.Canceled):
		return wrapped
	case !answered, answer.StatusCode >= 500, answer.StatusCode == http.StatusTooManyRequests,
		answer.StatusCode == http.StatusRequestTimeout, answer.Code == "RequestTimeout": // Amazon S3 sends this code with status 400
		return fault.New(fault.Unavailable, "The service can't reach its file storage. Try again shortly.").Because(wrapped)
	}
	return wrapped
}
