package backend

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"atelier/internal/base/netguard"
	"atelier/internal/engine"
)

// Put sends a file to an address that the server named for it, past the border
// and without credentials. It closes the body.
func (c *Client) Put(ctx context.Context, at, mimeType string, body io.ReadCloser, size int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, at, ours{body})
	if err != nil {
		err = errAddress
	} else if req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.User != nil {
		err = fmt.Errorf("%w: a file's address that is no web address", netguard.ErrBlocked)
	}
	if err != nil {
		body.Close() // as sending it would have done
		return err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", mimeType)
	res, err := c.elsewhere.RoundTrip(req)
	if err == nil {
		if res, err = good(res); err == nil {
			return res.Body.Close()
		}
	}
	return stranger(ctx, err)
}

// Deliver hands a file that the server named to the sink, while it comes.
func (c *Client) Deliver(ctx context.Context, ref string, out engine.Sink) error {
	r, err := c.Open(ctx, ref)
	if err != nil {
		return Failure(ctx, err)
	}
	defer r.Close()
	return Hand(ctx, r, out)
}

// Hand gives the sink what a server sends, while it comes. An error is the
// sink's own, unless the server is why there is no result.
func Hand(ctx context.Context, r io.Reader, out engine.Sink) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	from := &marked{r: r}
	buffered := bufio.NewReader(from)
	if _, err := buffered.Peek(1); errors.Is(err, io.EOF) {
		return ErrNothing
	}
	err := out.Output(ctx, engine.Result{Data: buffered})
	if err != nil && from.err != nil {
		return Failure(ctx, from.err)
	}
	return err
}

// Linger is ctx that goes on for a while after ctx has ended: to hear how a call
// came out that costs somebody, and to take it back. The function ends it.
func Linger(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(while)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-late.Done():
		}
	})
	return late, func() { stop(); cancel() }
}

// Pace is how a server is asked again and again how far it is: less often after
// a while, and through failures that may pass.
type Pace struct {
	Every, Most time.Duration // from one to the other: 1 s and 5 s
	Patience    time.Duration // how long failures are borne: a minute

	over *time.Timer // set while it fails
}

// Wait waits until it is time to ask again.
func (p *Pace) Wait(ctx context.Context) error {
	p.Every = cmp.Or(p.Every, time.Second)
	timer := time.NewTimer(p.Every)
	defer timer.Stop()
	p.Every = max(p.Every, min(p.Every*5/4, cmp.Or(p.Most, 5*time.Second)))
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Bear takes how a question came out. It gives the error back as a failure where
// asking again is of no use, or has not been for too long.
func (p *Pace) Bear(ctx context.Context, err error) error {
	if err == nil {
		p.over = nil
		return nil
	}
	err = Asked(ctx, err)
	if e, ok := errors.AsType[*engine.Error](err); !ok || !e.Transient {
		return err
	}
	if p.over == nil {
		p.over = time.NewTimer(cmp.Or(p.Patience, time.Minute))
	}
	select {
	case <-p.over.C:
		return err
	default:
		return nil
	}
}

// names are endings that differ from what a media type is called.
var names = map[string]string{
	"image/jpeg": "jpg", "image/svg+xml": "svg", "audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/mp4": "m4a",
	"video/quicktime": "mov", "video/x-matroska": "mkv", "model/gltf-binary": "glb", "text/plain": "txt",
}

// FileName is what a media input is called where a server wants a name, whose
// ending some models go by.
func FileName(f engine.File) string {
	_, sub, _ := strings.Cut(f.MimeType, "/")
	return "file." + cmp.Or(names[f.MimeType], strings.TrimPrefix(sub, "x-"), "bin")
}
