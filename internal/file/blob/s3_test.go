package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"atelier/internal/base/fault"
	"atelier/internal/file/blob"
	"atelier/internal/file/blob/blobtest"
)

// gate stands between a store and the server, and can shut.
type gate struct {
	*httptest.Server
	requests atomic.Int64
	refuse   atomic.Int64        // answer with this status
	look     func(*http.Request) // set before the first request
}

// through puts a gate before the bucket.
func through(t *testing.T, b *blobtest.Bucket) *gate {
	t.Helper()
	target, err := url.Parse(b.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is signed
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	g := &gate{look: func(*http.Request) {}}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.requests.Add(1)
		g.look(r)
		if status := g.refuse.Load(); status != 0 {
			w.WriteHeader(int(status))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	b.Endpoint = g.URL
	return g
}

func unfinished(t *testing.T, b blobtest.Bucket) int {
	t.Helper()
	page, err := b.Client(t).ListMultipartUploads(t.Context(), b.Name, "", "", "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Uploads)
}

func TestS3AbortsUploads(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		end    func(cancel func()) io.Reader
		onPart string // cancel when this part is on its way
	}{
		{"broken", func(func()) io.Reader { return blobtest.FailAfter(nil, errors.New("broken")) }, ""},
		{"cancelled", func(cancel func()) io.Reader { return io.MultiReader(readFunc(cancel), strings.NewReader("more")) }, ""},
		{"cancelled while sending", func(func()) io.Reader { return bytes.NewReader(blobtest.Bytes(2, 9<<20)) }, "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b := blobtest.S3(t)
			direct := b
			through(t, &b).look = func(r *http.Request) {
				if part := r.URL.Query().Get("partNumber"); part != "" && part == tt.onPart {
					cancel()
				}
			}
			s := openS3(t, b)
			during := 0
			look := readFunc(func() { during = unfinished(t, direct) })
			r := io.MultiReader(bytes.NewReader(blobtest.Bytes(1, 9<<20)), look, tt.end(cancel))
			if _, err := s.Put(ctx, "a/b", r); err == nil {
				t.Error("put worked")
			}
			if after := unfinished(t, direct); during != 1 || after != 0 {
				t.Errorf("unfinished uploads = %d, then %d, want 1, then 0", during, after)
			}
			if _, err := s.Stat(t.Context(), "a/b"); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("stat = %v, want not found", err)
			}
		})
	}
}

// readFunc is an empty reader that tells when it is read.
type readFunc func()

func (f readFunc) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

func TestS3SweepsAtOpen(t *testing.T) {
	t.Parallel()
	b := blobtest.S3(t)
	client := b.Client(t)
	for range 3 {
		id, err := client.NewMultipartUpload(t.Context(), b.Name, "a/b", minio.PutObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.PutObjectPart(t.Context(), b.Name, "a/b", id, 1, strings.NewReader("half"), 4, minio.PutObjectPartOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	o := b.Options()
	o.Now = func() time.Time { return time.Now().Add(59 * time.Minute) }
	openAddress(t, b.Address(), o)
	if got := unfinished(t, b); got != 3 {
		t.Errorf("unfinished uploads = %d, want 3 that may still run", got)
	}
	o.Now = func() time.Time { return time.Now().Add(61 * time.Minute) }
	openAddress(t, b.Address(), o)
	if got := unfinished(t, b); got != 0 {
		t.Errorf("unfinished uploads = %d, want none", got)
	}
}

func TestS3MissingBucket(t *testing.T) {
	t.Parallel()
	b := blobtest.S3(t)
	b.Name = "never-made"
	_, err := blob.Open(t.Context(), b.Address(), b.Options())
	if err == nil || !strings.Contains(err.Error(), "never-made does not exist") {
		t.Errorf("open = %v, want a word about the bucket", err)
	}
	if _, outage := errors.AsType[*fault.Error](err); outage {
		t.Error("a wrong setting was taken for an outage")
	}
}

func TestS3WrongKeys(t *testing.T) {
	t.Parallel()
	b := blobtest.S3(t)
	b.SecretKey = "wrong-secret"
	_, err := blob.Open(t.Context(), b.Address(), b.Options())
	if err == nil || strings.Contains(err.Error(), b.SecretKey) {
		t.Errorf("open = %v, want a refusal that keeps the secret", err)
	}
	if _, outage := errors.AsType[*fault.Error](err); outage {
		t.Error("a wrong setting was taken for an outage")
	}
}

func TestS3Outage(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for name, shut := range map[string]func(g *gate){
		"nobody listens":  func(g *gate) { g.Close() },
		"the server ails": func(g *gate) { g.refuse.Store(http.StatusServiceUnavailable) },
		"slow down":       func(g *gate) { g.refuse.Store(http.StatusTooManyRequests) },
	} {
		b := blobtest.S3(t)
		g := through(t, &b)
		s := openS3(t, b)
		shut(g)
		for what, use := range uses(s, b) {
			wg.Go(func() {
				err := use(t.Context())
				if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Unavailable {
					t.Errorf("%s: %s = %v, want %s", name, what, err, fault.Unavailable)
				}
				if errors.Is(err, blob.ErrNotFound) {
					t.Errorf("%s: %s took the outage for a missing key", name, what)
				}
			})
		}
		wg.Go(func() { blobtest.Dead(t, s) })
	}
	wg.Wait()
}

// uses is every way to use a store.
func uses(s blob.Store, b blobtest.Bucket) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"put": func(ctx context.Context) error {
			_, err := s.Put(ctx, "a", strings.NewReader("x"))
			return err
		},
		"long put": func(ctx context.Context) error {
			_, err := s.Put(ctx, "a", bytes.NewReader(blobtest.Bytes(1, 9<<20)))
			return err
		},
		"open": func(ctx context.Context) error {
			_, _, err := s.Open(ctx, "a", 0, -1)
			return err
		},
		"stat": func(ctx context.Context) error {
			_, err := s.Stat(ctx, "a")
			return err
		},
		"list": func(ctx context.Context) error {
			var last error
			for _, err := range s.List(ctx, "") {
				last = err
			}
			return last
		},
		"delete": func(ctx context.Context) error { return s.Delete(ctx, "a") },
		"sweep":  func(ctx context.Context) error { return s.SweepUnfinished(ctx, time.Now()) },
		"ping":   s.Ping,
		"another store": func(ctx context.Context) error {
			_, err := blob.Open(ctx, b.Address(), b.Options())
			return err
		},
	}
}

func TestS3PutSendsNoMoreThanItMust(t *testing.T) {
	t.Parallel()
	b := blobtest.S3(t)
	g := through(t, &b)
	s := openS3(t, b)
	for _, tt := range []struct {
		size     int
		requests int64
	}{
		{0, 1},
		{1 << 20, 1},
		{8 << 20, 3}, // begin, one part, end
		{8<<20 + 1, 4},
	} {
		before := g.requests.Load()
		if _, err := s.Put(t.Context(), "a.png", bytes.NewReader(blobtest.Bytes(1, tt.size))); err != nil {
			t.Fatal(err)
		}
		if got := g.requests.Load() - before; got != tt.requests {
			t.Errorf("%d bytes: %d requests, want %d", tt.size, got, tt.requests)
		}
		stored, err := b.Client(t).StatObject(t.Context(), b.Name, "a.png", minio.StatObjectOptions{})
		if err != nil || stored.ContentType != "image/png" {
			t.Errorf("%d bytes: type at the server = %q, %v, want image/png", tt.size, stored.ContentType, err)
		}
	}
}

// TestS3LongPutKeepsMemorySmall is not parallel: it looks at the whole heap.
func TestS3LongPutKeepsMemorySmall(t *testing.T) {
	s := openS3(t, blobtest.S3(t))
	value := blobtest.Bytes(1, 1<<20)
	var parts []io.Reader
	for range 64 {
		parts = append(parts, bytes.NewReader(value))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if n, err := s.Put(t.Context(), "long", io.MultiReader(parts...)); err != nil || n != 64<<20 {
		t.Fatalf("put = %d, %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 40 {
		t.Errorf("a Put of 64 MiB took %d MiB of memory", got)
	}
}
