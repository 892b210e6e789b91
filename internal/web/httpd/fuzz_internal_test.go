package httpd

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// FuzzParseRanges proves that every range lies within the file, that merged
// ranges are in order and apart from each other, and that the merged ranges are
// read back as they were written.
func FuzzParseRanges(f *testing.F) {
	for _, header := range []string{"bytes=0-0", "bytes=0-", "bytes=-5", "bytes=5-9,0-1, 900-", "bytes=0-0,-1", "bytes=99999999999999999999-", "bytes=-0", "bytes=,", "bytes=1-0", "items=0-1", "bytes= 1-2\t,3-4"} {
		f.Add(header, int64(1000))
		f.Add(header, int64(1))
	}
	f.Add("bytes=0-", int64(0))
	f.Fuzz(func(t *testing.T, header string, size int64) {
		if size < 0 {
			return
		}
		ranges, ok := parseRanges(header, size)
		if !ok && ranges != nil {
			t.Error("a malformed header has ranges")
		}
		for _, r := range ranges {
			if r.start < 0 || r.length < 1 || r.start+r.length > size {
				t.Errorf("%+v of %d bytes", r, size)
			}
		}

		covered := func(all []span, at int64) bool {
			return slices.ContainsFunc(all, func(r span) bool { return r.start <= at && at < r.start+r.length })
		}
		merged := mergeRanges(slices.Clone(ranges))
		for _, r := range ranges {
			if !covered(merged, r.start) || !covered(merged, r.start+r.length-1) {
				t.Errorf("%+v is not in %+v", r, merged)
			}
		}
		for i := 1; i < len(merged); i++ {
			if merged[i].start <= merged[i-1].start+merged[i-1].length+rangeGap {
				t.Errorf("%+v are not apart", merged)
			}
		}
		if again, ok := parseRanges(formatRanges(merged), size); len(merged) > 0 && (!ok || !slices.Equal(again, merged)) {
			t.Errorf("%+v is written as %s, which is read as %+v", merged, formatRanges(merged), again)
		}
	})
}

// FuzzFraming proves that the parser of connections and net/http agree on where
// each request ends, for every request that net/http accepts, and that it does
// not matter in which pieces the bytes arrive.
func FuzzFraming(f *testing.F) {
	for _, stream := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\nHost: a\nContent-Length: 3\nContent-Length: 3\n\nabc",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 3\r\n\r\nabc",
		"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: a\r\ncontent-length : 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET / HTTP/1.1\r\n" + strings.Repeat("a", 2000) + ": b\r\n\r\n",
	} {
		f.Add([]byte(stream), uint16(7))
	}
	f.Fuzz(func(t *testing.T, stream []byte, piece uint16) {
		if len(stream) > 64<<10 {
			return
		}
		whole := passOn(t, stream, 64<<10)
		if pieces := passOn(t, stream, 1+int(piece)); !bytes.Equal(pieces, whole) {
			t.Errorf("in pieces of %d bytes:\n%q\nat once:\n%q", 1+int(piece), pieces, whole)
		}

		// The ends of requests, as the parser sees them.
		ends := map[int]bool{}
		parser := &framing{}
		for i := range whole {
			parser.parseBytes(whole[i : i+1])
			if parser.state == inHead && !parser.started {
				ends[i+1] = true
			}
		}
		source := bufio.NewReader(bytes.NewReader(whole))
		for {
			r, err := http.ReadRequest(source)
			if err != nil || hasInvalidName(r.Header) {
				return
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			rest, err := io.ReadAll(source)
			if err != nil {
				t.Fatal(err)
			}
			if at := len(whole) - len(rest); !ends[at] {
				t.Fatalf("net/http sees the end of a request after %d bytes, the parser does not: %q", at, whole)
			}
			source = bufio.NewReader(bytes.NewReader(rest))
		}
	})
}

// hasInvalidName reports whether a header has a name for which http.Server
// refuses the request, which http.ReadRequest does not.
func hasInvalidName(header http.Header) bool {
	for name := range header {
		if strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) }) {
			return true
		}
	}
	return false
}

