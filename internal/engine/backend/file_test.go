package backend_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"atelier/internal/base/netguard"
	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/enginetest"
)

// fetch gives a file's text.
func fetch(t testing.TB, c *backend.Client, ref string) (string, error) {
	t.Helper()
	r, err := c.OpenFile(t.Context(), ref)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

func TestOpen(t *testing.T) {
	t.Parallel()
	s, other := newSite(t), newSite(t)
	s.says("/v1/fox", "own")
	s.leads("/v1/again", "fox")
	s.leads("/v1/away", other.URL+"/fox")
	other.says("/fox", "elsewhere")
	other.leads("/back", s.URL+"/v1/fox")
	c := client(t, s.URL+"/v1", "127.0.0.0/8")
	for ref, want := range map[string]string{
		"/v1/fox": "own", s.URL + "/v1/fox": "own", strings.TrimPrefix(s.URL, "http:") + "/v1/fox": "own", "/v1/again": "own",
		"data:text/plain;base64,YSBmb3g=": "a fox",
		other.URL + "/fox":                "elsewhere", "/v1/away": "elsewhere",
	} {
		if got, err := fetch(t, c, ref); got != want {
			t.Errorf("%s: %q, %v, want %q", ref, got, err, want)
		}
	}
	for _, got := range s.heard() {
		if got != secret {
			t.Errorf("the server got %q, want its secret", got)
		}
	}
	for _, got := range other.heard() {
		if got != "" {
			t.Errorf("another server got the secret %q", got)
		}
	}
	// What another server leads to is its choice, and not the server's.
	if got, err := fetch(t, c, other.URL+"/back"); got != "own" {
		t.Errorf("a way back: %q, %v", got, err)
	}
	if all := s.heard(); all[len(all)-1] != "" {
		t.Error("another server had a call made with the secret")
	}
}

// TestOpenStaysOutside has the server, which is on this machine itself, name
// addresses that only this machine reaches.
func TestOpenStaysOutside(t *testing.T) {
	t.Parallel()
	s, other := newSite(t), newSite(t)
	other.says("/", "internal")
	s.leads("/away", other.URL+"/secrets")
	s.leads("/disk", "file:///etc/passwd")
	s.leads("/round", "/round")
	_, port, _ := strings.Cut(strings.TrimPrefix(other.URL, "http://"), ":")
	c := client(t, s.URL)
	for _, ref := range []string{
		other.URL + "/secrets", "http://localhost:" + port + "/", "http://[::1]:" + port + "/", "http://127.1.2.3:" + port + "/", "http://0.0.0.0:" + port + "/",
		"http://[::ffff:127.0.0.1]:" + port + "/", "http://10.0.0.1/", "http://192.168.1.1/", "http://172.16.0.1/", "http://169.254.169.254/latest/meta-data/", "http://100.64.0.1/",
		"/away", "/disk", "file:///etc/passwd", "ftp://example.com/x", "gopher://127.0.0.1:" + port, "DATA:,x",
		strings.Replace(other.URL, "http://", "http://me:pw@", 1), strings.Replace(s.URL, "http://", "http://me:pw@", 1) + "/x",
	} {
		got, err := fetch(t, c, ref)
		if err == nil || !errors.Is(err, netguard.ErrBlocked) {
			t.Errorf("%s: %q, %v, want that it is not fetched", ref, got, err)
		}
		if e := engine.AsError(backend.CallFailure(t.Context(), err)); e.Transient {
			t.Errorf("%s: %v is tried again", ref, e)
		}
	}
	if n := len(other.heard()); n != 0 {
		t.Errorf("another server of this machine got %d calls", n)
	}
	if _, err := fetch(t, c, "/round"); err == nil {
		t.Error("a redirect in a circle: no error")
	}
	if n := len(s.heard()); n > 8 {
		t.Errorf("the server got %d calls, want a few", n)
	}
	if _, err := fetch(t, c, "/nowhere"); engine.AsError(backend.CallFailure(t.Context(), err)).Code != engine.Failed {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := fetch(t, c, ":"); err == nil {
		t.Error("no address at all: no error")
	}
}

func TestDataURIs(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"data:,":                             "",
		"data:,a%20fox":                      "a fox",
		"data:text/plain;charset=utf-8,a+b":  "a+b",
		"data:;base64,YSBmb3g=":              "a fox",
		"data:;base64,YSBmb3g":               "a fox",
		"data:;BASE64,YSBm\r\nb3g=\n":        "a fox",
		"data:image/png;x=y;base64,AAECAw==": "\x00\x01\x02\x03",
		"data:;base64,":                      "",
	} {
		r, err := backend.DataReader(uri)
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		if b, err := io.ReadAll(r); string(b) != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", uri, b, err, want)
		}
	}
	for _, uri := range []string{"", "data", "data:", "data:;base64", "data:,%zz", "http://x/,"} {
		if _, err := backend.DataReader(uri); err == nil || engine.AsError(backend.CallFailure(t.Context(), err)).Transient {
			t.Errorf("%q: %v, want that it never will be one", uri, err)
		}
	}
	for _, uri := range []string{"data:;base64,%%%%", "data:;base64,Y", "data:;base64,YS=Bmb3g", "data:;base64,YSBmb3g-_"} {
		r, err := backend.DataReader(uri)
		if err != nil {
			t.Errorf("%s: %v before it is read", uri, err)
			continue
		}
		_, err = io.ReadAll(r)
		if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code != engine.Invalid || e.Transient {
			t.Errorf("%s: %v, want that the result is none", uri, err)
		}
	}
}

