package httpd

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// MinGzipBytes is the minimum size in bytes of responses that are compressed.
// For smaller responses the additional headers cost more than compression
// saves.
const MinGzipBytes = 1 << 10

// AcceptsGzip reports whether the response to a request should be compressed with
// gzip (RFC 9110, section 12.5.3). Range requests are never compressed.
func AcceptsGzip(r *http.Request) bool {
	lines := r.Header["Accept-Encoding"]
	if len(lines) == 0 || r.Header.Get("Range") != "" {
		return false
	}

	const unset = -1.0
	compressed := unset
	wildcard := unset
	plain := unset
	for _, line := range lines {
		for one := range strings.SplitSeq(line, ",") {
			coding, parameters, _ := strings.Cut(one, ";")
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip", "x-gzip":
				compressed = parseWeight(parameters)
			case "identity":
				plain = parseWeight(parameters)
			case "*":
				wildcard = parseWeight(parameters)
			}
		}
	}
	if compressed == unset {
		compressed = wildcard
	}
	return compressed > 0 && compressed >= plain
}

// parseWeight returns the q parameter of an element of Accept-Encoding: 1 if
// there is none, 0 if it is malformed.
func parseWeight(parameters string) float64 {
	text := strings.TrimSpace(parameters)
	if text == "" {
		return 1
	}
	name, value, _ := strings.Cut(text, "=")
	if !strings.EqualFold(strings.TrimSpace(name), "q") {
		return 0
	}
	weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || math.IsNaN(weight) || weight < 0 || weight > 1 {
		return 0
	}
	return weight
}

// GzipETag returns the ETag of the compressed form of the content whose ETag
// is tag. The bytes differ, so a strong ETag must differ too (RFC 9110,
// section 8.8.3.3).
func GzipETag(tag string) string {
	return strings.TrimSuffix(tag, `"`) + `-gzip"`
}

// Gzip is compressed content to which each response can append a few more
// bytes without compressing the content again.
type Gzip struct {
	stream []byte // without the final block and the trailer
	sum    uint32
	length uint32
}

// Compress compresses content with the best ratio, which pays off for content
// that is sent often.
func Compress(content []byte) *Gzip {
	var stream bytes.Buffer
	w, err := gzip.NewWriterLevel(&stream, gzip.BestCompression)
	if err != nil {
		panic(err) // cannot happen, because the level is a valid constant
	}
	_, _ = w.Write(content)
	_ = w.Flush() // ends on a byte boundary, without the final block
	return &Gzip{
		stream: bytes.Clone(stream.Bytes()),
		sum:    crc32.ChecksumIEEE(content),
		length: uint32(len(content)),
	}
}

// StreamHead returns the beginning of the gzip stream. StreamTail returns its
// end.
func (g *Gzip) StreamHead() []byte { return g.stream }

// maxStored is the maximum number of bytes in a stored block of DEFLATE.
const maxStored = math.MaxUint16

// StreamTail returns the end of the gzip stream, which appends rest to the
// content. rest is stored uncompressed, because it is short (RFC 1951, section
// 3.2.4; RFC 1952, section 2.3.1).
func (g *Gzip) StreamTail(rest []byte) []byte {
	sum := crc32.Update(g.sum, crc32.IEEETable, rest)
	length := g.length + uint32(len(rest))

	end := make([]byte, 0, len(rest)+5*(len(rest)/maxStored+1)+8)
	for {
		block := rest[:min(len(rest), maxStored)]
		rest = rest[len(block):]
		last := byte(0)
		if len(rest) == 0 {
			last = 1
		}
		end = append(end, last)
		end = binary.LittleEndian.AppendUint16(end, uint16(len(block)))
		end = binary.LittleEndian.AppendUint16(end, ^uint16(len(block)))
		end = append(end, block...)
		if last == 1 {
			break
		}
	}
	end = binary.LittleEndian.AppendUint32(end, sum)
	return binary.LittleEndian.AppendUint32(end, length)
}

// fastWriters are the gzip writers that CompressOnce reuses.
var fastWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // cannot happen, because the level is a valid constant
	}
	return w
}}

// CompressOnce compresses content quickly, which suits content that is sent
// only once.
func CompressOnce(content []byte) []byte {
	var stream bytes.Buffer
	stream.Grow(len(content) / 4)
	w := fastWriters.Get().(*gzip.Writer)
	defer fastWriters.Put(w)
	w.Reset(&stream)
	_, _ = w.Write(content)
	_ = w.Close()
	return stream.Bytes()
}
