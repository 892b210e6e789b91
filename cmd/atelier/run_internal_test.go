package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// serviceWithTools starts a service with two tools whose display names have no letter of a
// slug. The second makes one picture.
func serviceWithTools(t *testing.T, picture, promised string, whole bool) *httptest.Server {
	t.Helper()
	digest := sha256.Sum256([]byte(promised))
	mux := http.NewServeMux()
	var at string
	answer := func(pattern, format string, args ...any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				t.Errorf("%s: no token", pattern)
			}
			fmt.Fprintf(w, strings.ReplaceAll(format, "$AT", at), args...)
		})
	}
	answer("GET /api/v2/tools", `{"data": [{"id": "one", "slug": "picture", "name": "画"}, {"id": "two", "slug": "sound", "name": "声"}]}`)
	answer("GET /api/v2/tools/sound", `{"id": "two", "slug": "sound", "name": "声", "fields": []}`)
	answer("GET /api/v2/tools/two", `{"id": "two", "slug": "sound", "name": "声", "fields": []}`)
	answer("POST /api/v2/generate/preview-cost", `{"total_tokens": 2, "tokens_per_result": 2, "can_run": true}`)
	answer("POST /api/v2/generate", `{"request_id": "r", "status": "pending"}`)
	answer("GET /api/v2/generate/r/events", "event: progress\ndata: {\"progress\": 1.5}\n\nevent: progress\ndata: {\"progress\": -1}\n\n"+
		"event: done\ndata: {\"request_id\": \"r\", \"status\": \"succeeded\", \"outputs\": [{\"url\": \"$AT/file\", \"mime_type\": \"image/png\", \"size_bytes\": %d, \"sha256\": %q, \"note\": \"1 of 2 words\\n\\u001b is unknown.\"}]}\n\n",
		len(promised), hex.EncodeToString(digest[:]))
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token went along with a download")
		}
		if !whole {
			w.Header().Set("Content-Length", "1000")
		}
		fmt.Fprint(w, picture)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	at = s.URL
	return s
}

func generate(t *testing.T, s *httptest.Server, tool, out string) (stderr string, err error) {
	t.Helper()
	var printed, complaints bytes.Buffer
	err = runCommand(t.Context(), []string{"generate", tool, "--service", s.URL, "--token", "secret", "--out", out},
		streams{getenv: func(string) string { return "" }, stdout: &printed, stderr: &complaints})
	return complaints.String(), err
}

// TestGenerateKeepsWholeFiles takes the tool that is named, and leaves nothing
// behind that is not what the run made.
func TestGenerateKeepsWholeFiles(t *testing.T) {
	t.Parallel()
	t.Run("a whole one", func(t *testing.T) {
		t.Parallel()
		out := t.TempDir()
		stderr, err := generate(t, serviceWithTools(t, "picture", "picture", true), "sound", out)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(out, "sound.png")); err != nil || string(text) != "picture" {
			t.Errorf("file = %q, %v", text, err)
		}
		if strings.Contains(stderr, "\r") || strings.Count(stderr, "\n") != 5 || !strings.Contains(stderr, "sound.png: 1 of 2 words\ufffd\ufffd is unknown.\n") {
			t.Errorf("stderr = %q, which is no terminal", stderr)
		}
	})
	for name, s := range map[string]*httptest.Server{
		"one that breaks off": serviceWithTools(t, "pic", "picture", false), "another one": serviceWithTools(t, "pixel", "picture", true),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			if _, err := generate(t, s, "two", out); err == nil {
				t.Error("no error")
			}
			if left, err := os.ReadDir(out); err != nil || len(left) != 0 {
				t.Errorf("left = %v, %v", left, err)
			}
		})
	}
	t.Run("of a tool that is not there", func(t *testing.T) {
		t.Parallel()
		for name, want := range map[string]string{
			"文":     "there is no tool \"文\"; available tools:\n  picture, sound",
			"Sound": "there is no tool \"Sound\"; available tools:\n  picture, sound",
			"声":     "\"声\" is a display name; the tool is called sound",
		} {
			if _, err := generate(t, serviceWithTools(t, "", "", true), name, t.TempDir()); err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	})
}

// TestNamesOfTools takes what a service calls its tools, and nothing that leads
// out of a folder or moves the cursor.
func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	for slug, want := range map[string]string{
		"sketch": "sketch", "upscale-4-art": "upscale-4-art", strings.Repeat("long-", 30) + "x": strings.Repeat("long-", 30) + "x",
		"../../evil": "evil", "/etc/passwd": "etc-passwd", "a\x1b[2J": "a-2j", "": "tool", "..": "tool",
	} {
		if got := safeSlug(slug); got != want {
			t.Errorf("%q is called %q, want %q", slug, got, want)
		}
	}
}

// TestImportStaysInItsFolder refuses a name that is none.
func TestImportStaysInItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	backends := filepath.Join(dir, "backends.yaml")
	if err := os.WriteFile(backends, []byte(`a: {engine: cog, url: "http://127.0.0.1:1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../up", "/top", "Big", "a/b", "."} {
		err := runCommand(t.Context(), []string{"tools", "import", "a", "--backends", backends, "--into", filepath.Join(dir, "tools"), "--as", name},
			streams{getenv: func(string) string { return "" }, stdout: new(bytes.Buffer), stderr: new(bytes.Buffer)})
		if err == nil || !strings.Contains(err.Error(), "--as") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGenerateWaits does as the service asks, and sends the same request again.
func TestGenerateWaits(t *testing.T) {
	t.Parallel()
	at, err := url.Parse(serviceWithTools(t, "picture", "picture", true).URL)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	onward := httputil.NewSingleHostReverseProxy(at)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/generate") {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
			if len(keys) == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				fmt.Fprint(w, `{"error": {"code": "RATE_LIMITED", "message": "Wait a little.", "retryable": true}}`)
				return
			}
		}
		onward.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	stderr, err := generate(t, s, "two", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] || !strings.Contains(stderr, "trying again in 1s: Wait a little.") {
		t.Errorf("keys = %q, stderr = %q", keys, stderr)
	}
}
