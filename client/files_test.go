package client_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/client"
)

// uploadServer has the tus protocol for one upload. Faults happen by the number
// of the PATCH.
type uploadServer struct {
	mu      sync.Mutex
	t       *testing.T
	keys    map[string]bool
	content bytes.Buffer
	size    int64
	patches int
	heads   int
	deletes int
	fault   func(n int, w http.ResponseWriter, r *http.Request) bool
}

func (s *uploadServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path != "/api/v2/uploads/u" && r.Method != http.MethodOptions && r.Header.Get("Tus-Resumable") != "1.0.0" {
		s.t.Errorf("%s %s without a version", r.Method, r.URL.Path)
	}
	switch r.Method {
	case http.MethodOptions:
		w.Header().Set("Tus-Version", "1.0.0")
		w.Header().Set("Tus-Extension", "creation,checksum")
		w.Header().Set("Tus-Max-Size", "52428800")
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		s.keys[r.Header.Get("Idempotency-Key")] = true
		s.size, _ = strconv.ParseInt(r.Header.Get("Upload-Length"), 10, 64)
		if want := "filename " + base64.StdEncoding.EncodeToString([]byte("noise.wav")); r.Header.Get("Upload-Metadata") != want {
			s.t.Errorf("metadata = %q", r.Header.Get("Upload-Metadata"))
		}
		w.Header().Set("Location", "https://elsewhere.example/api/v2/uploads/resumable/abc?team_id=T")
		w.WriteHeader(http.StatusCreated)
	case http.MethodHead:
		s.heads++
		s.answer(w, http.StatusOK)
	case http.MethodDelete:
		s.deletes++
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPatch:
		s.patches++
		if s.fault != nil && s.fault(s.patches, w, r) {
			return
		}
		if r.Header.Get("Upload-Offset") != strconv.Itoa(s.content.Len()) {
			refusal(w, http.StatusConflict, client.CodeUploadOffsetConflict, true, "")
			return
		}
		_, err := io.Copy(&s.content, r.Body)
		if err != nil {
			return
		}
		s.answer(w, http.StatusNoContent)
	case http.MethodGet:
		fmt.Fprint(w, `{"id": "u"}`)
	}
}

func (s *uploadServer) answer(w http.ResponseWriter, status int) {
	w.Header().Set("Upload-Offset", strconv.Itoa(s.content.Len()))
	if int64(s.content.Len()) == s.size {
		w.Header().Set("Upload-Id", "u")
	}
	w.WriteHeader(status)
}

var quick = client.RetryPolicy{MinWait: 1, MaxWait: 1, Attempts: 5}

func connectTo(t testing.TB, url string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: url, Token: "t", Retry: quick})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func noise(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i * i >> 7)
	}
	return b
}

