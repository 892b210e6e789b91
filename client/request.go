package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// request is a request to the API that can be sent several times.
type request struct {
	method string
	path   string // below /api/v2; escaped
	query  url.Values
	header http.Header
	json   any // value of a JSON body; nil for none
	// body returns a reader of the body for each attempt; nil for none or for
	// json.
	body   func() io.Reader
	length int64 // of body
	team   bool  // send the client's team, unless query has one
	public bool  // send no credential
	// repeatable requests have no second effect if they are sent twice. GET,
	// HEAD, PUT and DELETE always are.
	repeatable bool
	keyed      bool // needs an Idempotency-Key, and is repeatable with it
}

// attemptTime limits one attempt of a request, with one second more for each
// attemptPace bytes of its body. The service itself is stricter, so that this
// only ends attempts whose connection is dead.
const (
	attemptTime = 2 * time.Minute
	attemptPace = 32 << 10
)

// maxResponseBytes is the maximum number of bytes read of a JSON answer.
const maxResponseBytes = 64 << 20

// callJSON sends a request and decodes its JSON answer.
func callJSON[T any](ctx context.Context, c *Client, r *request) (*T, error) {
	var result *T
	err := c.send(ctx, r, func(res *http.Response) error {
		body, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBytes))
		if err != nil {
			return fmt.Errorf("read the answer to %s %s: %w", r.method, r.path, err)
		}
		var value T
		err = json.NewDecoder(bytes.NewReader(body)).Decode(&value)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // a body without a length was cut off
			return fmt.Errorf("the answer to %s %s ends too early: %w", r.method, r.path, err)
		case err != nil:
			return &finalError{fmt.Errorf("decode the answer to %s %s: %w", r.method, r.path, err)}
		}
		result = &value
		return nil
	})
	return result, err
}

// callEmpty sends a request whose answer has no body.
func callEmpty(ctx context.Context, c *Client, r *request) error {
	return c.send(ctx, r, func(*http.Response) error { return nil })
}

// callStream sends a request and returns the body of its answer. The caller
// must close it.
func callStream(ctx context.Context, c *Client, r *request) (io.ReadCloser, error) {
	res, err := c.open(ctx, r)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// finalError marks a failure that no further attempt can cure: a file that
// cannot be read, an answer that arrived whole and is not understood.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// send sends a request, again after failures, until read has read its answer.
func (c *Client) send(ctx context.Context, r *request, read func(*http.Response) error) error {
	if err := r.prepare(); err != nil {
		return err
	}
	tries := c.retry.newAttempts()
	uncertain := false // an earlier attempt may have had its effect
	for {
		err := c.sendOnce(ctx, r, read)
		if err == nil {
			return nil
		}
		e, answered := errors.AsType[*Error](err)
		if answered && uncertain && r.method == http.MethodDelete && e.Status == http.StatusNotFound {
			return nil // deleted by an attempt whose answer was lost
		}
		if !mayRepeat(err, r.isSafe()) {
			return contextOr(ctx, err)
		}
		uncertain = uncertain || !answered || e.Status >= 500
		if err := tries.wait(ctx, err); err != nil {
			return err
		}
	}
}

// contextOr returns the error of an ended context, or else err.
func contextOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return contextError(ctx, err)
	}
	return err
}

// sendOnce sends a request once, and reads its answer.
func (c *Client) sendOnce(ctx context.Context, r *request, read func(*http.Response) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime+time.Duration(r.length/attemptPace)*time.Second)
	defer cancel()
	res, err := c.roundTrip(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return read(res)
}

// open sends a request, again after failures, and returns the first answer that
// is a success. The caller must close its body.
func (c *Client) open(ctx context.Context, r *request) (*http.Response, error) {
	if err := r.prepare(); err != nil {
		return nil, err
	}
	tries := c.retry.newAttempts()
	for {
		res, err := c.roundTrip(ctx, r)
		if err == nil {
			return res, nil
		}
		if !mayRepeat(err, r.isSafe()) {
			return nil, contextOr(ctx, err)
		}
		if err := tries.wait(ctx, err); err != nil {
			return nil, err
		}
	}
}

