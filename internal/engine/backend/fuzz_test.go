package backend_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"strings"
	"testing"

	"atelier/internal/engine/backend"
)

// FuzzDataReader proves that a data: URI is refused, or gives the bytes that it
// was made of, and never more bytes than it has characters.
func FuzzDataReader(f *testing.F) {
	for _, uri := range []string{"data:,", "data:text/plain;base64,YSBmb3g=", "data:;BASE64,YQ", "data:,a%20fox", "data:,%zz", "data:text/plain;charset=utf-8;base64,Zm94\n", "data:base64", "http://x", "data:;base64,====", "data:image/png;base64,iVBO Rw0K"} {
		f.Add(uri, []byte("fox"))
	}
	f.Fuzz(func(t *testing.T, uri string, content []byte) {
		if r, err := backend.DataReader(uri); err == nil {
			if b, _ := io.ReadAll(r); len(b) > len(uri) {
				t.Errorf("%q has %d bytes", uri, len(b))
			}
		}
		for _, own := range []string{"data:;base64," + base64.StdEncoding.EncodeToString(content), "data:," + url.PathEscape(string(content))} {
			r, err := backend.DataReader(own)
			if err != nil {
				t.Fatalf("%q: %v", own, err)
			}
			if b, err := io.ReadAll(r); err != nil || string(b) != string(content) {
				t.Errorf("%q = %q, %v", own, b, err)
			}
		}
	})
}

// FuzzFindFiles proves that the files found in a response are strings of that
// response, and that a response in an object or a list has the same files.
func FuzzFindFiles(f *testing.F) {
	for _, text := range []string{`"https://a/b.png"`, `{"url": "https://a/b", "content_type": "image/png"}`, `[["https://a"], {"x": {"url": "data:,"}}]`, `{"url": 1}`, `{"url": "https://a"`, `null`, strings.Repeat("[", 100), `{"images": [{"url": "https://a"}, {"url": "https://b"}], "text": "https://c"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		files := backend.FindFiles(answer)
		if len(files) > len(answer) {
			t.Errorf("%d files in %d bytes", len(files), len(answer))
		}
		if !json.Valid(answer) {
			return
		}
		wrapped := backend.FindFiles([]byte(`[` + string(answer) + `]`))
		if len(wrapped) > len(files) {
			t.Errorf("%q has %d files, in a list %d", answer, len(files), len(wrapped))
		}
		for i := range wrapped { // the list is one level deeper, so it may have fewer
			if wrapped[i] != files[i] {
				t.Errorf("%q has %+v, in a list %+v", answer, files[i], wrapped[i])
			}
		}
	})
}
