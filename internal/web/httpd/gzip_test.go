package httpd_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atelier/internal/web/httpd"
)

func unzip(t testing.TB, stream []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	r.Multistream(false) // many clients read one stream and no more
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestAcceptsGzip(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		header []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZip"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"gzip, deflate, br, zstd"}, true},
		{[]string{"br", "gzip;q=0.5"}, true},
		{[]string{"br"}, false},
		{[]string{"*"}, true},
		{[]string{"*;q=0"}, false},
		{[]string{"gzip;q=0, *"}, false},
		{[]string{"gzip ; q=0"}, false},
		{[]string{"gzip;q=0.000"}, false},
		{[]string{"gzip;q=2"}, false},
		{[]string{"gzip;q=NaN"}, false},
		{[]string{"gzip;level=9"}, false},
		{[]string{"identity"}, false},
		{[]string{"identity, gzip;q=0.5"}, false},
		{[]string{"identity;q=0.5, gzip"}, true},
		{[]string{"identity;q=0, *"}, true},
		{[]string{"gzipped"}, false},
	} {
		r := &http.Request{Header: http.Header{"Accept-Encoding": x.header}}
		if got := httpd.AcceptsGzip(r); got != x.want {
			t.Errorf("%q = %v, want %v", x.header, got, x.want)
		}
		r.Header.Set("Range", "bytes=0-1")
		if httpd.AcceptsGzip(r) {
			t.Errorf("%q with a range is compressed", x.header)
		}
	}
}

func TestGzipHasAnEndForEachCaller(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		content := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(rt, "content")
		rest := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(rt, "rest")
		g := httpd.Compress(content)
		got := unzip(t, append(bytes.Clone(g.StreamHead()), g.StreamTail(rest)...))
		if want := append(bytes.Clone(content), rest...); !bytes.Equal(got, want) {
			rt.Errorf("%d bytes, want %d", len(got), len(want))
		}
		if !bytes.Equal(unzip(t, httpd.CompressOnce(content)), content) {
			rt.Error("compressed once it is something else")
		}
	})

	for _, size := range []int{1<<16 - 1, 1 << 16, 1 << 17} { // blocks that are full, and one more
		rest := bytes.Repeat([]byte("x"), size)
		g := httpd.Compress([]byte("content "))
		if got := unzip(t, append(bytes.Clone(g.StreamHead()), g.StreamTail(rest)...)); len(got) != 8+size {
			t.Errorf("%d bytes, want %d", len(got), 8+size)
		}
	}
}

func TestGzipETag(t *testing.T) {
	t.Parallel()
	tag := httpd.ETag([]byte("x"))
	if zipped := httpd.GzipETag(tag); zipped == tag || strings.Count(zipped, `"`) != 2 || !strings.HasSuffix(zipped, `"`) {
		t.Errorf("the tag of the compressed form of %s is %s", tag, zipped)
	}
}
