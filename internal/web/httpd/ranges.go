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
	// maxRanges is how many parts of a file one request gets.
	maxRanges = 4

	// rangeGap is how far apart two ranges may be and still become one: less
	// than the head of a part takes (RFC 9110, section 15.3.7.2).
	rangeGap = 80
)

// span is a part of a file.
type span struct{ start, length int64 }

// OpenPart reads length bytes of a file from offset.
type OpenPart func(offset, length int64) (io.ReadCloser, error)

// ServeFile answers with a file of size bytes, or with the parts of it that the
// request asks for: those that overlap or touch are one, and for more than a
// few the answer is the whole file, which RFC 9110 (section 14.2) allows. A
// header that names no byte of the file is answered with 416. Each part is
// opened once. The headers that describe the file, ETag among them, are
// the caller's.
//
// The first bytes are read before the answer begins. Where that fails nothing
// was sent, and the error can still be answered.
func ServeFile(w http.ResponseWriter, r *http.Request, size int64, open OpenPart) error {
	parts := []span{{0, size}}
	if header := r.Header.Get("Range"); header != "" {
		r = r.Clone(r.Context())
		ranges, ok := parseRanges(header, size)
		ranges = mergeRanges(ranges)
		switch {
		case !ok || len(ranges) == 0:
			r.Header.Set("Range", "bytes="+strconv.FormatInt(size, 10)+"-") // 416, in the library's words
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

// ServeBytes is ServeFile for what is in memory.
func ServeBytes(w http.ResponseWriter, r *http.Request, content []byte) {
	_ = ServeFile(w, r, int64(len(content)), func(offset, length int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content[offset : offset+length])), nil
	}) // memory can be read
}

// parseRanges reads a Range header (RFC 9110, section 14.1.2) and gives the
// parts that lie within a file of size bytes.
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
		if from == "" { // the last bytes
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

// parseOffset reads a number of digits only. One that is too large is as good as
// the largest.
func parseOffset(digits string) (int64, bool) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

// mergeRanges sorts ranges and makes one of those that overlap or are next to
// each other.
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

// partReader is a file as http.ServeContent reads it: from the start of each part
// to its end. Several parts are read by a goroutine of the library, which can
// outlast the answer to a client that left.
type partReader struct {
	size  int64
	parts []span // the whole file first
	open  OpenPart

	mu     sync.Mutex
	offset int64
	body   io.ReadCloser
	head   []byte // of the body, read ahead
	err    error
}

var errFinished = errors.New("the answer is over")

func (p *partReader) readError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// closeForGood closes the file for good.
func (p *partReader) closeForGood() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closePart()
	p.err = errFinished
}

// startPart begins a part before any other is read.
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

// openPart opens a part and reads its first bytes, so that a store that cannot be
// read is noticed before the answer begins.
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

// partAt is the part that starts at an offset, else the rest of the file.
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
		_ = p.body.Close() // all that was needed of it has been read
		p.body = nil
	}
	p.head = nil
}

// delayedWriter begins an answer only once the first bytes of its content were
// read.
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

var errUnreadable = errors.New("the file can't be read")

// Unwrap lets http.ResponseController reach the connection.
func (d *delayedWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }
