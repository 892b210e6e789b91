package api_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/generation"
	"atelier/internal/web/api"
	"atelier/internal/web/api/wire"
)

func small(change func(*api.Limits)) api.Limits {
	l := limits
	change(&l)
	return l
}

func TestTwelveFiles(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		upload := func() string {
			a := m.send("POST", "/api/v2/uploads", "image/png", bytes.NewReader(picture(2, 2)))
			return `{"kind":"UPLOAD_REF","id":"` + decodeAnswer[wire.Upload](t, a).ID + `"}`
		}
		ref := upload()
		parts := func(sent, referred int) []part {
			var all []string
			for i := range sent {
				all = append(all, fmt.Sprintf(`{"kind":"MULTIPART","file_index":%d}`, i))
			}
			for range referred {
				all = append(all, ref)
			}
			form := []part{payload(m.body("one", `,"inputs":{"pictures":[`+strings.Join(all, ",")+`]}`))}
			for range sent {
				form = append(form, file(picture(2, 2)))
			}
			return form
		}
		for _, x := range []struct{ sent, referred int }{{12, 0}, {0, 12}, {5, 7}, {11, 0}, {0, 1}} {
			m.createForm(parts(x.sent, x.referred)).checkStatus(t, fmt.Sprint(x), 202, "")
		}
		m.unchanged("thirteen", func() {
			for _, x := range []struct{ sent, referred int }{{13, 0}, {0, 13}, {6, 7}, {12, 1}, {1, 12}, {40, 0}} {
				a := m.createForm(parts(x.sent, x.referred)).checkStatus(t, fmt.Sprint(x), 413, "TOO_MANY_INPUT_FILES")
				if a.readError(t).Details["limit"] != 12.0 {
					t.Errorf("%v = %s", x, a.body)
				}
			}
		})
	})
}

func TestSizesOfFiles(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		const most = 4000
		m := newRunFixture(t, db, small(func(l *api.Limits) { l.FileBytes = most }), setHighLimits)
		sound := m.body("one", `,"inputs":{"sound":{"kind":"MULTIPART","file_index":0}}`)
		for n, code := range map[int]string{most - 4: "", most: "", most + 4: "UPLOAD_TOO_LARGE", most + 1: "UPLOAD_TOO_LARGE"} {
			status := 202
			if code != "" {
				status = 413
			}
			if n%4 != 0 {
				a := m.createForm([]part{payload(sound), file(append(tone(n-1), 0))}).checkStatus(t, fmt.Sprint(n, " bytes"), status, code)
				if a.readError(t).Details["limit_bytes"] != float64(most) {
					t.Errorf("%d bytes = %s", n, a.body)
				}
				continue
			}
			m.createForm([]part{payload(sound), file(tone(n))}).checkStatus(t, fmt.Sprint(n, " bytes"), status, code)
			m.send("POST", "/api/v2/uploads", "audio/wav", bytes.NewReader(tone(n))).checkStatus(t, fmt.Sprint("an upload of ", n, " bytes"), map[int]int{202: 201, 413: 413}[status], code)
		}
	})
}

// TestLargestFile sends the real thing once.
func TestLargestFile(t *testing.T) {
	t.Parallel()
	m := newRunFixture(t, dbtest.Open(t, dbtest.URL(t, "sqlite")), limits, setHighLimits)
	const most = 52_428_800
	kind, body := form(payload(m.body("one", `,"inputs":{"sound":{"kind":"MULTIPART","file_index":0}}`)), file(tone(most)))
	m.send("POST", "/api/v2/generate", kind, body).checkStatus(t, "the largest file", 202, "")
	m.unchanged("one byte more", func() {
		m.send("POST", "/api/v2/uploads", "audio/wav", bytes.NewReader(append(tone(most), 0))).checkStatus(t, "one byte more", 413, "UPLOAD_TOO_LARGE")
	})
}

