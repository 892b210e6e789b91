package httpd

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"
)

// Limits on the lines that framing parses.
const (
	maxFramingLine = 1 << 10 // bytes kept of a header line
	lineTailBytes  = 16
	maxChunkLine   = 4 << 10 // bytes; the limit of net/http
)

// framing parses the requests of an HTTP/1 connection as net/http reads them,
// and refuses requests that net/http accepts although proxies disagree on
// where they end (request smuggling, RFC 9112 section 11.2):
//
//   - Content-Length together with Transfer-Encoding (section 6.3)
//   - Transfer-Encoding in a request below HTTP/1.1 (section 6.1)
//   - either of them folded over several lines, or different Content-Lengths
//
// The header of a refused request is made invalid before its end: net/http
// responds to the requests before it, then responds with 400 and closes the
// connection. No later bytes are passed on. If framing itself cannot parse a
// request, it reports the end of the connection.
//
//	head ──no body──▶ head
//	 ├──Content-Length──▶ length ──▶ head
//	 └──chunked──▶ chunkSize ⇄ chunk ──last──▶ trailer ──▶ head
type framing struct {
	state framingState
	line  []byte // the incomplete last line, shortened if it is long
	count int    // length of the incomplete line in bytes, including the bytes that were dropped to shorten it

	// State of the request header that is being read.
	started         bool   // the request line was read
	oldVersion      bool   // the version is not HTTP/1.1
	length          string // the value of Content-Length
	lengths         int
	encoding        string // the value of Transfer-Encoding
	encodings       int
	lastFieldFrames bool // the last header field was Content-Length or Transfer-Encoding
	faulty          bool

	bytesLeft uint64 // bytes left of the body or chunk
	pending   []byte // bytes to return before io.EOF
}

type framingState int

const (
	inHead framingState = iota
	inLength
	inChunkSize
	inChunk
	inTrailer
	ended
)

// invalidHeadEnd replaces the line feed that would end a request header. It
// turns the line before it into an invalid header field.
const invalidHeadEnd = "\x00\n\n"

// readBytes reads from r into p, parses the bytes, and returns how many of
// them are valid. After a refused request it returns io.EOF.
func (f *framing) readBytes(r io.Reader, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(f.pending) > 0 {
		n := copy(p, f.pending)
		f.pending = f.pending[n:]
		return n, nil
	}
	if f.state == ended {
		return 0, io.EOF
	}
	n, err := r.Read(p)
	kept := f.parseBytes(p[:n])
	if f.state == ended {
		if len(f.pending) > 0 && kept < len(p) {
			more := copy(p[kept:], f.pending)
			f.pending = f.pending[more:]
			kept += more
		}
		err = nil
		if kept == 0 {
			err = io.EOF
		}
	}
	return kept, err
}

// parseBytes parses b and returns how many of its bytes to pass on to
// net/http.
func (f *framing) parseBytes(b []byte) int {
	at := 0
	for at < len(b) && f.state != ended {
		if f.state == inLength || f.state == inChunk {
			step := min(uint64(len(b)-at), f.bytesLeft)
			at += int(step)
			f.bytesLeft -= step
			if f.bytesLeft == 0 {
				f.endBody()
			}
			continue
		}
		end := bytes.IndexByte(b[at:], '\n')
		if end < 0 {
			f.appendLine(b[at:])
			return len(b)
		}
		line := b[at : at+end]
		if f.count > 0 {
			f.appendLine(line)
			line = f.line
		}
		whole := f.count <= maxFramingLine
		at += end + 1
		if f.endLine(bytes.TrimSuffix(line, []byte("\r")), whole) {
			at-- // do not pass on the line feed
		}
		f.line = f.line[:0]
		f.count = 0
	}
	return at
}

// appendLine adds bytes to the incomplete line. It keeps only the beginning
// and the end of a long line, which contain the name of a header field and the
// version in a request line.
func (f *framing) appendLine(b []byte) {
	f.count += len(b)
	f.line = append(f.line, b...)
	if len(f.line) > maxFramingLine {
		end := f.line[len(f.line)-lineTailBytes:]
		f.line = append(f.line[:maxFramingLine-lineTailBytes], end...)
	}
	if f.state == inChunkSize && f.count > maxChunkLine {
		f.state = ended
	}
}

// endBody moves to the state after a body or a chunk has been read.
func (f *framing) endBody() {
	if f.state == inChunk {
		f.state = inChunkSize
		return
	}
	f.beginHead()
}

func (f *framing) beginHead() {
	line := f.line
	*f = framing{line: line[:0]}
}

// endLine parses one line and reports whether it ends the header of a refused
// request.
func (f *framing) endLine(line []byte, whole bool) (refused bool) {
	switch f.state {
	case inChunkSize:
		f.beginChunk(line, whole)
		return false
	case inTrailer:
		if len(line) == 0 {
			f.beginHead()
		}
		return false
	case inHead, inLength, inChunk, ended: // a line of a request header
	}
	switch {
	case !f.started && len(line) == 0: // net/http skips empty lines after a POST
	case !f.started:
		f.started = true
		f.oldVersion = !bytes.HasSuffix(line, []byte("HTTP/1.1"))
	case len(line) == 0:
		return f.endHead()
	default:
		f.addField(line, whole)
	}
	return false
}

// addField records a header field if it determines where the body ends.
func (f *framing) addField(line []byte, whole bool) {
	if line[0] == ' ' || line[0] == '\t' {
		f.faulty = f.faulty || f.lastFieldFrames // line folding (obs-fold)
		return
	}
	f.lastFieldFrames = false
	name, value, _ := bytes.Cut(line, []byte(":"))
	name = bytes.TrimSpace(name)
	isLength := bytes.EqualFold(name, []byte("Content-Length"))
	isEncoding := bytes.EqualFold(name, []byte("Transfer-Encoding"))
	if !isLength && !isEncoding {
		return
	}
	f.lastFieldFrames = true
	f.faulty = f.faulty || !whole
	text := strings.Trim(string(value), " \t")
	if isEncoding {
		f.encoding = text
		f.encodings++
		return
	}
	f.faulty = f.faulty || f.lengths > 0 && text != f.length
	f.length = text
	f.lengths++
}

// endHead moves to the state after a request header and reports whether the
// request is refused.
func (f *framing) endHead() (refused bool) {
	if f.faulty || f.encodings > 0 && (f.lengths > 0 || f.oldVersion) {
		return f.refuseHead()
	}
	switch {
	case f.encodings == 1 && strings.EqualFold(f.encoding, "chunked"):
		f.state = inChunkSize
	case f.encodings > 0: // net/http responds with 501 and closes the connection
		f.state = ended
	case f.lengths > 0:
		left, err := strconv.ParseUint(f.length, 10, 63)
		if err != nil {
			return f.refuseHead()
		}
		f.bytesLeft = left
		f.state = inLength
		if left == 0 {
			f.beginHead()
		}
	default:
		f.beginHead()
	}
	return false
}

// refuseHead makes the current request header invalid and ends the connection
// after it.
func (f *framing) refuseHead() bool {
	f.state = ended
	f.pending = []byte(invalidHeadEnd)
	return true
}

// beginChunk parses the line with the size of a chunk. Errors that it does not
// find make net/http close the connection.
func (f *framing) beginChunk(line []byte, whole bool) {
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimRight(size, " \t")), 16, 63)
	switch {
	case err != nil || !whole && len(size) == len(line) || n > math.MaxInt64-2:
		f.state = ended
	case n == 0:
		f.state = inTrailer
	default:
		f.bytesLeft = n + 2 // plus the line end after the chunk
		f.state = inChunk
	}
}
