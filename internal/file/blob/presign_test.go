package blob_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"atelier/internal/file/blob"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/testkit/watch"
)

// fetchURL sends a request without credentials and returns the response with
// its body.
func fetchURL(t *testing.T, method, address string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest(method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// TestPresignedReads reads a file straight from the S3 server, with nothing but
// its URL.
func TestPresignedReads(t *testing.T) {
	t.Parallel()
	bucket := blobtest.S3(t)
	store, err := blob.Open(t.Context(), bucket.Address(), bucket.Options())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	value := blobtest.Bytes(1, 100_000)
	for _, key := range []string{"files/a.png", "files/b.png"} {
		if _, err := store.Put(t.Context(), key, bytes.NewReader(value)); err != nil {
			t.Fatal(err)
		}
	}
	newPresigner := func(lifetime time.Duration) *blob.Presigner {
		p, err := blob.NewPresigner(bucket.Address(), blob.PresignOptions{AccessKey: bucket.AccessKey, SecretKey: bucket.SecretKey, Lifetime: lifetime})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	presign := func(p *blob.Presigner) string {
		address, err := p.PresignRead(t.Context(), "files/a.png", blob.ResponseHeaders{ContentType: "image/png", ContentDisposition: `attachment; filename=sunset.png`, CacheControl: "private, max-age=60"})
		if err != nil {
			t.Fatal(err)
		}
		return address
	}

	p := newPresigner(10 * time.Minute)
	address := presign(p)
	if !strings.HasPrefix(address, p.Origin()+"/") || p.Origin() != bucket.Endpoint {
		t.Errorf("the URL %s is not at the origin %s of the server %s", address, p.Origin(), bucket.Endpoint)
	}
	res, body := fetchURL(t, http.MethodGet, address)
	if res.StatusCode != http.StatusOK || !bytes.Equal(body, value) {
		t.Fatalf("read = %d with %d bytes, want the %d bytes of the file", res.StatusCode, len(body), len(value))
	}
	for name, want := range map[string]string{"Content-Type": "image/png", "Content-Disposition": "attachment; filename=sunset.png", "Cache-Control": "private, max-age=60"} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}

	for what, refused := range map[string]struct{ method, address string }{
		"another key":         {http.MethodGet, strings.Replace(address, "a.png", "b.png", 1)},
		"another type":        {http.MethodGet, strings.Replace(address, "image%2Fpng", "text%2Fhtml", 1)},
		"a longer life":       {http.MethodGet, strings.Replace(address, "X-Amz-Expires=600", "X-Amz-Expires=6000", 1)},
		"a deletion":          {http.MethodDelete, address},
		"a URL without query": {http.MethodGet, strings.Split(address, "?")[0]},
	} {
		if refused.address == address && refused.method == http.MethodGet {
			t.Fatalf("%s: the address is unchanged", what)
		}
		if res, _ := fetchURL(t, refused.method, refused.address); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s = %d, want 403", what, res.StatusCode)
		}
	}

	brief := presign(newPresigner(time.Second))
	watch.Until(t, "the URL to expire", func() bool {
		res, _ := fetchURL(t, http.MethodGet, brief)
		return res.StatusCode == http.StatusForbidden
	})
}

// TestPresignerSettings gives a Presigner the name by which clients know the
// server, and settings that it must refuse.
func TestPresignerSettings(t *testing.T) {
	t.Parallel()
	const address = "s3://bucket?endpoint=http://minio.internal:9000"
	good := blob.PresignOptions{AccessKey: "key", SecretKey: "secret", Endpoint: "https://files.example.com", Lifetime: time.Minute}
	p, err := blob.NewPresigner(address, good)
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.PresignRead(t.Context(), "a/b.png", blob.ResponseHeaders{ContentType: "image/png"})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host != "files.example.com" || u.Path != "/bucket/a/b.png" || u.Query().Get("X-Amz-Expires") != "60" {
		t.Errorf("URL = %s, %v", text, err)
	}
	if strings.Contains(text, "secret") {
		t.Error("the URL contains the secret key")
	}
	if _, err := p.PresignRead(t.Context(), "../b.png", blob.ResponseHeaders{}); err == nil {
		t.Error("an invalid key was signed")
	}

	for what, change := range map[string]func(*blob.PresignOptions) string{
		"a folder":         func(*blob.PresignOptions) string { return "file:///tmp" },
		"no secret":        func(o *blob.PresignOptions) string { o.SecretKey = ""; return address },
		"a long lifetime":  func(o *blob.PresignOptions) string { o.Lifetime = time.Hour; return address },
		"no lifetime":      func(o *blob.PresignOptions) string { o.Lifetime = 0; return address },
		"a path":           func(o *blob.PresignOptions) string { o.Endpoint = "https://x.example/files"; return address },
		"a password":       func(o *blob.PresignOptions) string { o.Endpoint = "https://me:secret@x.example"; return address },
		"another protocol": func(o *blob.PresignOptions) string { o.Endpoint = "ftp://x.example"; return address },
	} {
		o := good
		if _, err := blob.NewPresigner(change(&o), o); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}
