package backend_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

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

// FuzzEachEvent proves that events that were written as the HTML standard says
// are read as they were, and that no event of any stream is larger than allowed.
func FuzzEachEvent(f *testing.F) {
	for _, stream := range []string{"data: {}\n\n", "event: a\ndata: b\ndata: c\n\n", ": comment\r\n\r\ndata:x\r\n\r\n", "data\n\n", "data: [DONE]\n\ndata: late\n\n", "id: 1\nretry: 2\nevent:x\n\n", "data:\ndata:\n\n", "\n\n\n"} {
		f.Add(stream, "delta", "one\ntwo")
	}
	f.Fuzz(func(t *testing.T, stream, name, data string) {
		const most = 1 << 10
		err := backend.EachEvent(strings.NewReader(stream), most, func(_ string, data []byte) error {
			if len(data) == 0 || len(data) > most {
				t.Errorf("%q has an event of %d bytes", stream, len(data))
			}
			return nil
		})
		if err != nil && !errors.Is(err, backend.ErrTooLarge) {
			t.Errorf("%q: %v", stream, err)
		}

		if strings.ContainsAny(name, "\r\n") || strings.Contains(data, "\r") || data == "" || data == "[DONE]" || len(name)+len(data) > most/2 {
			return
		}
		own := "event: " + name + "\ndata: " + strings.ReplaceAll(data, "\n", "\ndata: ") + "\n\n"
		events := 0
		err = backend.EachEvent(strings.NewReader(own), most, func(gotName string, gotData []byte) error {
			events++
			if gotName != name || string(gotData) != data {
				t.Errorf("%q has the event %q, %q", own, gotName, gotData)
			}
			return nil
		})
		if err != nil || events != 1 {
			t.Errorf("%q has %d events, %v", own, events, err)
		}
	})
}

// FuzzSanitizeText proves that the words of a server become one short line
// of printable characters, and that a log gives a progress between 0 and 1.
func FuzzSanitizeText(f *testing.F) {
	for _, text := range []string{"", "no GPU at http://10.0.0.1:8188/prompt", "line\nline\u2028\x00\xff", "C:\\models\\x /srv/models/x", " 50%|#####     | 5/10", strings.Repeat("é", 400)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := backend.SanitizeText(text)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > 301 || strings.ContainsFunc(got, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }) {
			t.Errorf("%q becomes %q", text, got)
		}
		if p := backend.ProgressInLog(text); !(p >= 0 && p <= 1) {
			t.Errorf("%q has the progress %v", text, p)
		}
	})
}
