package api_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/sample"
	"atelier/internal/web/api"
	"atelier/internal/web/httpd"
)

// chunkedBody hides the length of a body, so that it is sent in chunks.
type chunkedBody struct{ io.Reader }

// TestWholeBodyLimit sends bodies of exactly the limit and of one byte more,
// wherever the last bytes stand, and whether the length is announced or not.
func TestWholeBodyLimit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		const most = 20_000
		m := newRunFixture(t, db, small(func(l *api.Limits) { l.RequestBytes = most }), setHighLimits)
		create := payload(m.body("one", `,"inputs":{"sound":{"kind":"MULTIPART","file_index":0}}`))
		sound := part{name: "file", file: "a.wav", kind: "audio/wav", data: string(tone(400))}
		padding := func(n int) part { return part{name: "other", data: strings.Repeat("x", n)} }
		for _, x := range []struct {
			name, path string
			status     int
			form       func(n int) (kind string, body *bytes.Buffer) // with n bytes that can be spared
		}{
			{"a part for others", "/api/v2/generate", 202, func(n int) (string, *bytes.Buffer) {
				return form(create, padding(n), file(tone(400)))
			}},
			{"an epilogue", "/api/v2/generate", 202, func(n int) (string, *bytes.Buffer) {
				kind, body := form(create, file(tone(400)))
				body.WriteString(strings.Repeat("x", n))
				return kind, body
			}},
			{"an upload", "/api/v2/uploads", 201, func(n int) (string, *bytes.Buffer) { return form(sound, padding(n)) }},
		} {
			_, empty := x.form(0)
			spare := most - empty.Len()
			for _, chunked := range []bool{false, true} {
				send := func(n int) answer {
					kind, body := x.form(n)
					if chunked {
						return m.send("POST", x.path, kind, chunkedBody{body})
					}
					return m.send("POST", x.path, kind, body)
				}
				what := fmt.Sprintf("%s, chunked %v", x.name, chunked)
				send(spare).checkStatus(t, what, x.status, "")
				m.unchanged(what, func() {
					details := send(spare+1).checkStatus(t, what+", one byte more", 413, "PAYLOAD_TOO_LARGE").readError(t).Details
					if details["limit_bytes"] != float64(most) || details["path"] != "body" {
						t.Errorf("%s: details = %v", what, details)
					}
				})
			}
		}
		// A file that ends behind the limit is no file that is too large.
		kind, body := form(create, file(tone(most)))
		m.send("POST", "/api/v2/generate", kind, chunkedBody{body}).checkStatus(t, "a file across the limit", 413, "PAYLOAD_TOO_LARGE")
	})
}

// TestLargestBody sends the real limit once: 262,144,000 bytes.
func TestLargestBody(t *testing.T) {
	t.Parallel()
	sample.Skip(t)
	m := newRunFixture(t, dbtest.Open(t, dbtest.URL(t, "sqlite")), limits, setHighLimits)
	const most = 262_144_000
	kind, whole := form(payload(m.body("one", "")), part{name: "other", data: "*"})
	head, tail, _ := strings.Cut(whole.String(), "*")
	for n, status := range map[int64]int{most: 202, most + 1: 413} {
		fill := io.LimitReader(endless{}, n-int64(len(head)+len(tail)))
		a := m.send("POST", "/api/v2/generate", kind, chunkedBody{io.MultiReader(strings.NewReader(head), fill, strings.NewReader(tail))})
		if a.StatusCode != status {
			t.Errorf("%d bytes = %d %s, want %d", n, a.StatusCode, a.body, status)
		}
	}
}

// sendPart sends the head of a request and a part of its body, ends the sending
// direction where it is told to, and reads the answer.
func (m *runFixture) sendPart(method, path, kind, framing, body string, half bool) answer {
	m.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(m.url, "http://"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n%s\r\n\r\n%s", method, path, m.token, kind, framing, body); err != nil {
		m.t.Fatal(err)
	}
	if half {
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			m.t.Fatal(err)
		}
	}
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		m.t.Fatal(path, framing, len(body), err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return answer{res, text}
}