func TestOddForms(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		one := `,"inputs":{"picture":{"kind":"MULTIPART","file_index":0}}`
		p, good, f := payload(m.body("one", one)), payload(m.body("one", "")), file(picture(2, 2))
		asFile := p
		asFile.file, asFile.kind = "payload.json", "text/plain"
		bare := f
		bare.file, bare.kind = "", ""
		note := part{name: "note", file: "x.html", kind: "text/html", data: "<script>"}
		for name, parts := range map[string][]part{
			"as they should be": {p, f}, "the payload last": {f, p}, "the payload as a file": {asFile, f}, "a file without a name": {p, bare}, "parts for others": {note, p, note, f, {name: "", data: "x"}, {name: "Payload", data: "{"}, {name: "file", data: "x"}},
			"no files": {good}, "64 parts": append(repeated(note, 62), p, f), "a PNG that says it is a JPEG": {p, claimed(f, "image/jpeg")},
		} {
			m.createForm(parts).checkStatus(t, name, 202, "")
		}
		svg := part{name: "files", file: "a.png", kind: "image/png", data: "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"}
		cut := f
		cut.data = cut.data[:40]
		m.unchanged("odd forms", func() {
			for _, x := range []struct {
				name   string
				parts  []part
				status int
				code   string
				detail string
			}{
				{"no payload", []part{f}, 400, "INVALID_REQUEST", `"path":"payload"`},
				{"nothing", nil, 400, "INVALID_REQUEST", ""},
				{"two payloads", []part{p, p, f}, 400, "INVALID_REQUEST", `"path":"payload"`},
				{"an empty payload", []part{payload(""), f}, 400, "INVALID_REQUEST", ""},
				{"an empty payload and another", []part{payload(""), p, f}, 400, "INVALID_REQUEST", `"path":"payload"`},
				{"65 parts", append(repeated(note, 63), p, f), 400, "INVALID_REQUEST", `"path":"body"`},
				{"a file that nothing names", []part{good, f}, 400, "INVALID_REQUEST", `"path":"files.0"`},
				{"a second file that nothing names", []part{p, f, f}, 400, "INVALID_REQUEST", `"path":"files.1"`},
				{"a file that is named twice", []part{payload(m.body("one", `,"inputs":{"pictures":[{"kind":"MULTIPART","file_index":0},{"kind":"MULTIPART","file_index":0}]}`)), f}, 400, "INVALID_REQUEST", "twice"},
				{"a sound that is a picture", []part{payload(m.body("one", `,"inputs":{"sound":{"kind":"MULTIPART","file_index":0}}`)), f}, 400, "INVALID_REQUEST", "inputs.sound"},
				{"SVG", []part{p, svg}, 415, "UNSUPPORTED_MEDIA_TYPE", ""},
				{"an empty file", []part{p, file(nil)}, 415, "UNSUPPORTED_MEDIA_TYPE", ""},
				{"a PNG that says it is a page", []part{p, claimed(f, "text/html")}, 415, "UNSUPPORTED_MEDIA_TYPE", ""},
				{"half a picture", []part{p, cut}, 400, "INVALID_REQUEST", "files.0"},
				{"half a second picture", []part{payload(m.body("one", named(2))), f, cut}, 400, "INVALID_REQUEST", "files.1"},
			} {
				if a := m.createForm(x.parts).checkStatus(t, x.name, x.status, x.code); !strings.Contains(string(a.body), x.detail) {
					t.Errorf("%s = %s, want %s", x.name, a.body, x.detail)
				}
			}
		})
		m.oddBytes(p, f)
	})
}

// claimed is a part that says what kind it is.
func claimed(p part, kind string) part {
	p.kind = kind
	return p
}

