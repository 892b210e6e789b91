package blob

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
)

func parse(t *testing.T, address string) s3Address {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	a, err := parseS3(u)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestOnlyTheEndpointIsReached(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"http://127.0.0.1:1", "https://s3.eu-west-1.amazonaws.com", "http://[::1]"} {
		tr := parse(t, "s3://bucket?endpoint="+url.QueryEscape(endpoint)).newTransport()
		if tr.Proxy != nil {
			t.Errorf("%s: a proxy may be used", endpoint)
		}
		for _, other := range []string{"169.254.169.254:80", "127.0.0.1:2", "s3.amazonaws.com:443", "bucket.s3.eu-west-1.amazonaws.com:443", "[::2]:80"} {
			if _, err := tr.DialContext(t.Context(), "tcp", other); err == nil || !strings.Contains(err.Error(), "refusing to connect") {
				t.Errorf("%s: dial %s = %v, want a refusal", endpoint, other, err)
			}
		}
	}
}

// TestRequestsGoToTheEndpoint shows the hosts that minio asks for, also where
// it knows the endpoint's owner.
func TestRequestsGoToTheEndpoint(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"s3://bucket?endpoint=https://s3.eu-west-1.amazonaws.com&region=eu-west-1",
		"s3://bucket?endpoint=https://storage.googleapis.com",
		"s3://bucket?endpoint=https://oss-cn-beijing.aliyuncs.com",
		"s3://bucket?endpoint=http://minio.internal:9000",
	} {
		a := parse(t, address)
		b, err := newBucket(a, "key", "secret")
		if err != nil {
			t.Fatal(err)
		}
		u, err := b.core.PresignedGetObject(t.Context(), "bucket", "a/b", time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		if u.Host != a.endpoint.Host || u.Path != "/bucket/a/b" {
			t.Errorf("%s: requests go to %s%s", address, u.Host, u.Path)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect was followed")
	}))
	defer away.Close()
	server := httptest.NewServer(http.RedirectHandler(away.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	if _, err := openS3(t.Context(), parse(t, "s3://bucket?endpoint="+server.URL), "key", "secret"); err == nil {
		t.Error("a redirect was taken for a bucket")
	}
}

func TestStalledBody(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "some")
			w.(http.Flusher).Flush()
			<-stop
		}
	}))
	defer server.Close()
	defer close(stop)
	b, err := openS3(t.Context(), parse(t, "s3://bucket?endpoint="+server.URL), "key", "secret")
	if err != nil {
		t.Fatal(err)
	}
	b.stallTimeout = 50 * time.Millisecond
	r, _, err := b.Open(t.Context(), "a", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Unavailable || !errors.Is(err, errStalled) {
		t.Errorf("read = %q, %v, want %s", got, err, fault.Unavailable)
	}
}

func TestIgnoredRangeIsAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		io.WriteString(w, "the whole value")
	}))
	defer server.Close()
	b, err := openS3(t.Context(), parse(t, "s3://bucket?endpoint="+server.URL), "key", "secret")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Open(t.Context(), "a", 4, 5); err == nil {
		t.Error("bytes from the start were taken for bytes from the middle")
	}
}
