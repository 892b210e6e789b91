package httpd_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"atelier/internal/web/httpd"
)

// numbered is a file in which every byte can be told from its neighbours.
func numbered(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// serveFile answers one request and counts the parts that were opened.
func serveFile(file []byte, method, ranged string) (response *httptest.ResponseRecorder, opened int) {
	request := httptest.NewRequest(method, "/", nil)
	if ranged != "" {
		request.Header.Set("Range", ranged)
	}
	response = httptest.NewRecorder()
	response.Header().Set("Content-Type", "image/png")
	_ = httpd.ServeFile(response, request, int64(len(file)), func(offset, length int64) (io.ReadCloser, error) {
		opened++
		return io.NopCloser(bytes.NewReader(file[offset : offset+length])), nil
	})
	return response, opened
}

func TestRanges(t *testing.T) {
	t.Parallel()
	var many, spread []string
	for i := range 5400 {
		many = append(many, fmt.Sprintf("%d-%d", i*18, i*18))
		spread = append(spread, fmt.Sprintf("%d-%d", i*180, i*180))
	}
	for _, c := range []struct {
		ranged string
		status int
		parts  string // as Content-Range has them
	}{
		{"", 200, ""},
		{"bytes=0-", 206, "0-999999"},
		{"bytes=0-999999", 206, "0-999999"},
		{"bytes=5-9", 206, "5-9"},
		{"bytes=-10", 206, "999990-999999"},
		{"bytes=-2000000", 206, "0-999999"},
		{"bytes=999999-99999999999999999999999", 206, "999999-999999"},
		{"bytes= 5-9 ,, 10-19", 206, "5-19"},
		{"bytes=0-9,5-20,21-30,100-110", 206, "0-110"}, // overlapping, touching, near
		{"bytes=5000-5009,0-9", 206, "0-9 5000-5009"},
		{"bytes=0-0,1000-1000,2000-2000,3000-3000", 206, "0-0 1000-1000 2000-2000 3000-3000"},
		{"bytes=0-0,1000-1000,2000-2000,3000-3000,4000-4000", 200, ""},
		{"bytes=0-9,2000000-2000001", 206, "0-9"},
		{"bytes=" + strings.Join(many, ","), 206, "0-97182"},
		{"bytes=" + strings.Join(spread, ","), 200, ""},
		{"bytes=1000000-", 416, ""},
		{"bytes=1000000-1000001,2000000-2000001", 416, ""},
		{"bytes=-0", 416, ""},
		{"bytes=9-5", 416, ""},
		{"bytes=x-y", 416, ""},
		{"bytes=+1-5", 416, ""},
		{"bytes=5", 416, ""},
		{"lines=0-9", 416, ""},
	} {
		name := c.ranged[:min(60, len(c.ranged))]
		file := numbered(1_000_000)
		response, opened := serveFile(file, http.MethodGet, c.ranged)
		if response.Code != c.status {
			t.Errorf("%s = %d, want %d", name, response.Code, c.status)
			continue
		}
		switch c.status {
		case 416:
			if opened != 0 || response.Header().Get("Content-Range") != "bytes */1000000" {
				t.Errorf("%s: %d parts opened, Content-Range %q", name, opened, response.Header().Get("Content-Range"))
			}
			continue
		case 200:
			if opened != 1 || !bytes.Equal(response.Body.Bytes(), file) {
				t.Errorf("%s: %d parts opened, %d bytes, want the whole file once", name, opened, response.Body.Len())
			}
			continue
		}
		got := readParts(t, response, file)
		if got != c.parts || opened != len(strings.Fields(c.parts)) {
			t.Errorf("%s: parts %q, %d opened, want %q", name, got, opened, c.parts)
		}
	}
	if response, opened := serveFile(numbered(10), http.MethodHead, "bytes=0-3"); opened != 0 || response.Code != 206 || response.Header().Get("Content-Length") != "4" {
		t.Errorf("HEAD = %d, %d parts opened", response.Code, opened)
	}
	if response, opened := serveFile(nil, http.MethodGet, ""); opened != 0 || response.Code != 200 {
		t.Errorf("an empty file = %d, %d parts opened", response.Code, opened)
	}
}

// readParts compares the parts of a 206 with the file and gives where they are.
func readParts(t *testing.T, response *httptest.ResponseRecorder, file []byte) string {
	t.Helper()
	compare := func(where string, body io.Reader) string {
		var first, last, size int
		if _, err := fmt.Sscanf(where, "bytes %d-%d/%d", &first, &last, &size); err != nil {
			t.Fatalf("Content-Range %q: %v", where, err)
		}
		got, err := io.ReadAll(body)
		if err != nil || !bytes.Equal(got, file[first:last+1]) {
			t.Errorf("%s: other bytes, %v", where, err)
		}
		return fmt.Sprintf("%d-%d", first, last)
	}
	kind, params, err := mime.ParseMediaType(response.Header().Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "multipart/byteranges" {
		return compare(response.Header().Get("Content-Range"), response.Body)
	}
	var all []string
	parts := multipart.NewReader(response.Body, params["boundary"])
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return strings.Join(all, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, compare(part.Header.Get("Content-Range"), part))
	}
}

// TestUnreadableFileIsNotBegun answers nothing for a file whose first bytes
// cannot be read, so that the error can be answered.
func TestUnreadableFileIsNotBegun(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, open := range []httpd.OpenPart{
		func(int64, int64) (io.ReadCloser, error) { return nil, broken },
		func(int64, int64) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("some"), failing{broken})), nil
		},
	} {
		for _, ranged := range []string{"", "bytes=0-", "bytes=5-90", "bytes=0-9,5000-5009"} {
			request := httptest.NewRequest(http.MethodGet, "/", nil)
			request.Header.Set("Range", ranged)
			response := &headerCounter{ResponseRecorder: httptest.NewRecorder()}
			response.Header().Set("Content-Type", "image/png")
			response.Header().Set("Etag", `"x"`)
			err := httpd.ServeFile(response, request, 10_000, open)
			if !errors.Is(err, broken) || response.began {
				t.Errorf("%q: error %v, begun %v", ranged, err, response.began)
			}
			if left := response.Header(); len(left) != 0 {
				t.Errorf("%q: headers %v are left", ranged, left)
			}
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// headerCounter notices that an answer began.
type headerCounter struct {
	*httptest.ResponseRecorder
	began bool
}

func (h *headerCounter) WriteHeader(status int) {
	h.began = true
	h.ResponseRecorder.WriteHeader(status)
}

func (h *headerCounter) Write(b []byte) (int, error) {
	h.began = true
	return h.ResponseRecorder.Write(b)
}
