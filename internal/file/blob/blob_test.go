package blob_test

import (
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"atelier/internal/file/blob"
	"atelier/internal/file/blob/blobtest"
)

func TestDisk(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store { return openDisk(t, t.TempDir()) })
}

func TestS3(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store { return openS3(t, blobtest.S3(t)) })
}

func openAddress(t *testing.T, address string, o blob.Options) blob.Store {
	t.Helper()
	s, err := blob.Open(t.Context(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openDisk(t *testing.T, folder string) blob.Store {
	t.Helper()
	return openAddress(t, "file://"+folder, blob.Options{Now: time.Now})
}

func openS3(t *testing.T, b blobtest.Bucket) blob.Store {
	t.Helper()
	return openAddress(t, b.Address(), b.Options())
}

func TestAddressesRefused(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	folder := t.TempDir()
	for _, tt := range []struct{ name, address, reason string }{
		{"nothing", "", "must start with"},
		{"another scheme", "ftp://host/" + secret, "must start with"},
		{"a bare path", folder, "must start with"},
		{"no URL", "s3://b\x00?endpoint=http://h&x=" + secret, "not a URL"},
		{"a folder that is a host", "file://data", "file:///path"},
		{"a folder with a query", "file://" + folder + "?a=" + secret, "file:///path"},
		{"user in the address", "s3://key:" + secret + "@bucket?endpoint=http://h", "credentials"},
		{"user in the endpoint", "s3://bucket?endpoint=http://key:" + secret + "@h", "credentials"},
		{"key in the query", "s3://bucket?endpoint=http://h&secret_key=" + secret, `"secret_key"`},
		{"no bucket", "s3://?endpoint=http://h", "s3://bucket"},
		{"bad bucket", "s3://B_?endpoint=http://h", "Bucket name"},
		{"path behind the bucket", "s3://bucket/a?endpoint=http://h", "s3://bucket"},
		{"no endpoint", "s3://bucket", "endpoint="},
		{"endpoint without scheme", "s3://bucket?endpoint=h:9000", "endpoint="},
		{"endpoint with a path", "s3://bucket?endpoint=http://h/" + secret, "without path"},
		{"two endpoints", "s3://bucket?endpoint=http://h&endpoint=http://i", "twice"},
		{"malformed query", "s3://bucket?endpoint=http://h&a=%zz" + secret, "malformed"},
	} {
		_, err := blob.Open(t.Context(), tt.address, blob.Options{AccessKey: "a", SecretKey: "b", Now: time.Now})
		if err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.reason)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error tells the secret: %v", tt.name, err)
		}
	}
	_, err := blob.Open(t.Context(), "s3://bucket?endpoint=http://127.0.0.1:1", blob.Options{Now: time.Now})
	if err == nil || !strings.Contains(err.Error(), "access key") {
		t.Errorf("no keys: %v, want a word about the access key", err)
	}
}

func FuzzKeys(f *testing.F) {
	for _, key := range append(blobtest.BadKeys, "a", "a/b.png", "...") {
		f.Add(key)
	}
	s, err := blob.Open(f.Context(), "file://"+f.TempDir(), blob.Options{Now: time.Now})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	good := regexp.MustCompile(`^[A-Za-z0-9._-]{1,255}(/[A-Za-z0-9._-]{1,255})*$`)
	f.Fuzz(func(t *testing.T, key string) {
		r, _, err := s.Open(t.Context(), key, 0, -1)
		if err == nil {
			io.Copy(io.Discard, r)
			t.Fatalf("an empty store has %q", key)
		}
		if !errors.Is(err, blob.ErrBadKey) && (len(key) > 512 || !good.MatchString(key) || !filepath.IsLocal(key) || filepath.Clean(key) != key) {
			t.Errorf("%q was taken for a key", key)
		}
	})
}