// passOn returns the bytes that reach net/http of a connection whose reads return
// at most size bytes.
func passOn(t *testing.T, stream []byte, size int) []byte {
	t.Helper()
	parser := &framing{}
	source := bytes.NewReader(stream)
	var all []byte
	buffer := make([]byte, size)
	for range len(stream) + len(invalidHeadEnd) + 2 {
		n, err := parser.readBytes(source, buffer)
		all = append(all, buffer[:n]...)
		if err != nil {
			return all
		}
	}
	t.Fatal("the connection does not end")
	return nil
}

// FuzzAcceptsGzip proves that weights stay between 0 and 1, and that a client
// gets compressed content only if it names gzip or everything.
func FuzzAcceptsGzip(f *testing.F) {
	for _, header := range []string{"gzip", "*", "gzip;q=0", "gzip;q=0.5, identity;q=1", "br, *;q=0.1", "x-gzip", "gzip;q=NaN", "gzip;q=1e400", "gzip;level=1"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if w := parseWeight(header); !(w >= 0 && w <= 1) {
			t.Errorf("weight = %v", w)
		}
		r := &http.Request{Header: http.Header{"Accept-Encoding": {header}}}
		low := strings.ToLower(header)
		if AcceptsGzip(r) && !strings.Contains(low, "gzip") && !strings.Contains(low, "*") {
			t.Errorf("%q accepts gzip", header)
		}
	})
}

// FuzzClientAddr proves that nobody but a trusted proxy can name the address of a
// client, and that an address has one key for limits, whatever its spelling.
func FuzzClientAddr(f *testing.F) {
	for _, forwarded := range []string{"", "192.0.2.7", "192.0.2.7, 10.0.0.1", "::ffff:192.0.2.7", "unknown", "10.0.0.1,10.0.0.2", "2001:db8::1%eth0", "192.0.2.7:80", " ,"} {
		f.Add("10.0.0.9:1234", forwarded)
		f.Add("198.51.100.1:1", forwarded)
	}
	f.Add("@", "")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, peer, forwarded string) {
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {forwarded}}}
		at, err := netip.ParseAddrPort(peer)
		got := clientAddr(r, trusted)
		if err != nil {
			if got.IsValid() {
				t.Errorf("%q is %v", peer, got)
			}
			return
		}
		direct := at.Addr().Unmap()
		if alone := clientAddr(r, nil); alone != direct {
			t.Errorf("without proxies, %q is %v", peer, alone)
		}
		if !isTrusted(direct, trusted) && got != direct {
			t.Errorf("%q, which is no proxy, has named %v", peer, got)
		}
		if got.Is4In6() {
			t.Errorf("%q behind %q is %v", forwarded, peer, got)
		}
		if got.Is4() && AddressKey(got) != AddressKey(netip.AddrFrom16(got.As16()).Unmap()) {
			t.Errorf("%v has two keys", got)
		}
	})
}

// FuzzRedact proves that nothing secret reaches the log: no credential of this
// service, no long word, and no line break.
func FuzzRedact(f *testing.F) {
	for _, path := range []string{"/", "/api/v2/me", "/devices/atl_p_abc", "/generate/PagW53lsaa2KiGgg5wR4", "/a\nb", "//", "/whsec_x", strings.Repeat("/a", 50), "/media/r/1/original/my face.png"} {
		f.Add(path, "limit=5&device_code=secret&tool_id=PagW53lsaa2KiGgg5wR4&start_utc=2026-11-15T09:30:00Z")
	}
	f.Fuzz(func(t *testing.T, path, query string) {
		for what, text := range map[string]string{"path": redactPath(path, "/api/v2/generate/{request_id}/{name}"), "query": redactQuery(query)} {
			if strings.ContainsAny(text, "\r\n\x1b") {
				t.Errorf("the %s is logged as %q", what, text)
			}
			for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("/&=,", r) || r == '…' }) {
				if len(word) > 4*maxWord || strings.HasPrefix(word, "atl_") || strings.HasPrefix(word, "whsec_") {
					t.Errorf("the %s is logged as %q", what, text)
				}
			}
		}
	})
}
