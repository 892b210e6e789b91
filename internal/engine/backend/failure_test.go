package backend_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"atelier/internal/base/netguard"
	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err       error
		code      engine.Code
		transient bool
	}{
		"400":             {&backend.Status{Code: 400}, engine.Failed, false},
		"401":             {&backend.Status{Code: 401}, engine.Failed, false},
		"403":             {&backend.Status{Code: 403}, engine.Failed, false},
		"404":             {&backend.Status{Code: 404}, engine.Failed, false},
		"408":             {&backend.Status{Code: 408}, engine.Unavailable, true},
		"413":             {&backend.Status{Code: 413}, engine.Failed, false},
		"422":             {&backend.Status{Code: 422}, engine.Failed, false},
		"429":             {fmt.Errorf("call: %w", &backend.Status{Code: 429}), engine.Unavailable, true},
		"500":             {&backend.Status{Code: 500}, engine.Failed, false},
		"502":             {&backend.Status{Code: 502}, engine.Unavailable, true},
		"503":             {&backend.Status{Code: 503}, engine.Unavailable, true},
		"504":             {&backend.Status{Code: 504}, engine.Unavailable, true},
		"302":             {&backend.Status{Code: 302}, engine.Failed, false},
		"reset":           {io.ErrUnexpectedEOF, engine.Unavailable, true},
		"time":            {context.DeadlineExceeded, engine.Unavailable, true},
		"blocked":         {fmt.Errorf("open: %w", netguard.ErrBlocked), engine.Failed, false},
		"told already":    {engine.Fail(engine.Refused, "No."), engine.Refused, false},
		"of the manifest": {engine.ErrMisconfigured.WithCause(errors.New("x")), engine.Failed, false},
	} {
		e, ok := errors.AsType[*engine.Error](backend.CallFailure(t.Context(), tt.err))
		if !ok || e.Code != tt.code || e.Transient != tt.transient || !errors.Is(e, tt.err) {
			t.Errorf("%s: %v, transient %v; want %s, %v", name, e, e.Transient, tt.code, tt.transient)
		}
		if !strings.HasSuffix(e.Message, ".") {
			t.Errorf("%s: message = %q, want a sentence", name, e.Message)
		}
	}
	if backend.CallFailure(t.Context(), nil) != nil {
		t.Error("nothing is a failure")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{io.EOF, &backend.Status{Code: 500}} {
		got := backend.CallFailure(ctx, err)
		if _, told := errors.AsType[*engine.Error](got); told || !errors.Is(got, context.Canceled) || !errors.Is(got, err) {
			t.Errorf("after the end: %v, want that the end comes first", got)
		}
	}
}

func TestSent(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	breaks := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(breaks.Close)
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains about us
	stranger.StartTLS()
	t.Cleanup(stranger.Close)
	for address, want := range map[string]bool{down.URL: false, breaks.URL: true, stranger.URL: false} {
		err := client(t, address).CallJSON(t.Context(), "POST", "x", 1, nil)
		if err == nil || backend.MayHaveArrived(err) != want {
			t.Errorf("%v: sent = %v, want %v", err, !want, want)
		}
	}
	for err, want := range map[error]bool{
		&backend.Status{Code: 500}:               true,
		&net.DNSError{Err: "no such host"}:       false,
		fmt.Errorf("x: %w", netguard.ErrBlocked): false,
		io.ErrUnexpectedEOF:                      true,
		context.DeadlineExceeded:                 true,
		&net.OpError{Op: "read", Err: io.EOF}:    true,
		&net.OpError{Op: "dial", Err: io.EOF}:    false,
	} {
		if backend.MayHaveArrived(err) != want {
			t.Errorf("%v: sent = %v, want %v", err, !want, want)
		}
	}
}

func TestSay(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                   "",
		"CUDA out of memory.":                "CUDA out of memory.",
		"a\n  b\x00\x1bc\u202ed":             "a b c d",
		"see http://10.0.0.7:5000/x?k=v now": "see … now",
		"S3://bucket/key":                    " …",
		"in /srv/models/a.bin: bad":          "in … bad",
		`open "C:\models\a.bin"`:             `open …"`,
		"with url: /files/1?signature=s3cret (Caused by":    "with url: … (Caused by",
		"HTTPConnectionPool(host='gpu-7', port=5000)":       "HTTPConnectionPool( … port=5000)",
		"connect to 10.1.2.3:8188 refused":                  "connect to … refused",
		"localhost:5000 is gone, gpu.internal:5000 too":     " … is gone, … too",
		`"data:image/png;base64,AAAABBBB" is too long`:      `" …" is too long`,
		"no such host gpu-7.internal, db.svc.cluster.local": "no such host …, …",
		"dial tcp [fd00::5]:8188: connection refused":       "dial tcp …: connection refused",
		"c10::Error in std::vector a[1:2], torch.cuda":      "c10::Error in std::vector a[1:2], torch.cuda",
		"width 16:9 and/or 1/2 of it, v1.2, at 10:30":       "width 16:9 and/or 1/2 of it, v1.2, at 10:30",
	} {
		if got := backend.SanitizeText(in); got != strings.TrimSpace(want) {
			t.Errorf("%q: %q, want %q", in, got, strings.TrimSpace(want))
		}
	}
	if n := len([]rune(backend.SanitizeText(strings.Repeat("ä", 1000)))); n != 301 {
		t.Errorf("length = %d, want 300 and a mark", n)
	}
}

func TestTold(t *testing.T) {
	t.Parallel()
	e := backend.FailWithText(engine.Failed, "It failed.", "no\nluck at /tmp/x")
	if e.Code != engine.Failed || e.Transient || e.Message != "It failed: no luck at …" {
		t.Errorf("told = %+v", e)
	}
	if e = backend.FailWithText(engine.Failed, "It failed.", " "); e.Message != "It failed." {
		t.Errorf("without words: %q", e.Message)
	}
}

func TestTakingWorkBack(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]engine.Code{
		400: "", 404: "", 409: "", 410: "", 429: engine.Unavailable, 500: engine.Unavailable, 503: engine.Unavailable, 401: engine.Failed,
	} {
		err := backend.CancelFailure(t.Context(), &backend.Status{Code: code})
		if err == nil && want != "" || err != nil && (engine.AsError(err).Code != want || engine.AsError(err).Transient != (want == engine.Unavailable)) {
			t.Errorf("%d: %v, want %q", code, err, want)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if e := engine.AsError(backend.CancelFailure(over, context.Canceled)); e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("without time: %v, want one that is worth another try", e)
	}
	if err := backend.CancelFailure(over, nil); err != nil {
		t.Errorf("nothing went wrong: %v", err)
	}
}
