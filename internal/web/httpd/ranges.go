package httpd

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxRanges is the maximum number of ranges in one response.
	maxRanges = 4

	// rangeGap is the distance in bytes up to which two ranges are merged. It
	// is less than the size of the headers of a separate part (RFC 9110,
	// section 15.3.7.2).
	rangeGap = 80
)

// span is a byte range of a file.
type span struct{ start, length int64 }

// OpenPart opens a reader for length bytes of a file, starting at offset.
type OpenPart func(offset, length int64) (io.ReadCloser, error)

// ServeFile responds with a file of size bytes or with the ranges of it that
// the request names. Ranges that overlap or are close together are merged. A
// request for more than maxRanges gets the whole file, which RFC 9110 (section
// 14.2) allows. A Range header that is malformed or selects no byte of the
// file gets 416. Each range is opened once. The caller sets the headers that
// describe the file, including ETag.
//
// The first bytes are read before the response begins. If reading them fails,
// nothing has been sent, and the caller can still respond to the returned
// error.
func ServeFile(w http.ResponseWriter, r *http.Request, size int64, open OpenPart) error {
	parts := []span{{0, size}}
	if header := r.Header.Get("Range"); header != "" {
		r = r.Clone(r.Context())
		ranges, ok := parseRanges(header, size)
		ranges = mergeRanges(ranges)
		switch {
		case !ok || len(ranges) == 0:
			r.Header.Set("Range", "bytes="+strconv.FormatInt(size, 10)+"-") // net/http responds with 416
		case len(ranges) > maxRanges:
			r.Header.Del("Range")
		default:
			parts = append(parts, ranges...)
			r.Header.Set("Range", formatRanges(ranges))
		}
	}
	content := &partReader{size: size, parts: parts, open: open}
	defer content.closeForGood()
	delayed := &delayedWriter{ResponseWriter: w, head: r.Method == http.MethodHead, content: content}
	http.ServeContent(delayed, r, "", time.Time{}, content)
	err := content.readError()
	if err != nil && !delayed.begun {
		for _, name := range []string{"Accept-Ranges", "Content-Disposition", "Content-Length", "Content-Range", "Content-Type", "Etag"} {
			w.Header().Del(name)
		}
	}
	return err
}

// ServeBytes is like ServeFile, for content in memory.
func ServeBytes(w http.ResponseWriter, r *http.Request, content []byte) {
	_ = ServeFile(w, r, int64(len(content)), func(offset, length int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content[offset : offset+length])), nil
	}) // reading memory does not fail
}

// parseRanges parses a Range header (RFC 9110, section 14.1.2) and returns the
// ranges that are within a file of size bytes. ok is false if the header is
// malformed.
func parseRanges(header string, size int64) (ranges []span, ok bool) {
	list, ok := strings.CutPrefix(header, "bytes=")
	if !ok {
		return nil, false
	}
	for one := range strings.SplitSeq(list, ",") {
		one = strings.Trim(one, " \t")
		if one == "" {
			continue
		}
		from, to, ok := strings.Cut(one, "-")
		if !ok {
			return nil, false
		}
		if from == "" { // a suffix range: the last bytes of the file
			n, ok := parseOffset(to)
			if !ok {
				return nil, false
			}
			n = min(n, size)
			if n > 0 {
				ranges = append(ranges, span{size - n, n})
			}
			continue
		}
		start, ok := parseOffset(from)
		if !ok {
			return nil, false
		}
		end := size - 1
		if to != "" {
			last, ok := parseOffset(to)
			if !ok || last < start {
				return nil, false
			}
			end = min(end, last)
		}
		if start < size {
			ranges = append(ranges, span{start, end - start + 1})
		}
	}
	return ranges, true
}

// parseOffset parses a decimal number without a sign. A number above the
// maximum of int64 becomes that maximum.
func parseOffset(digits string) (int64, bool) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

