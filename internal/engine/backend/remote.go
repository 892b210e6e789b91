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

// UploadFile sends a file to an upload URL that the server sent, without
// credentials. The host's IP address is checked as protection against SSRF.
// UploadFile closes the body.
func (c *Client) UploadFile(ctx context.Context, at, mimeType string, body io.ReadCloser, size int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, at, inputReader{body})
	if err != nil {
		err = errAddress
	} else if req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.User != nil {
		err = fmt.Errorf("%w: the URL of a file must be http:// or https://", netguard.ErrBlocked)
	}
	if err != nil {
		body.Close() // UploadFile closes the body even if it fails, as http.Client does
		return err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", mimeType)
	res, err := c.remoteTransport.RoundTrip(req)
	if err == nil {
		if res, err = checkStatus(res); err == nil {
			return res.Body.Close()
		}
	}
	return remoteFailure(ctx, err)
}

// DeliverFile fetches a file that a response of the server refers to, and
// passes it to the sink as a result.
func (c *Client) DeliverFile(ctx context.Context, ref string, out engine.Sink) error {
	r, err := c.OpenFile(ctx, ref)
	if err != nil {
		return CallFailure(ctx, err)
	}
	defer r.Close()
	return DeliverReader(ctx, r, out)
}

// DeliverRemoteFile is DeliverFile for hosted providers, which store results on
// other hosts than their API. It sends no credentials. With credentials, a
// model that returns a URL of the API could turn the API's response into a
// result, such as the list of all predictions of the account.
func (c *Client) DeliverRemoteFile(ctx context.Context, ref string, out engine.Sink) error {
	r, err := c.openFile(ctx, ref, false)
	if err != nil {
		return CallFailure(ctx, err)
	}
	defer r.Close()
	return DeliverReader(ctx, r, out)
}

// DeliverReader passes data that the server sends to the sink as a result. If
// reading fails, it returns the server's failure, otherwise the sink's error.
func DeliverReader(ctx context.Context, r io.Reader, out engine.Sink) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	from := &errorRecorder{r: r}
	buffered := bufio.NewReader(from)
	if _, err := buffered.Peek(1); errors.Is(err, io.EOF) {
		return ErrNoResult
	}
	err := out.Output(ctx, engine.Result{Data: buffered})
	if err != nil && from.err != nil {
		return CallFailure(ctx, from.err)
	}
	return err
}

// WithGrace returns a context that is cancelled a grace period after ctx.
// During this time callers query the outcome of a request that costs money, or
// cancel its work.
func WithGrace(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
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

// Poller controls the intervals between repeated queries of a server. The
// interval grows with time, and transient failures do not end the polling.
type Poller struct {
	Interval, MaxInterval time.Duration // first and longest interval; default: 1 s and 5 s
	Timeout               time.Duration // how long queries may keep failing before the run fails; default: one minute

	over *time.Timer // started at the first of consecutive failures; nil while queries succeed
}

// WaitNext waits until the next query is due.
func (p *Poller) WaitNext(ctx context.Context) error {
	p.Interval = cmp.Or(p.Interval, time.Second)
	timer := time.NewTimer(p.Interval)
	defer timer.Stop()
	p.Interval = max(p.Interval, min(p.Interval*5/4, cmp.Or(p.MaxInterval, 5*time.Second)))
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CheckError records the error of a query, or nil if it succeeded. It returns
// a failure if the error is permanent, or if queries have been failing for
// longer than the timeout.
func (p *Poller) CheckError(ctx context.Context, err error) error {
	if err == nil {
		p.over = nil
		return nil
	}
	err = QueryFailure(ctx, err)
	if e, ok := errors.AsType[*engine.Error](err); !ok || !e.Transient {
		return err
	}
	if p.over == nil {
		p.over = time.NewTimer(cmp.Or(p.Timeout, time.Minute))
	}
	select {
	case <-p.over.C:
		return err
	default:
		return nil
	}
}

// fileEndings are the file name endings of media types whose subtype is not
// the usual ending.
var fileEndings = map[string]string{
	"image/jpeg": "jpg", "image/svg+xml": "svg", "audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/mp4": "m4a",
	"video/quicktime": "mov", "video/x-matroska": "mkv", "model/gltf-binary": "glb", "text/plain": "txt",
}

// FileName returns a file name for an input file of a job, for servers that
// need one. Some models depend on its ending.
func FileName(f engine.File) string {
	_, sub, _ := strings.Cut(f.MimeType, "/")
	return "file." + cmp.Or(fileEndings[f.MimeType], strings.TrimPrefix(sub, "x-"), "bin")
}
