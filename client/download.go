package client

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// RemoteFile is a file of the service to download: Output, Upload and
// LibraryItem have a method that returns it.
type RemoteFile struct {
	URL    string // signed: it needs no credential
	Size   int64  // in bytes; 0 or less if it is unknown
	SHA256 string // in hexadecimal; "" if it is unknown
}

// ErrExpired means that a file was deleted from the service; its record stays.
var ErrExpired = errors.New("the file has expired and was deleted from the service")

// ErrDamaged means that a download differs from the hash or the size that the
// service has recorded.
var ErrDamaged = errors.New("the downloaded file does not match its SHA-256 or its size")

// File returns the output's file, for Download.
func (o Output) File() RemoteFile { return newRemoteFile(o.URL, o.SizeBytes, o.SHA256) }

// File returns the upload's file, for Download.
func (u Upload) File() RemoteFile { return newRemoteFile(&u.URL, u.SizeBytes, u.SHA256) }

// File returns the file of a result, for Download.
func (i LibraryItem) File() RemoteFile { return newRemoteFile(&i.URL, i.SizeBytes, i.SHA256) }

// File returns the file of a result, for Download.
func (i LibraryItemDetail) File() RemoteFile { return newRemoteFile(&i.URL, i.SizeBytes, i.SHA256) }

func newRemoteFile(address *string, size int64, digest string) RemoteFile {
	f := RemoteFile{Size: size, SHA256: digest}
	if address != nil {
		f.URL = *address
	}
	return f
}

// Download saves a file of the service at path. The file is written beside its
// place under a temporary name, checked, and then renamed: path never has half
// a file. A connection that breaks is resumed where it ended.
func (c *Client) Download(ctx context.Context, f RemoteFile, path string, progress Progress) (err error) {
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text()[:8]+".part")
	to, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666) //nolint:gosec // the umask decides, as for any file that a person saves
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	err = c.fetchWhole(ctx, f, to, progress)
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// fetchWhole fetches a file to the disk. A file that arrived damaged is fetched
// anew.
func (c *Client) fetchWhole(ctx context.Context, f RemoteFile, to *os.File, progress Progress) error {
	tries := c.retry.newAttempts()
	for {
		err := c.Media.Fetch(ctx, f, to, progress)
		if !errors.Is(err, ErrDamaged) {
			return err
		}
		if err := tries.wait(ctx, err); err != nil {
			return err
		}
		if err := to.Truncate(0); err != nil {
			return err
		}
		if _, err := to.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// Fetch writes a file of the service to w, resumes after a broken connection,
// and compares size and hash at the end. If it returns an error, w may have got
// a part of the file, or a damaged one.
func (g *MediaCalls) Fetch(ctx context.Context, f RemoteFile, w io.Writer, progress Progress) error {
	if f.URL == "" {
		return ErrExpired
	}
	address, err := g.client.resolve(f.URL)
	if err != nil {
		return err
	}
	d := &download{
		client:   g.client,
		file:     f,
		address:  address,
		to:       w,
		digest:   sha256.New(),
		progress: progress,
	}
	tries := g.client.retry.newAttempts()
	for {
		before := d.done
		err := d.fetchRest(ctx)
		if err == nil {
			return d.verify()
		}
		if ctx.Err() != nil || !mayRepeat(err, true) {
			return contextOr(ctx, err)
		}
		if d.done > before {
			tries.restart()
		}
		if err := tries.wait(ctx, err); err != nil {
			return err
		}
	}
}

// resolve makes an address of the service absolute.
func (c *Client) resolve(address string) (string, error) {
	base, err := url.Parse(c.base + "/")
	if err != nil {
		return "", err
	}
	target, err := base.Parse(address)
	if err != nil {
		return "", fmt.Errorf("the address of the file is invalid: %w", withoutQuery(err))
	}
	return target.String(), nil
}

// download is a file on its way.
type download struct {
	client   *Client
	file     RemoteFile
	address  string
	to       io.Writer
	digest   hash.Hash
	done     int64
	etag     string
	progress Progress
}

// fetchRest requests the bytes that are missing, without the credential: the
// address itself authorizes the download.
func (d *download) fetchRest(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.address, nil)
	if err != nil {
		return &finalError{err}
	}
	req.Header.Set("User-Agent", d.client.userAgent)
	req.Header.Set("Accept-Encoding", "identity") // ranges count the bytes of the file
	if d.done > 0 {
		if d.done == d.file.Size {
			return nil
		}
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.done))
		if d.etag != "" {
			req.Header.Set("If-Range", d.etag)
		}
	}
	res, err := d.client.http.Do(req)
	if err != nil {
		return withoutQuery(err)
	}
	defer res.Body.Close()
	skip := int64(0)
	switch {
	case res.StatusCode == http.StatusPartialContent && d.done > 0:
		if from := fmt.Sprintf("bytes %d-", d.done); !strings.HasPrefix(res.Header.Get("Content-Range"), from) {
			return &finalError{fmt.Errorf("the service sent the range %q instead of %q", res.Header.Get("Content-Range"), from)}
		}
	case res.StatusCode == http.StatusOK:
		skip = d.done // the whole file again
	default:
		return readError(res)
	}
	d.etag = strongTag(res.Header.Get("ETag"))

	body := watchIdle(res.Body, idleTime, cancel)
	defer body.stop()
	if _, err := io.CopyN(io.Discard, body, skip); err != nil {
		return err
	}
	return d.copyBody(body)
}

// strongTag returns an ETag that If-Range may name (RFC 9110, section 13.1.5).
func strongTag(tag string) string {
	if strings.HasPrefix(tag, "W/") {
		return ""
	}
	return tag
}

// copyBody writes what arrives. A failure to write is not repeated.
func (d *download) copyBody(body io.Reader) error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			if _, err := d.to.Write(buffer[:n]); err != nil {
				return &finalError{err}
			}
			d.digest.Write(buffer[:n])
			d.done += int64(n)
			if d.progress != nil {
				d.progress(d.done, d.file.Size)
			}
		}
		if err == io.EOF {
			if d.file.Size > 0 && d.done < d.file.Size {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// verify compares the file with its record.
func (d *download) verify() error {
	if d.file.SHA256 != "" && hex.EncodeToString(d.digest.Sum(nil)) != d.file.SHA256 {
		return ErrDamaged
	}
	if d.file.Size > 0 && d.done != d.file.Size {
		return ErrDamaged
	}
	return nil
}