// mergeRanges sorts ranges by their start and merges ranges that are separated
// by at most rangeGap bytes.
func mergeRanges(ranges []span) []span {
	slices.SortFunc(ranges, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var merged []span
	for _, next := range ranges {
		if len(merged) > 0 {
			last := &merged[len(merged)-1]
			if next.start <= last.start+last.length+rangeGap {
				last.length = max(last.length, next.start+next.length-last.start)
				continue
			}
		}
		merged = append(merged, next)
	}
	return merged
}

func formatRanges(ranges []span) string {
	all := make([]string, len(ranges))
	for i, s := range ranges {
		all[i] = strconv.FormatInt(s.start, 10) + "-" + strconv.FormatInt(s.start+s.length-1, 10)
	}
	return "bytes=" + strings.Join(all, ",")
}

// partReader is the file that http.ServeContent reads, one range at a time.
// For several ranges net/http reads in a goroutine, which can continue after
// the client has disconnected and the response has ended.
type partReader struct {
	size  int64
	parts []span // the whole file, followed by the ranges
	open  OpenPart

	mu     sync.Mutex
	offset int64
	body   io.ReadCloser
	head   []byte // the first bytes of body, read ahead
	err    error
}

var errFinished = errors.New("the response has ended")

func (p *partReader) readError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// closeForGood closes the file and makes later reads fail.
func (p *partReader) closeForGood() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closePart()
	p.err = errFinished
}

// startPart opens a range before the response begins, and returns the error if
// that fails.
func (p *partReader) startPart(part span) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.openPart(part)
	return p.err
}

func (p *partReader) Seek(offset int64, whence int) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += p.offset
	case io.SeekEnd:
		offset += p.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start")
	}
	if offset != p.offset {
		p.closePart()
		p.offset = offset
	}
	return offset, nil
}

// openPart opens a range and reads its first bytes, so that an error of the
// file store is noticed before the response begins.
func (p *partReader) openPart(part span) {
	p.closePart()
	p.offset = part.start
	if part.length == 0 {
		return
	}
	body, err := p.open(part.start, part.length)
	if err != nil {
		p.err = err
		return
	}
	p.body = body
	head := make([]byte, min(part.length, 4<<10))
	n, err := io.ReadFull(body, head)
	if err != nil {
		p.err = err
	}
	p.head = head[:n]
}

func (p *partReader) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return 0, p.err
	}
	if p.offset >= p.size {
		return 0, io.EOF
	}
	if p.body == nil {
		p.openPart(p.partAt(p.offset))
		if p.err != nil {
			return 0, p.err
		}
	}
	if len(p.head) > 0 {
		n := copy(b, p.head)
		p.head = p.head[n:]
		p.offset += int64(n)
		return n, nil
	}
	n, err := p.body.Read(b)
	p.offset += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		p.err = err
	}
	return n, err
}

// partAt returns the requested range that starts at offset. If no requested
// range starts there, it returns the range from offset to the end of the file.
func (p *partReader) partAt(offset int64) span {
	for _, part := range p.parts[1:] {
		if part.start == offset {
			return part
		}
	}
	return span{offset, p.size - offset}
}

func (p *partReader) closePart() {
	if p.body != nil {
		_ = p.body.Close() // the needed bytes have been read
		p.body = nil
	}
	p.head = nil
}

// delayedWriter is a response writer that begins the response only after the
// first bytes of the content have been read.
type delayedWriter struct {
	http.ResponseWriter
	head    bool // the request is HEAD
	content *partReader
	begun   bool
}

func (d *delayedWriter) WriteHeader(status int) {
	if !d.head && !d.begun {
		var err error
		switch status {
		case http.StatusOK:
			err = d.content.startPart(d.content.parts[0])
		case http.StatusPartialContent:
			err = d.content.startPart(d.content.parts[1])
		}
		if err != nil {
			return
		}
	}
	d.begun = true
	d.ResponseWriter.WriteHeader(status)
}

func (d *delayedWriter) Write(b []byte) (int, error) {
	if !d.begun {
		return 0, errUnreadable
	}
	return d.ResponseWriter.Write(b)
}

var errUnreadable = errors.New("the file cannot be read")

// Unwrap returns the wrapped writer. http.ResponseController needs it to find
// the connection.
func (d *delayedWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }
