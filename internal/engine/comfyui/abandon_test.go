package comfyui_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/enginetest"
)

// altered puts something between the engine and the server that rewrites the
// answers below a path.
func (r rig) altered(t *testing.T, path string, rewrite func([]byte) []byte) rig {
	t.Helper()
	to, err := url.Parse(r.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) },
		ModifyResponse: func(res *http.Response) error {
			if !strings.HasPrefix(res.Request.URL.Path, path) {
				return nil
			}
			body, err := io.ReadAll(res.Body)
			body = rewrite(body)
			res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			res.Header.Del("Content-Length")
			return err
		},
	})
	t.Cleanup(s.Close)
	return r.to(t, s.URL)
}

// TestAPromptWithoutAnAnswerIsTakenBack has the server take a prompt and answer
// what nobody understands: the run fails for good, so nobody waits for it.
func TestAPromptWithoutAnAnswerIsTakenBack(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{}).altered(t, "/prompt", func([]byte) []byte { return []byte("<html>") })
	r.server.Change(func(f *comfyuitest.Faults) { f.Stuck = true })
	if e := r.refusal(t, job(t)); e.Transient {
		t.Errorf("failure = %v, want one that stays", e)
	}
	if len(r.server.Prompts()) != 1 {
		t.Fatalf("prompts = %d, want that it was taken", len(r.server.Prompts()))
	}
	eventually(t, "the work stops", r.server.Idle)
}

func TestWhatIsLoggedOfAFailureHasAnEnd(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{}).altered(t, "/history", func(b []byte) []byte {
		return bytes.ReplaceAll(b, []byte("KSampler"), bytes.Repeat([]byte("K"), 1<<20))
	})
	r.server.Change(func(f *comfyuitest.Faults) { f.Fail = "no luck" })
	if e := r.refusal(t, job(t)); len(e.Error()) > 2000 {
		t.Errorf("the error has %d bytes", len(e.Error()))
	}
}

// TestTheQueueMayBeLong has others wait at the server with a lot.
func TestTheQueueMayBeLong(t *testing.T) {
	t.Parallel()
	other := `[7,"other",{"1":{"text":"` + strings.Repeat("a", 1<<20) + `"}}]`
	long := []byte(`"queue_pending": [` + strings.Repeat(other+",", 20))
	r := start(t, comfyuitest.Options{Step: 20 * time.Millisecond}).altered(t, "/queue", func(b []byte) []byte {
		b = bytes.ReplaceAll(b, []byte(`"queue_pending":[`), []byte(`"queue_pending": [`))
		b = bytes.ReplaceAll(b, []byte(`"queue_pending": [`), long)
		return bytes.ReplaceAll(b, []byte("],]"), []byte("]]"))
	})
	if n := len(r.results(t, job(t)).Outputs()); n != 1 {
		t.Errorf("results = %d, want 1", n)
	}
}

// TestFewerAreBetterThanNone has the second of three prompts make nothing.
func TestFewerAreBetterThanNone(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	out := enginetest.Recorder{OnOutput: func(int) {
		r.server.Change(func(f *comfyuitest.Faults) { f.Nothing = true })
	}}
	j := job(t)
	j.NumResults = 3
	if err := r.Run(t.Context(), j, &out); err != nil || len(out.Outputs()) != 1 {
		t.Errorf("run = %v with %d results, want the one that was made", err, len(out.Outputs()))
	}
}
