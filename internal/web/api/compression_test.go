package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/web/api/wire"
)

// unzip reads the one gzip stream that a body is.
func unzip(t *testing.T, body []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Multistream(false) // many clients read one stream and no more
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestCompressedPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := startService(t, db, limits)
		s.setCatalog(manyTools(40))

		for _, path := range []string{"/api/v2/openapi.json", "/api/v2/tools", "/api/v2/tools?limit=20"} {
			plain := s.sendRequest("GET", path, "Accept-Encoding", "identity")
			if plain.Header.Get("Content-Encoding") != "" || !strings.Contains(plain.Header.Get("Vary"), "Accept-Encoding") {
				t.Errorf("%s for those who do not take gzip: %v", path, plain.Header)
			}
			for range 2 { // made, and kept
				zipped := s.sendRequest("GET", path, "Accept-Encoding", "gzip")
				if zipped.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(zipped.Header.Get("Vary"), "Accept-Encoding") {
					t.Fatalf("%s for those who take gzip: %v", path, zipped.Header)
				}
				if got := zipped.Header.Get("Content-Length"); got != strconv.Itoa(len(zipped.body)) {
					t.Errorf("%s: Content-Length %s of %d bytes", path, got, len(zipped.body))
				}
				if !sameBody(t, unzip(t, zipped.body), plain.body) {
					t.Errorf("%s is something else when it is compressed", path)
				}
				if len(zipped.body)*2 > len(plain.body) {
					t.Errorf("%s: %d of %d bytes", path, len(zipped.body), len(plain.body))
				}
				t.Logf("%s: %d bytes, compressed %d", path, len(plain.body), len(zipped.body))

				// Each form has a tag of its own, and is not sent to those who have it.
				tags := map[string]string{"identity": plain.Header.Get("ETag"), "gzip": zipped.Header.Get("ETag")}
				if tags["identity"] == tags["gzip"] {
					t.Errorf("%s: both forms have the tag %s", path, tags["gzip"])
				}
				for has, tag := range tags {
					for takes := range tags {
						want := http.StatusOK
						if has == takes {
							want = http.StatusNotModified
						}
						again := s.sendRequest("GET", path, "Accept-Encoding", takes, "If-None-Match", tag)
						if again.StatusCode != want || again.Header.Get("ETag") != tags[takes] {
							t.Errorf("%s as %s for who has it as %s = %d %s", path, takes, has, again.StatusCode, again.Header.Get("ETag"))
						}
					}
				}

				head := s.sendRequest("HEAD", path, "Accept-Encoding", "gzip")
				for _, name := range []string{"Content-Encoding", "Content-Type", "Content-Length", "ETag", "Vary"} {
					if head.Header.Get(name) != zipped.Header.Get(name) {
						t.Errorf("HEAD %s: %s is %q, of GET %q", path, name, head.Header.Get(name), zipped.Header.Get(name))
					}
				}
				if len(head.body) != 0 {
					t.Errorf("HEAD %s has a body", path)
				}
			}
			if part := s.sendRequest("GET", path, "Accept-Encoding", "gzip", "Range", "bytes=0-9"); part.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s with a range is compressed", path)
			}
		}

		// The cursor of a compressed page is the caller's own.
		var page wire.ToolList
		zipped := s.sendRequest("GET", "/api/v2/tools?limit=20", "Accept-Encoding", "gzip")
		if err := json.Unmarshal(unzip(t, zipped.body), &page); err != nil {
			t.Fatal(err)
		}
		if next := getJSON[wire.ToolList](s, "/api/v2/tools?limit=20&cursor="+*page.NextCursor); len(next.Data) != 20 {
			t.Errorf("after a compressed page come %d tools, want 20", len(next.Data))
		}
	})
}

// sameBody compares two answers but for their cursors, which are never the same.
func sameBody(t *testing.T, a, b []byte) bool {
	t.Helper()
	var all [2]map[string]any
	for i, body := range [][]byte{a, b} {
		if err := json.Unmarshal(body, &all[i]); err != nil {
			t.Fatal(err)
		}
		delete(all[i], "next_cursor")
	}
	first, _ := json.Marshal(all[0])
	second, _ := json.Marshal(all[1])
	return bytes.Equal(first, second)
}

// TestSecretsAreNotCompressed: of an answer with a secret in it nobody may learn
// anything from its length.
func TestSecretsAreNotCompressed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := startService(t, db, limits)
		for _, path := range []string{"/api/v2/me", "/api/v2/webhook-secret", "/api/v2/library", "/api/v2/generations", "/api/v2/uploads", "/api/v2/boards", "/.well-known/jwks.json"} {
			a := s.sendRequest("GET", path, "Accept-Encoding", "gzip")
			if a.StatusCode != http.StatusOK || a.Header.Get("Content-Encoding") != "" || strings.Contains(a.Header.Get("Vary"), "Accept-Encoding") {
				t.Errorf("%s = %d, %v", path, a.StatusCode, a.Header)
			}
		}
		if small := s.sendRequest("GET", "/api/v2/kits", "Accept-Encoding", "gzip"); small.Header.Get("Content-Encoding") != "" {
			t.Errorf("%d bytes are compressed", len(small.body))
		}
	})
}