// oddBytes sends forms that no writer of forms makes.
func (m *runFixture) oddBytes(p, f part) {
	kind, whole := form(p, f)
	_, boundary, _ := strings.Cut(kind, "boundary=")
	text := whole.String()
	head := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"payload\"\r\n"
	flood := head + strings.Repeat("X-A: "+strings.Repeat("b", 1000)+"\r\n", 100) + "\r\n{}\r\n--" + boundary + "--\r\n"
	m.unchanged("odd bytes", func() {
		for _, x := range []struct {
			name, kind, body string
			status           int
			code             string
		}{
			{"no boundary", "multipart/form-data", text, 400, "INVALID_REQUEST"},
			{"an empty boundary", `multipart/form-data; boundary=""`, text, 400, "INVALID_REQUEST"},
			{"another boundary", "multipart/form-data; boundary=other", text, 400, "INVALID_REQUEST"},
			{"a longer boundary", kind + "x", text, 400, "INVALID_REQUEST"},
			{"mixed", "multipart/mixed; boundary=" + boundary, text, 415, "UNSUPPORTED_MEDIA_TYPE"},
			{"a form of another kind", "application/x-www-form-urlencoded", "payload=%7B%7D", 415, "UNSUPPORTED_MEDIA_TYPE"},
			{"cut off in the file", kind, text[:len(text)-len(boundary)-20], 400, "INVALID_REQUEST"},
			{"cut off before the end", kind, text[:len(text)-6], 400, "INVALID_REQUEST"},
			{"cut off in a header", kind, text[:len(boundary)+30], 400, "INVALID_REQUEST"},
			{"empty", kind, "", 400, "INVALID_REQUEST"},
			{"a flood of headers", kind, flood, 400, "INVALID_REQUEST"},
			{"one endless header", kind, head + "X: " + strings.Repeat("y", 1<<20) + "\r\n\r\n{}\r\n--" + boundary + "--\r\n", 400, "INVALID_REQUEST"},
			{"a long preamble", kind, strings.Repeat("preamble\r\n", 100_000) + text, 400, "INVALID_REQUEST"},
			{"a broken header", kind, "--" + boundary + "\r\nno header\r\n\r\n{}\r\n--" + boundary + "--\r\n", 400, "INVALID_REQUEST"},
			{"a form inside", kind, "--" + boundary + "\r\nContent-Disposition: form-data; name=\"files\"\r\nContent-Type: multipart/mixed; boundary=in\r\n\r\n--in\r\n\r\nx\r\n--in--\r\n--" + boundary + "--\r\n", 415, "UNSUPPORTED_MEDIA_TYPE"},
		} {
			m.send("POST", "/api/v2/generate", x.kind, strings.NewReader(x.body)).checkStatus(m.t, x.name, x.status, x.code)
			if a := m.send("POST", "/api/v2/uploads", x.kind, strings.NewReader(strings.ReplaceAll(x.body, `"files"`, `"other"`))); a.StatusCode/100 != 4 {
				m.t.Errorf("%s as an upload = %d %s", x.name, a.StatusCode, a.body)
			}
		}
	})
	for name, kind := range map[string]string{"quoted": `multipart/form-data; boundary="` + boundary + `"`, "in capitals": `Multipart/Form-Data; Boundary=` + boundary, "with more": kind + "; charset=utf-8"} {
		m.send("POST", "/api/v2/generate", kind, strings.NewReader("preamble\r\n"+text+"epilogue")).checkStatus(m.t, "a boundary "+name, 202, "")
	}
}

func repeated(p part, n int) (all []part) {
	for range n {
		all = append(all, p)
	}
	return all
}

// TestAbortedRequestsLeaveNothing stops in the middle of files.
func TestAbortedRequestsLeaveNothing(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		kind, whole := form(payload(m.body("one", named(2))), file(picture(30, 30)), file(tone(1<<20)))
		m.unchanged("aborted requests", func() {
			for _, path := range []string{"/api/v2/generate", "/api/v2/uploads"} {
				for _, most := range []int{10, 400, 5000, 1 << 19, whole.Len() - 10} {
					from, to := io.Pipe()
					go func() {
						to.Write(whole.Bytes()[:most])
						to.CloseWithError(errors.New("the client stops"))
					}()
					r, err := http.NewRequestWithContext(t.Context(), "POST", m.url+path, from)
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Authorization", "Bearer "+m.token)
					r.Header.Set("Content-Type", kind)
					if res, err := http.DefaultClient.Do(r); err == nil {
						res.Body.Close()
						if res.StatusCode != 408 {
							t.Errorf("%s after %d bytes = %d", path, most, res.StatusCode)
						}
					}
				}
			}
			m.shut() // it hears of the end a little later
		})
	})
}