// prepare encodes the JSON body and makes the idempotency key, once for all
// attempts.
func (r *request) prepare() error {
	if r.header == nil {
		r.header = http.Header{}
	}
	if r.json != nil {
		text, err := json.Marshal(r.json)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		r.setBytes(text)
		r.header.Set("Content-Type", "application/json")
	}
	if r.keyed && r.header.Get("Idempotency-Key") == "" {
		r.header.Set("Idempotency-Key", NewKey())
	}
	return nil
}

// setBytes sets a body that is in memory.
func (r *request) setBytes(text []byte) {
	r.length = int64(len(text))
	r.body = func() io.Reader { return bytes.NewReader(text) }
}

// isSafe reports whether a second delivery has no second effect.
func (r *request) isSafe() bool {
	switch r.method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions:
		return true
	}
	return r.repeatable || r.keyed
}

// roundTrip sends a request once and returns its answer if that is a success.
// If the service refuses the ID token of a device, the token is refreshed and
// the request is sent once more.
func (c *Client) roundTrip(ctx context.Context, r *request) (*http.Response, error) {
	if c.tokens == nil || r.public {
		return c.transmit(ctx, r, c.token)
	}
	token, err := c.tokens.idToken(ctx)
	if err != nil {
		return nil, err
	}
	res, err := c.transmit(ctx, r, token)
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusUnauthorized {
		return res, err
	}
	token, err = c.tokens.replace(ctx, token)
	if err != nil {
		return nil, err
	}
	return c.transmit(ctx, r, token)
}

// transmit sends a request with a token.
func (c *Client) transmit(ctx context.Context, r *request, token string) (*http.Response, error) {
	if err := checkPath(r.path); err != nil {
		return nil, &finalError{err}
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.addressOf(r), nil)
	if err != nil {
		return nil, &finalError{err}
	}
	if r.body != nil {
		body := &sentBody{from: r.body()}
		defer func() { _ = body.Close() }() // it only ends the reading
		req.Body = body
		req.ContentLength = r.length
	}
	req.Header = r.header.Clone()
	req.Header.Set("User-Agent", c.userAgent)
	if !r.public && token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, withoutQuery(err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, readError(res)
}

// ErrInvalidID means that a call was made with an id that is empty or consists
// of dots, which would be the path of something else. Nothing was sent.
var ErrInvalidID = errors.New("the id is empty or consists of dots")

// checkPath returns an error if an id in the path would lead elsewhere.
func checkPath(path string) error {
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if strings.Trim(part, ".") == "" {
			return ErrInvalidID
		}
	}
	return nil
}

// addressOf returns the URL of a request.
func (c *Client) addressOf(r *request) string {
	address := c.base + "/api/v2" + r.path
	query := r.query.Encode()
	if r.team && c.teamID != "" && !r.query.Has("team_id") {
		if query != "" {
			query += "&"
		}
		query += "team_id=" + url.QueryEscape(c.teamID)
	}
	if query == "" {
		return address
	}
	return address + "?" + query
}

// sentBody is the body of one attempt. A transport may go on reading a body
// after it has returned the answer. Close ends that: afterwards neither the
// caller's file nor its Progress is used, unless by the next attempt.
type sentBody struct {
	mu   sync.Mutex
	from io.Reader // nil after Close
}

// Read implements io.Reader.
func (b *sentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.from == nil {
		return 0, io.EOF // no error: the transport would drop the connection whose answer is being read
	}
	return b.from.Read(p)
}

// Close implements io.Closer. It waits for a Read in progress.
func (b *sentBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.from = nil
	return nil
}

// withoutQuery removes the query from the URL in an error: queries carry
// device codes and signatures, which do not belong in logs.
func withoutQuery(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		e.URL, _, _ = strings.Cut(e.URL, "?")
	}
	return err
}

// NewKey returns a random idempotency key.
func NewKey() string { return rand.Text() }

func addText(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

func addNumber(v url.Values, name string, value int64) {
	if value != 0 {
		v.Set(name, strconv.FormatInt(value, 10))
	}
}

func addTime(v url.Values, name string, value time.Time) {
	if !value.IsZero() {
		v.Set(name, value.UTC().Format(time.RFC3339Nano))
	}
}

func addBool(v url.Values, name string, value *bool) {
	if value != nil {
		v.Set(name, strconv.FormatBool(*value))
	}
}