// TestBodiesNotWhole stops in the middle of bodies and still reads the answer.
func TestBodiesNotWhole(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		kind, whole := form(payload(m.body("one", named(1))), file(picture(30, 30)))
		text := whole.String()
		inFile := strings.Index(text, "PNG") + 40
		fileKind, uploaded := form(part{name: "file", file: "a.wav", data: string(tone(4000))})
		json := m.body("one", "")
		m.unchanged("bodies that stop", func() {
			for _, x := range []struct{ name, method, path, kind, whole, sent string }{
				{"a create", "POST", "/api/v2/generate", "application/json", json, json[:20]},
				{"a price", "POST", "/api/v2/generate/preview-cost", "application/json", json, json[:20]},
				{"a board", "POST", "/api/v2/boards", "application/json", `{"name":"x"}`, `{"na`},
				{"a form, in its payload", "POST", "/api/v2/generate", kind, text, text[:120]},
				{"a form, in its file", "POST", "/api/v2/generate", kind, text, text[:inFile]},
				{"a form, before its last boundary", "POST", "/api/v2/generate", kind, text, text[:len(text)-6]},
				{"a form, behind its last boundary", "POST", "/api/v2/generate", kind, text + "epilogue", text},
				{"an upload", "POST", "/api/v2/uploads", "audio/wav", string(tone(4000)), string(tone(4000)[:3000])},
				{"an upload as a form", "POST", "/api/v2/uploads", fileKind, uploaded.String(), uploaded.String()[:3000]},
				{"nothing of an upload", "POST", "/api/v2/uploads", "audio/wav", string(tone(4000)), ""},
			} {
				for framing, sent := range map[string]string{
					fmt.Sprintf("Content-Length: %d", len(x.whole)): x.sent,
					"Transfer-Encoding: chunked":                    fmt.Sprintf("%x\r\n%s", len(x.whole), x.sent),
				} {
					what := x.name + ", " + framing
					a := m.sendPart(x.method, x.path, x.kind, framing, sent, true).checkStatus(t, what, 408, "REQUEST_TIMEOUT")
					if !a.readError(t).Retryable || !a.Close {
						t.Errorf("%s = %s, closes %v, want it retryable and the connection closed", what, a.body, a.Close)
					}
				}
			}
			// What arrived whole and is broken stays broken, however often it is sent.
			m.sendPart("POST", "/api/v2/generate", "application/json", "Transfer-Encoding: chunked", "5\r\nabcde\r\nnonsense\r\n", false).checkStatus(t, "malformed chunks", 400, "INVALID_REQUEST")
			m.send("POST", "/api/v2/generate", kind, strings.NewReader(text[:len(text)-6])).checkStatus(t, "a form without its end", 400, "INVALID_REQUEST")
		})
	})
}