// TestStoreAway takes the folder of the files away: that is our fault and not
// the sender's.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	m := newRunFixture(t, dbtest.Open(t, dbtest.URL(t, "sqlite")), limits, setHighLimits)
	for _, folder := range []string{"tmp", "data"} {
		if err := os.RemoveAll(m.folder + "/" + folder); err != nil {
			t.Fatal(err)
		}
	}
	m.unchangedRows("the store is away", func() {
		for range 2 {
			m.createForm([]part{payload(m.body("one", named(1))), file(picture(2, 2))}).checkStatus(t, "create", 500, "INTERNAL")
			m.send("POST", "/api/v2/uploads", "image/png", bytes.NewReader(picture(2, 2))).checkStatus(t, "upload", 500, "INTERNAL")
		}
	})
}

// counted is a listener that counts what comes in.
type counted struct {
	net.Listener
	n *atomic.Int64
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.n}, err
}

type countedConn struct {
	net.Conn
	n *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// sendEndless opens a connection, announces a body of so many bytes and sends as much
// of it as is taken, up to 32 MiB. It gives the answer and what was read of it.
func (m *runFixture) sendEndless(length string, header string) (answer, int64) {
	m.t.Helper()
	return m.sendEndlessTo("/api/v2/generate", "multipart/form-data; boundary=b", length, header)
}

func (m *runFixture) sendEndlessTo(path, kind, length, header string) (answer, int64) {
	m.t.Helper()
	before := m.arrived.Load()
	c, err := net.Dial("tcp", strings.TrimPrefix(m.url, "http://"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n%s%s\r\n", path, m.token, kind, length, header)
	if err != nil {
		m.t.Fatal(err)
	}
	go io.Copy(c, io.LimitReader(endless{}, 32<<20))
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: "POST"})
	if err != nil {
		m.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return answer{res, body}, m.arrived.Load() - before
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLargeBodiesAreRefusedEarly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, func(c *generation.Settings) { c.CreatePerMinute = 1 })
		const large = "Content-Length: 262144000\r\n"
		a, n := m.sendEndless("Content-Length: 262144001\r\n", "")
		if a.checkStatus(t, "above the limit", 413, "PAYLOAD_TOO_LARGE"); n > 1<<20 || a.Header.Get("Connection") != "close" && !a.Close {
			t.Errorf("%d bytes were read of a body above the limit, and the connection is kept: %v", n, a.Header)
		}
		m.create(m.body("one", ""), "Idempotency-Key", "k").checkStatus(t, "the only one", 202, "")
		for name, length := range map[string]string{"announced": large, "chunked": "Transfer-Encoding: chunked\r\n"} {
			a, n := m.sendEndless(length, "")
			if a.checkStatus(t, name, 429, "RATE_LIMITED"); n > 1<<20 || !a.Close || a.Header.Get("Retry-After") == "" || a.Header.Get("RateLimit") == "" || a.Header.Get("RateLimit-Policy") == "" {
				t.Errorf("%s: %d bytes were read, headers %v", name, n, a.Header)
			}
		}
		// A key that is known is worth reading on for.
		kind, body := form(payload(m.body("one", "")), part{name: "other", data: strings.Repeat("x", 2<<20)})
		b := m.send("POST", "/api/v2/generate", kind, body, "Idempotency-Key", "k").checkStatus(t, "a large replay", 202, "")
		if b.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("a large replay = %s", b.body)
		}
		m.create(m.body("one", "")).checkStatus(t, "a small one", 429, "RATE_LIMITED")
	})
}
