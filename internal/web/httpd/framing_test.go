package httpd_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"atelier/internal/web/httpd"
)

// framingServer answers each request with its method, path and body.
func framingServer(t *testing.T) (address string) {
	t.Helper()
	url, _, _, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unread" {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
	}), httpd.Options{HeaderTimeout: 5 * time.Second, BodyTimeout: 5 * time.Second, IdleTimeout: 5 * time.Second, HeaderBytes: 16 << 10})
	return strings.TrimPrefix(url, "http://")
}

// exchange sends text in pieces of a size, 0 for all at once, and gives what
// the server answered until it closed or had answered want requests.
func exchange(t *testing.T, address, text string, piece, want int) (bodies []string, statuses []int, closed bool) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	go func() {
		if piece == 0 {
			piece = len(text)
		}
		for rest := text; rest != ""; {
			n := min(piece, len(rest))
			if _, err := io.WriteString(c, rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
	}()
	in := bufio.NewReader(c)
	for len(statuses) < want {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return bodies, statuses, true
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(body))
		statuses = append(statuses, res.StatusCode)
	}
	c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	_, err = in.ReadByte()
	timeout, ok := err.(net.Error)
	return bodies, statuses, !ok || !timeout.Timeout()
}

// TestFaultyFraming sends requests whose end proxies disagree on, first on their
// own and then behind a sound one on the same connection. A request is smuggled
// behind each: nobody may answer it.
func TestFaultyFraming(t *testing.T) {
	t.Parallel()
	address := framingServer(t)
	const (
		sound    = "POST /sound HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
		chunks   = "3\r\nabc\r\n0\r\n\r\n"
		smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	)
	heads := map[string]string{
		"length first":         "Content-Length: 13\r\nTransfer-Encoding: chunked\r\n",
		"encoding first":       "Transfer-Encoding: chunked\r\nContent-Length: 13\r\n",
		"others between":       "Content-Length: 13\r\nX-A: b\r\nX-C: d\r\nTransfer-Encoding: chunked\r\n",
		"other case":           "cOnTeNt-LeNgTh: 13\r\ntRaNsFeR-eNcOdInG: CHUNKED\r\n",
		"no space":             "Content-Length:13\r\nTransfer-Encoding:chunked\r\n",
		"much space":           "Content-Length:  \t 13 \t\r\nTransfer-Encoding: \t chunked \t\r\n",
		"tab":                  "Content-Length:\t13\r\nTransfer-Encoding:\tchunked\r\n",
		"line feeds only":      "Content-Length: 13\nTransfer-Encoding: chunked\n",
		"length zero":          "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
		"length twice":         "Content-Length: 13\r\nContent-Length: 13\r\nTransfer-Encoding: chunked\r\n",
		"encoding twice":       "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\nContent-Length: 13\r\n",
		"encoding identity":    "Transfer-Encoding: identity\r\nContent-Length: 13\r\n",
		"encoding empty":       "Transfer-Encoding:\r\nContent-Length: 13\r\n",
		"encodings in a list":  "Transfer-Encoding: gzip, chunked\r\nContent-Length: 13\r\n",
		"encoding folded":      "Transfer-Encoding:\r\n chunked\r\nContent-Length: 13\r\n",
		"only encoding folded": "Transfer-Encoding:\r\n chunked\r\n",
		"length folded":        "Content-Length:\r\n 13\r\nTransfer-Encoding: chunked\r\n",
		"only length folded":   "Content-Length: 1\r\n 3\r\n",
		"lengths differ":       "Content-Length: 13\r\nContent-Length: 14\r\n",
		"lengths in a list":    "Content-Length: 13, 13\r\n",
		"length signed":        "Content-Length: +13\r\n",
		"length in hex":        "Content-Length: 0xd\r\n",
		"length empty":         "Content-Length:\r\n",
		"length huge":          "Content-Length: 99999999999999999999\r\n",
		"space in the name":    "Content-Length : 13\r\nTransfer-Encoding: chunked\r\n",
		"space in the other":   "Content-Length: 13\r\nTransfer-Encoding : chunked\r\n",
		"value over a read":    "Content-Length: 13\r\nX: " + strings.Repeat("x", 5000) + "\r\nTransfer-Encoding: chunked\r\n",
		"padded over a read":   "Content-Length:" + strings.Repeat(" ", 5000) + "13\r\nTransfer-Encoding: chunked\r\n",
	}
	for name, head := range heads {
		for before, want := range map[string]int{"": 1, sound: 2} {
			for _, piece := range []int{0, 1, 7} {
				text := before + "POST /faulty HTTP/1.1\r\nHost: x\r\n" + head + "\r\n" + chunks + smuggled
				bodies, statuses, closed := exchange(t, address, text, piece, want+1)
				if len(statuses) != want || statuses[want-1] != 400 || !closed {
					t.Errorf("%s, in pieces of %d: %d %q, closed %v; want %d answers, the last 400 and closed", name, piece, statuses, bodies, closed, want)
				}
				if strings.Contains(strings.Join(bodies, ""), "smuggled") || strings.Contains(strings.Join(bodies, ""), "faulty") {
					t.Errorf("%s: %q were answered", name, bodies)
				}
			}
		}
	}

	for name, head := range map[string]string{
		"with a length": "POST /faulty HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 13\r\n\r\n",
		"alone":         "POST /faulty HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
		"long":          "POST /" + strings.Repeat("x", 6000) + " HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		if bodies, statuses, closed := exchange(t, address, head+chunks+smuggled, 0, 2); len(statuses) != 1 || statuses[0] != 400 || !closed {
			t.Errorf("HTTP/1.0 %s: %d %q, closed %v; want 400 and closed", name, statuses, bodies, closed)
		}
	}
	if _, statuses, closed := exchange(t, address, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n"+chunks+smuggled, 0, 2); len(statuses) != 1 || statuses[0] != 501 || !closed {
		t.Errorf("an unknown encoding: %d, closed %v; want 501 and closed", statuses, closed)
	}
}

