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

	"atelier/internal/engine/comfyui/comfyuitest"
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