func TestFileAsDataURI(t *testing.T) {
	t.Parallel()
	f := enginetest.FileFromBytes("image/png", []byte("a fox"))
	if uri, err := backend.DataURI(t.Context(), f, 5); uri != "data:image/png;base64,YSBmb3g=" || err != nil {
		t.Errorf("URI = %q, %v", uri, err)
	}
	if _, err := backend.DataURI(t.Context(), f, 4); engine.AsError(err).Code != engine.Failed {
		t.Errorf("a file that is too large: %v", err)
	}
	f.Size = 1 // it is longer than it says
	if _, err := backend.DataURI(t.Context(), f, 4); err == nil {
		t.Error("a file that is too large and does not say so: no error")
	}
	gone := errors.New("the disk is gone")
	f.Open = func(context.Context) (io.ReadCloser, error) { return nil, gone }
	if _, err := backend.DataURI(t.Context(), f, 4); !errors.Is(err, gone) {
		t.Errorf("a file that cannot be opened: %v", err)
	}
	f.Open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(broken{gone}), nil }
	if _, err := backend.DataURI(t.Context(), f, 4); !errors.Is(err, gone) {
		t.Errorf("a file that breaks off: %v", err)
	}
}

// endless is a file without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// watched is a file that tells when it is closed.
func watched(r io.Reader) (engine.File, chan struct{}) {
	closed := make(chan struct{})
	return engine.File{MimeType: "image/png", Open: func(context.Context) (io.ReadCloser, error) {
		return struct {
			io.Reader
			io.Closer
		}{r, closer(func() error { close(closed); return nil })}, nil
	}}, closed
}

type closer func() error

func (c closer) Close() error { return c() }

func TestForm(t *testing.T) {
	t.Parallel()
	file, closed := watched(strings.NewReader("a fox"))
	body, kind := backend.MultipartForm(t.Context(), []backend.FormPart{
		{Name: "prompt", Value: "a \"fox\"\r\n--x"}, {Name: "image[]", File: &file, FileName: "a\"b\r\nX-Evil: 1.png"},
	})
	_, params, err := mime.ParseMediaType(kind)
	if err != nil {
		t.Fatal(err)
	}
	form, err := multipart.NewReader(body, params["boundary"]).ReadForm(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if got := form.Value["prompt"]; len(got) != 1 || got[0] != "a \"fox\"\r\n--x" {
		t.Errorf("prompt = %q", got)
	}
	head := form.File["image[]"][0]
	if head.Header.Get("X-Evil") != "" || head.Header.Get("Content-Type") != "image/png" || head.Size != 5 {
		t.Errorf("file = %+v", head)
	}
	<-closed
}

// TestFormFlows sends a file that is not there yet.
func TestFormFlows(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	began := make(chan struct{})
	s.mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		parts, err := r.MultipartReader()
		if err != nil {
			t.Error(err)
			return
		}
		p, err := parts.NextPart()
		if err != nil {
			t.Error(err)
			return
		}
		first := make([]byte, 64<<10)
		if _, err := io.ReadFull(p, first); err != nil {
			t.Error(err)
		}
		close(began)
		rest, err := io.Copy(io.Discard, p)
		fmt.Fprintf(w, "%d", rest+int64(len(first)))
		if err != nil {
			t.Error(err)
		}
	})
	r, w := io.Pipe()
	file, closed := watched(r)
	go func() {
		chunk := make([]byte, 32<<10)
		for n := range 100 {
			if n == 10 {
				<-began // so the start of it has arrived
			}
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
		w.Close()
	}()
	body, kind := backend.MultipartForm(t.Context(), []backend.FormPart{{Name: "image", File: &file, FileName: "fox.png"}})
	res, err := client(t, s.URL).Do(t.Context(), backend.Request{Method: "POST", Path: "upload", Body: body, Type: kind})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, _ := io.ReadAll(res.Body); string(got) != "3276800" {
		t.Errorf("arrived = %s", got)
	}
	<-closed
}

// TestFormEnds leaves no file open, however the call ends.
func TestFormEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mux.HandleFunc("POST /refuses", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	s.mux.HandleFunc("POST /takes", func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	c := client(t, s.URL)
	gone := errors.New("the disk is gone")
	for path, file := range map[string]io.Reader{
		"refuses": endless{}, "http://elsewhere.example/": endless{}, "takes": io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), broken{gone}),
	} {
		f, closed := watched(file)
		body, kind := backend.MultipartForm(t.Context(), []backend.FormPart{{Name: "image", File: &f, FileName: "fox.png"}, {Name: "more", Value: "x"}})
		head := make([]byte, 16) // the file is open once something flows
		if _, err := io.ReadFull(body, head); err != nil {
			t.Fatal(err)
		}
		rest := struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), body), body}
		_, err := c.Do(t.Context(), backend.Request{Method: "POST", Path: path, Body: rest, Type: kind})
		if err == nil {
			t.Errorf("%s: no error", path)
		}
		if path == "takes" && !errors.Is(err, gone) {
			t.Errorf("%s: %v, want the file's own error", path, err)
		}
		body.Close() // nothing of the form is left to write
		if path != "http://elsewhere.example/" {
			<-closed
		}
	}
}