// TestSoundFraming sends many sound requests on one connection without waiting
// for answers, in pieces of several sizes: all are answered, in order.
func TestSoundFraming(t *testing.T) {
	t.Parallel()
	address := framingServer(t)
	const headers = "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"
	requests := []struct{ text, want string }{
		{"GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a "},
		{"POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "POST /b hello"},
		{"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n\r\n", "POST /c abcde"},
		{"POST /d HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:chunked\r\nTrailer: X-T\r\n\r\nA\r\n0123456789\r\n00\r\nX-T: Content-Length: 1\r\n\r\n", "POST /d 0123456789"},
		{"POST /e HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "POST /e "},
		{"\r\nPOST /f HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n\r\n\r\n", "POST /f \r\n\r\n"},
		{"GET /g HTTP/1.1\r\nHost: x\r\nX-A: folded\r\n Content-Length: 9\r\n\tTransfer-Encoding: chunked\r\n\r\n", "GET /g "},
		{fmt.Sprintf("POST /h HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(headers), headers), "POST /h " + headers},
		{"POST /unread HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", ""},
		{"GET /i HTTP/1.1\nHost: x\n\n", "GET /i "},
		{"PUT /j HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("y", 6000) + "\r\nContent-Length: 9000\r\n\r\n" + strings.Repeat("z", 9000), "PUT /j " + strings.Repeat("z", 9000)},
		{"DELETE /k HTTP/1.1\r\nHost: x\r\n\r\n", "DELETE /k "},
	}
	var text strings.Builder
	for _, r := range requests {
		text.WriteString(r.text)
	}
	for _, piece := range []int{0, 1, 2, 3, 13, 1000, 4096, 4097} {
		bodies, statuses, closed := exchange(t, address, text.String(), piece, len(requests))
		if closed || len(bodies) != len(requests) {
			t.Fatalf("pieces of %d: %d answers %d, closed %v; want %d and open", piece, len(bodies), statuses, closed, len(requests))
		}
		for i, r := range requests {
			if bodies[i] != r.want || statuses[i] != 200 {
				t.Errorf("pieces of %d: answer %d = %d %.80q, want %.80q", piece, i, statuses[i], bodies[i], r.want)
			}
		}
	}
}
