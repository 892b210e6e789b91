package filebody_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/web/api/filebody"
)

// FuzzEachPart proves that a multipart body is read to its end or refused as
// invalid, that no more parts are passed on than allowed, and that the parts are
// written and read again without a change.
func FuzzEachPart(f *testing.F) {
	for _, body := range []string{
		"--b\r\n\r\na\r\n--b--\r\n",
		"--b\r\nContent-Disposition: form-data; name=\"payload\"\r\n\r\n{}\r\n--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"../a\"\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n--b--\r\n",
		"--b\r\n\r\na\r\n--b", "--b--", "", "preamble\r\n--b\r\nX: y\r\n\r\n\r\n--b--epilogue", "--b\r\nno colon\r\n\r\na\r\n--b--", "--b\n\na\n--b--\n",
		"--b\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=41\r\n--b--\r\n",
	} {
		f.Add([]byte(body))
	}
	type read struct{ name, file, content string }
	readAll := func(kind string, body []byte) (all []read, err error) {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		r.Header.Set("Content-Type", kind)
		err = filebody.EachPart(r, func(p *multipart.Part) error {
			content, err := io.ReadAll(p)
			if err != nil {
				return filebody.Discard(io.MultiReader(bytes.NewReader(nil), failingReader{err}))
			}
			all = append(all, read{p.FormName(), p.FileName(), string(content)})
			return nil
		})
		if err == nil {
			if n, _ := r.Body.Read(make([]byte, 1)); n > 0 {
				return nil, io.ErrShortBuffer
			}
		}
		return all, err
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := readAll("multipart/form-data; boundary=b", body)
		if len(all) > 64 {
			t.Errorf("%d parts", len(all))
		}
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%q = %v", body, err)
			}
			return
		}

		var written bytes.Buffer
		w := multipart.NewWriter(&written)
		for _, p := range all {
			part, err := w.CreatePart(map[string][]string{})
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(part, p.content)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := readAll(w.FormDataContentType(), written.Bytes())
		if err != nil || len(again) != len(all) {
			t.Fatalf("%d parts are read as %d, %v", len(all), len(again), err)
		}
		for i := range all {
			if again[i].content != all[i].content {
				t.Errorf("part %d is %q, want %q", i, again[i].content, all[i].content)
			}
		}
	})
}

// failingReader fails with an error.
type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }
