package backend_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/enginetest"
)

// gone gives the address of a server that is not there any more.
func gone(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	return s.URL
}

// TestErrorsTellNoAddress holds for all that ends in a log: an address can be
// signed, and an answer can repeat what was sent.
func TestErrorsTellNoAddress(t *testing.T) {
	t.Parallel()
	const signed = "/fox.png?signature=s3cret"
	s, dead := newSite(t), gone(t)
	s.leads("/odd", "http://gpu:x"+signed)
	s.leads("/disk", "file://"+signed)
	s.mux.HandleFunc("/echo", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		io.WriteString(w, `{"detail":[{"msg":"too long","input":"s3cret"}]}`)
	})
	near, far := client(t, s.URL, "127.0.0.0/8"), client(t, s.URL)
	for name, call := range map[string]func() error{
		"a file of nobody": func() error { _, err := near.OpenFile(t.Context(), dead+signed); return err },
		"a file inside":    func() error { _, err := far.OpenFile(t.Context(), dead+signed); return err },
		"no address":       func() error { _, err := near.OpenFile(t.Context(), "http://gpu:x"+signed); return err },
		"no way":           func() error { _, err := near.OpenFile(t.Context(), "/odd"); return err },
		"no web":           func() error { _, err := near.OpenFile(t.Context(), "/disk"); return err },
		"an upload": func() error {
			return near.UploadFile(t.Context(), dead+signed, "image/png", &closing{Reader: strings.NewReader("x")}, 1)
		},
		"no upload": func() error {
			return near.UploadFile(t.Context(), "http://gpu:x"+signed, "image/png", &closing{Reader: strings.NewReader("x")}, 1)
		},
		"a call":         func() error { return client(t, dead).CallJSON(t.Context(), "GET", signed, nil, nil) },
		"no call":        func() error { return near.CallJSON(t.Context(), "GET", "http://gpu:x"+signed, nil, nil) },
		"a call sent on": func() error { return near.CallJSON(t.Context(), "GET", "odd", nil, nil) },
		"an echo":        func() error { return near.CallJSON(t.Context(), "GET", "echo", nil, nil) },
	} {
		err := call()
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if text := backend.CallFailure(t.Context(), err).Error(); strings.Contains(text, "s3cret") {
			t.Errorf("%s: the error tells the secret: %s", name, text)
		}
	}
}

// TestAnotherHostIsNotTheServer has the server name files of a host that does
// not have them. Whoever takes that for the server being away gives it no more
// work.
func TestAnotherHostIsNotTheServer(t *testing.T) {
	t.Parallel()
	s, other := newSite(t), newSite(t)
	for path, code := range map[string]int{"/403": 403, "/404": 404, "/410": 410, "/429": 429, "/500": 500, "/503": 503} {
		other.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	other.mux.HandleFunc("/half", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
	})
	c := client(t, s.URL, "127.0.0.0/8")
	for ref, passing := range map[string]bool{
		other.URL + "/403": false, other.URL + "/404": false, other.URL + "/410": false,
		other.URL + "/429": true, other.URL + "/500": true, other.URL + "/503": true, other.URL + "/half": true, gone(t) + "/fox": true,
	} {
		var r enginetest.Recorder
		e := engine.AsError(c.DeliverFile(t.Context(), ref, &r))
		if e.Code == engine.Unavailable || e.Transient != passing {
			t.Errorf("%s: %v, transient %v; want %v, and not that the server is away", ref, e, e.Transient, passing)
		}
		if _, ok := errors.AsType[*backend.Status](e); ok {
			t.Errorf("%s: what another host says is told as the server's: %v", ref, e)
		}
	}
}

func TestOddAnswersAreGarbage(t *testing.T) {
	t.Parallel()
	var out struct{ N json.Number }
	err := backend.DecodeJSON(strings.NewReader(`{"n":"many"}`), &out)
	if e := engine.AsError(backend.CallFailure(t.Context(), err)); e.Transient || e.Code != engine.Failed {
		t.Errorf("failure = %v, transient %v; want one that stays", e, e.Transient)
	}
}

func TestAQuestionMayBePutAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p backend.Poller
		ill := &backend.Status{Code: http.StatusInternalServerError}
		if err := p.CheckError(t.Context(), ill); err != nil {
			t.Errorf("bear = %v, want another look", err)
		}
		time.Sleep(61 * time.Second)
		if e := engine.AsError(p.CheckError(t.Context(), ill)); !e.Transient {
			t.Errorf("after a minute: %v, want one that may be over soon", e)
		}
	})
}

// TestAnUnreadFileIsNotTheServers tells our own files from the server.
func TestAnUnreadFileIsNotTheServers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	c := client(t, s.URL, "127.0.0.0/8")
	lost := errors.New("the disk is gone")
	file, _ := watched(broken{lost})
	form, kind := backend.MultipartForm(t.Context(), []backend.FormPart{{Name: "image", File: &file, FileName: "fox.png"}})
	_, err := c.Do(t.Context(), backend.Request{Method: "POST", Path: "upload", Body: form, Type: kind})
	form.Close()
	put := c.UploadFile(t.Context(), s.URL+"/upload", "image/png", io.NopCloser(broken{lost}), 5)
	for what, err := range map[string]error{"form": err, "put": put} {
		failure := backend.CallFailure(t.Context(), err)
		if e := engine.AsError(failure); !errors.Is(failure, lost) || e.Code == engine.Unavailable {
			t.Errorf("%s: %v, want the file's own error", what, failure)
		}
	}
}