// TestResumableUpload cuts an upload in every way: the file arrives once, and
// whole.
func TestResumableUpload(t *testing.T) {
	t.Parallel()
	content := noise(9 << 20)
	s := &uploadServer{t: t, keys: map[string]bool{}}
	s.fault = func(n int, w http.ResponseWriter, r *http.Request) bool {
		switch n {
		case 1: // cut in the middle of the body
			_, _ = io.CopyN(&s.content, r.Body, 100_000)
			panic(http.ErrAbortHandler)
		case 2: // stored, and the answer is lost
			_, _ = io.Copy(&s.content, r.Body)
			panic(http.ErrAbortHandler)
		case 3:
			refusal(w, http.StatusLocked, client.CodeConflict, true, "")
			return true
		case 4:
			refusal(w, http.StatusServiceUnavailable, client.CodeUpstreamUnavailable, true, "0")
			return true
		case 5: // moved on by another request of ours
			_, _ = io.CopyN(&s.content, r.Body, 10)
			refusal(w, http.StatusConflict, client.CodeUploadOffsetConflict, true, "")
			return true
		}
		return false
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	var last int64
	upload, err := connectTo(t, server.URL).Uploads.Create(t.Context(), client.UploadRequest{
		File:     client.FileOf("noise.wav", content),
		Progress: func(done, total int64) { last = done },
	})
	if err != nil || upload.ID != "u" {
		t.Fatalf("upload = %+v, %v", upload, err)
	}
	if !bytes.Equal(s.content.Bytes(), content) || len(s.keys) != 1 || s.heads != 5 || s.deletes != 0 || last != int64(len(content)) {
		t.Errorf("%d bytes, %d keys, %d HEADs, progress %d", s.content.Len(), len(s.keys), s.heads, last)
	}
}

// TestResumableUploadGivesUp ends at once if the file is refused, and after all
// attempts if nothing moves. It deletes what has arrived, unless the caller has
// a key to go on with.
func TestResumableUploadGivesUp(t *testing.T) {
	t.Parallel()
	s := &uploadServer{t: t, keys: map[string]bool{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := connectTo(t, server.URL)
	request := client.UploadRequest{File: client.FileOf("noise.wav", []byte("x")), Resumable: true}
	s.fault = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		refusal(w, http.StatusUnsupportedMediaType, client.CodeUnsupportedMediaType, false, "")
		return true
	}
	if _, err := c.Uploads.Create(t.Context(), request); !client.HasCode(err, client.CodeUnsupportedMediaType) || s.patches != 1 {
		t.Errorf("%d requests, %v", s.patches, err)
	}
	s.patches = 0
	s.fault = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		refusal(w, http.StatusInternalServerError, client.CodeInternal, true, "")
		return true
	}
	if _, err := c.Uploads.Create(t.Context(), request); !client.HasCode(err, client.CodeInternal) || s.patches != 5 {
		t.Errorf("%d requests, %v", s.patches, err)
	}
	if s.deletes != 2 {
		t.Errorf("%d of 2 uploads were deleted", s.deletes)
	}

	ctx, cancel := context.WithCancel(t.Context())
	s.fault = func(int, http.ResponseWriter, *http.Request) bool {
		cancel()
		panic(http.ErrAbortHandler)
	}
	if _, err := c.Uploads.Create(ctx, request); !errors.Is(err, context.Canceled) || s.deletes != 3 {
		t.Errorf("%d deleted, %v", s.deletes, err)
	}

	s.fault = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		refusal(w, http.StatusInternalServerError, client.CodeInternal, true, "")
		return true
	}
	request.Key = "mine"
	request.Resumable = false // the key implies it
	if _, err := c.Uploads.Create(t.Context(), request); !client.HasCode(err, client.CodeInternal) || s.deletes != 3 || !s.keys["mine"] {
		t.Errorf("%d deleted, keys %v, %v", s.deletes, s.keys, err)
	}
	s.fault = nil
	if upload, err := c.Uploads.Create(t.Context(), request); err != nil || upload.ID != "u" {
		t.Errorf("upload = %+v, %v", upload, err)
	}

	support, err := c.Uploads.DescribeResumable(t.Context())
	if err != nil || support.MaxBytes != 50<<20 || strings.Join(support.Extensions, " ") != "creation checksum" {
		t.Errorf("support = %+v, %v", support, err)
	}
}

