package backend_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"atelier/internal/base/netguard"
	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/enginetest"
)

// closing counts how often a body is closed.
type closing struct {
	io.Reader
	n int
}

func (c *closing) Close() error { c.n++; return nil }

func TestPut(t *testing.T) {
	t.Parallel()
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, r.Method, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), string(b))
		if r.URL.Path == "/full" {
			http.Error(w, "full", http.StatusInsufficientStorage)
		}
	}))
	defer s.Close()
	header := http.Header{"Authorization": {"Bearer secret"}}
	near, err := backend.New(backend.Options{URL: s.URL, Header: header, Guard: netguard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})})
	if err != nil {
		t.Fatal(err)
	}
	body := &closing{Reader: strings.NewReader("bytes")}
	if err := near.UploadFile(t.Context(), s.URL+"/a?b=c", "image/png", body, 5); err != nil || body.n != 1 {
		t.Errorf("put = %v, closed %d times", err, body.n)
	}
	if want := "PUT image/png  bytes"; strings.Join(got, " ") != want {
		t.Errorf("the server got %q, want %q without credentials", got, want)
	}
	if e := engine.AsError(near.UploadFile(t.Context(), s.URL+"/full", "image/png", &closing{Reader: strings.NewReader("x")}, 1)); !e.Transient || e.Code != engine.Failed {
		t.Errorf("put to a full server = %v, transient %v", e, e.Transient)
	}
	far, err := backend.New(backend.Options{URL: s.URL, Header: header})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{s.URL + "/a", "file:///tmp/x", "https://user@example.com/"} {
		body := &closing{Reader: strings.NewReader("x")}
		if err := far.UploadFile(t.Context(), at, "image/png", body, 1); !errors.Is(err, netguard.ErrBlocked) || body.n == 0 {
			t.Errorf("put to %s = %v, closed %d times; want it blocked", at, err, body.n)
		}
	}
}

func TestDeliverTellsWhyAFileBreaksOff(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
	}))
	defer s.Close()
	c, err := backend.New(backend.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var r enginetest.Recorder
	e, ok := errors.AsType[*engine.Error](c.DeliverFile(t.Context(), "/file", &r))
	if !ok || e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("deliver = %v", e)
	}
	if err := c.DeliverFile(t.Context(), "data:,hello", &r); err != nil || string(r.Outputs()[0]) != "hello" {
		t.Errorf("deliver = %v, %q", err, r.Outputs())
	}
}

func TestLinger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		late, cancel := backend.WithGrace(ctx, 2*time.Second)
		defer cancel()
		began := time.Now()
		<-late.Done()
		if took := time.Since(began); took != 62*time.Second {
			t.Errorf("it ended after %v, want 62s", took)
		}
		late, cancel = backend.WithGrace(ctx, time.Hour)
		cancel()
		if late.Err() == nil {
			t.Error("it goes on although it was ended")
		}
	})
}

func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p backend.Poller
		began := time.Now()
		if err := p.WaitNext(t.Context()); err != nil || time.Since(began) != time.Second {
			t.Errorf("the first wait = %v, %v", time.Since(began), err)
		}
		for range 20 {
			_ = p.WaitNext(t.Context())
		}
		began = time.Now()
		if err := p.WaitNext(t.Context()); err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("a late wait = %v, %v", time.Since(began), err)
		}
		gone := errors.New("connection reset")
		for range 3 { // it passes, so it counts anew
			if err := p.CheckError(t.Context(), gone); err != nil {
				t.Errorf("bear = %v", err)
			}
			time.Sleep(50 * time.Second)
			if err := p.CheckError(t.Context(), nil); err != nil {
				t.Errorf("bear = %v", err)
			}
		}
		_ = p.CheckError(t.Context(), gone)
		time.Sleep(61 * time.Second)
		if e, ok := errors.AsType[*engine.Error](p.CheckError(t.Context(), gone)); !ok || !e.Transient {
			t.Errorf("after a minute: %v", e)
		}
		if err := new(backend.Poller).CheckError(t.Context(), &backend.Status{Code: http.StatusUnauthorized}); err == nil {
			t.Error("what will not pass is borne")
		}
	})
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for mimeType, want := range map[string]string{
		"image/png": "file.png", "image/jpeg": "file.jpg", "audio/mpeg": "file.mp3", "model/gltf-binary": "file.glb", "audio/x-flac": "file.flac", "": "file.bin",
	} {
		if got := backend.FileName(engine.File{MimeType: mimeType}); got != want {
			t.Errorf("%s: %s, want %s", mimeType, got, want)
		}
	}
}