// TestSlowBodies turns the server's clock back by nearly the time that a body has
// to begin with, so that a sender who pauses is too slow at once.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	m := newRunFixture(t, dbtest.Open(t, dbtest.URL(t, "sqlite")), limits, setHighLimits)
	m.parts.Now = func() time.Time { return time.Now().Add(-30*time.Second + 200*time.Millisecond) }
	h, err := api.New(m.parts)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpd.New(h, httpd.Options{
		Log:     slog.New(slog.DiscardHandler),
		Metrics: prometheus.NewRegistry(),
		Health:  &httpd.Health{Now: time.Now},
		Now:     time.Now,
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	kind, whole := form(payload(m.body("one", named(1))), file(picture(30, 30)))
	m.unchanged("slow bodies", func() {
		for name, a := range map[string]answer{
			"a create":  m.sendPart("POST", "/api/v2/generate", kind, fmt.Sprintf("Content-Length: %d", whole.Len()), whole.String()[:whole.Len()/2], false),
			"an upload": m.sendPart("POST", "/api/v2/uploads", "image/png", "Content-Length: 1000", string(picture(30, 30)[:100]), false),
		} {
			if a.checkStatus(t, name, 408, "REQUEST_TIMEOUT"); !a.readError(t).Retryable {
				t.Errorf("%s = %s", name, a.body)
			}
		}
	})
}

// TestRefusedPartsAreNamed looks at details.path of every 413 and 415.
func TestRefusedPartsAreNamed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		const most = 4000
		m := newRunFixture(t, db, small(func(l *api.Limits) { l.FileBytes, l.JSONBytes = most, 3000 }), setHighLimits)
		one := payload(m.body("one", named(1)))
		two := payload(m.body("one", named(2)))
		good := file(picture(2, 2))
		large := file(tone(most + 4))
		text := file([]byte("hello"))
		many := make([]part, 13)
		for i := range many {
			many[i] = good
		}
		refs := strings.TrimSuffix(strings.Repeat(`{"kind":"UPLOAD_REF","id":"abcdefghij0123456789"},`, 13), ",")
		createForm := func(parts ...part) answer { return m.createForm(parts) }
		upload := func(parts ...part) answer {
			kind, body := form(parts...)
			return m.send("POST", "/api/v2/uploads", kind, body)
		}
		send := func(path, kind, body string) answer { return m.send("POST", path, kind, strings.NewReader(body)) }
		m.unchanged("refused parts", func() {
			for _, x := range []struct {
				name   string
				answer answer
				status int
				code   string
				path   string
			}{
				{"a large file", createForm(one, large), 413, "UPLOAD_TOO_LARGE", "files.0"},
				{"a large second file", createForm(two, good, large), 413, "UPLOAD_TOO_LARGE", "files.1"},
				{"text", createForm(one, text), 415, "UNSUPPORTED_MEDIA_TYPE", "files.0"},
				{"text as the second file", createForm(two, good, text), 415, "UNSUPPORTED_MEDIA_TYPE", "files.1"},
				{"a file that says it is a page", createForm(one, claimed(good, "text/html")), 415, "UNSUPPORTED_MEDIA_TYPE", "files.0"},
				{"a large payload", createForm(payload(strings.Repeat(" ", 3001)), good), 413, "PAYLOAD_TOO_LARGE", "payload"},
				{"thirteen files", createForm(append([]part{one}, many...)...), 413, "TOO_MANY_INPUT_FILES", "files.12"},
				{"thirteen references", m.create(m.body("one", `,"inputs":{"pictures":[`+refs+`]}`)), 413, "TOO_MANY_INPUT_FILES", "inputs.pictures.12"},
				{"a large body", m.create(strings.Repeat(" ", 3001)), 413, "PAYLOAD_TOO_LARGE", "body"},
				{"a large board", send("/api/v2/boards", "application/json", strings.Repeat(" ", 3001)), 413, "PAYLOAD_TOO_LARGE", "body"},
				{"a create of another type", send("/api/v2/generate", "text/plain", "x"), 415, "UNSUPPORTED_MEDIA_TYPE", "body"},
				{"a board of another type", send("/api/v2/boards", "text/plain", "x"), 415, "UNSUPPORTED_MEDIA_TYPE", "body"},
				{"a large upload", send("/api/v2/uploads", "audio/wav", string(tone(most+4))), 413, "UPLOAD_TOO_LARGE", "file"},
				{"a large upload in a form", upload(part{name: "file", data: string(tone(most + 4))}), 413, "UPLOAD_TOO_LARGE", "file"},
				{"an upload of text", send("/api/v2/uploads", "image/png", "hello"), 415, "UNSUPPORTED_MEDIA_TYPE", "file"},
				{"an upload of text in a form", upload(part{name: "file", data: "hello"}), 415, "UNSUPPORTED_MEDIA_TYPE", "file"},
				{"an upload without a type", send("/api/v2/uploads", "", "hello"), 415, "UNSUPPORTED_MEDIA_TYPE", "body"},
			} {
				if got := x.answer.checkStatus(t, x.name, x.status, x.code).readError(t).Details["path"]; got != x.path {
					t.Errorf("%s: path = %v, want %s", x.name, got, x.path)
				}
			}
		})
	})
}

// TestTwoFilesInOneUpload sends what has no place in the answer.
func TestTwoFilesInOneUpload(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		one := part{name: "file", file: "a.png", data: string(picture(3, 2))}
		m.unchanged("two files", func() {
			for name, parts := range map[string][]part{"two": {one, one}, "something between": {one, {name: "x", data: "y"}, one}, "an empty one": {one, {name: "file"}}} {
				kind, body := form(parts...)
				a := m.send("POST", "/api/v2/uploads", kind, body).checkStatus(t, name, 400, "INVALID_REQUEST")
				if !strings.Contains(string(a.body), `"path":"file"`) {
					t.Errorf("%s = %s", name, a.body)
				}
			}
		})
	})
}