// TestSmallUpload is one request with the file as its body, sent again after a
// failure.
func TestSmallUpload(t *testing.T) {
	t.Parallel()
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bodies = append(bodies, r.URL.Query().Get("name")+":"+readAll(t, r.Body))
		if len(bodies) == 1 {
			refusal(w, http.StatusRequestTimeout, client.CodeRequestTimeout, true, "")
			return
		}
		fmt.Fprint(w, `{"id": "u"}`)
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "a.png")
	if err := os.WriteFile(path, []byte("picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := connectTo(t, server.URL)
	if _, err := c.Uploads.CreateFromPath(t.Context(), path, nil); err != nil || strings.Join(bodies, " ") != "a.png:picture a.png:picture" {
		t.Errorf("bodies = %v, %v", bodies, err)
	}
	for _, missing := range []string{path + "x", filepath.Dir(path)} {
		if _, err := c.Uploads.CreateFromPath(t.Context(), missing, nil); err == nil || len(bodies) != 2 {
			t.Errorf("%s: %v", missing, err)
		}
	}
}

// TestFileBecomesShorter does not take a file that was truncated for a lost
// connection.
func TestFileBecomesShorter(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	t.Cleanup(server.Close)
	retries := 0
	c, err := client.New(client.Options{URL: server.URL, Token: "t", Retry: client.RetryPolicy{OnRetry: func(error, time.Duration) { retries++ }}})
	if err != nil {
		t.Fatal(err)
	}
	short := client.File{Name: "a.png", Content: strings.NewReader("half"), Size: 8}
	_, err = c.Uploads.Create(t.Context(), client.UploadRequest{File: short})
	if err == nil || !strings.Contains(err.Error(), "shorter") || retries > 0 {
		t.Errorf("%d retries, %v", retries, err)
	}
}

// lateReader is a transport that answers before it has read the body, and goes
// on reading it.
type lateReader struct {
	reading sync.WaitGroup
	late    atomic.Int64 // bytes that were read after the answer
}

func (l *lateReader) RoundTrip(r *http.Request) (*http.Response, error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(r.Body, first); err != nil {
		return nil, err
	}
	l.reading.Go(func() {
		defer r.Body.Close()
		time.Sleep(50 * time.Millisecond)
		rest, _ := io.ReadAll(r.Body)
		l.late.Add(int64(len(rest)))
	})
	return nil, errReset
}

// TestBodyEndsWithTheCall looks for use of the caller's file and functions after
// the call has returned. The race detector sees it too.
func TestBodyEndsWithTheCall(t *testing.T) {
	t.Parallel()
	l := &lateReader{}
	c, err := client.New(client.Options{URL: "http://atelier.test", Token: "t", Retry: quick, HTTP: &http.Client{Transport: l}})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	_, err = c.Uploads.Create(t.Context(), client.UploadRequest{
		File:     client.FileOf("a.png", []byte("a picture")),
		Progress: func(int64, int64) { calls++ },
	})
	if !errors.Is(err, errReset) || calls != quick.Attempts {
		t.Errorf("%d calls, %v", calls, err)
	}
	l.reading.Wait()
	if l.late.Load() > 0 || calls != quick.Attempts {
		t.Errorf("%d bytes were read late, %d calls", l.late.Load(), calls)
	}
}

// mediaServer has one file, and cuts its first answers.
type mediaServer struct {
	content []byte
	ranges  bool
	tag     string
	cuts    int
	sent    []string // ranges that were asked for
}

func (s *mediaServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.sent = append(s.sent, r.Header.Get("Range"))
	if r.Header.Get("Authorization") != "" {
		panic("the token went along with a download")
	}
	from := 0
	if s.ranges && r.Header.Get("Range") != "" {
		_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(s.content)-1, len(s.content)))
	}
	w.Header().Set("ETag", s.tag)
	w.Header().Set("Content-Length", strconv.Itoa(len(s.content)-from))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	if s.cuts > 0 {
		s.cuts--
		_, _ = w.Write(s.content[from : from+(len(s.content)-from)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(s.content[from:])
}

func remote(url string, content []byte) client.RemoteFile {
	digest := sha256.Sum256(content)
	return client.RemoteFile{URL: url, Size: int64(len(content)), SHA256: hex.EncodeToString(digest[:])}
}

// TestDownload resumes where the connection broke, with and without ranges.
func TestDownload(t *testing.T) {
	t.Parallel()
	for _, ranges := range []bool{true, false} {
		t.Run(fmt.Sprint("ranges ", ranges), func(t *testing.T) {
			t.Parallel()
			s := &mediaServer{content: noise(300_000), ranges: ranges, tag: `"strong"`, cuts: 3}
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			path := filepath.Join(t.TempDir(), "out.bin")
			var last int64
			err := connectTo(t, server.URL).Download(t.Context(), remote("/file", s.content), path, func(done, _ int64) { last = done })
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, s.content) || last != int64(len(got)) {
				t.Errorf("%d bytes, progress %d, %v", len(got), last, err)
			}
			if len(s.sent) != 4 || s.sent[0] != "" || !strings.HasPrefix(s.sent[1], "bytes=") {
				t.Errorf("ranges = %q", s.sent)
			}
		})
	}
}

// TestDownloadRefusesDamage leaves no file behind that is not the right one.
func TestDownloadRefusesDamage(t *testing.T) {
	t.Parallel()
	s := &mediaServer{content: []byte("pixel")}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := connectTo(t, server.URL)
	dir := t.TempDir()
	for name, f := range map[string]client.RemoteFile{
		"another hash": remote("/f", []byte("pixie")),
		"shorter":      remote("/f", []byte("pix")),
		"longer":       remote("/f", []byte("pixels, many")),
		"expired":      {},
	} {
		err := c.Download(t.Context(), f, filepath.Join(dir, "f"), nil)
		if err == nil || name == "expired" && !errors.Is(err, client.ErrExpired) || name == "another hash" && !errors.Is(err, client.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left = %v, %v", left, err)
	}
	if err := c.Download(t.Context(), client.RemoteFile{URL: "/f"}, filepath.Join(dir, "f"), nil); err != nil {
		t.Errorf("without a size and a hash: %v", err)
	}
	err := c.Download(t.Context(), remote("/f", s.content), filepath.Join(dir, "missing", "f"), nil)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}
