package blobtest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"atelier/internal/file/blob"
	"atelier/internal/testkit/servers"
)

const (
	accessKey = "atelier-test"
	secretKey = "atelier-test-secret"
)

// Bucket is an empty bucket on the S3 server that this test binary runs.
type Bucket struct {
	Name, Endpoint       string
	AccessKey, SecretKey string
}

// Address returns the bucket's URL for blob.Open.
func (b Bucket) Address() string {
	return "s3://" + b.Name + "?" + url.Values{"endpoint": {b.Endpoint}}.Encode()
}

// Options returns the bucket's options for blob.Open.
func (b Bucket) Options() blob.Options {
	return blob.Options{AccessKey: b.AccessKey, SecretKey: b.SecretKey, Now: time.Now}
}

// Client returns an S3 client for tests that access the bucket without package
// blob.
func (b Bucket) Client(t testing.TB) minio.Core {
	t.Helper()
	u, err := url.Parse(b.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	c, err := minio.New(u.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(b.AccessKey, b.SecretKey, ""),
		Region: "us-east-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return minio.Core{Client: c}
}

var buckets atomic.Int64

// S3 creates an empty bucket for one test on a real S3 server.
func S3(t testing.TB) Bucket {
	t.Helper()
	b := Bucket{
		Name:      fmt.Sprintf("test-%d", buckets.Add(1)),
		Endpoint:  servers.Need(t, "S3", "ATELIER_TEST_S3", startServer),
		AccessKey: accessKey,
		SecretKey: secretKey,
	}
	if err := b.Client(t).MakeBucket(t.Context(), b.Name, minio.MakeBucketOptions{}); err != nil {
		t.Fatalf("S3 for tests: make bucket: %v", err)
	}
	return b
}

var startServer = sync.OnceValues(func() (string, error) {
	program, err := servers.Program("s3server", "github.com/versity/versitygw/cmd/versitygw")
	if err != nil {
		return "", err
	}
	dir, err := servers.Dir("", "atelier-s3-")
	if err != nil {
		return "", err
	}
	// Starting is retried, because another process may use the port before the
	// server does.
	for range 5 {
		var endpoint string
		if endpoint, err = start(program, dir); err == nil {
			return endpoint, nil
		}
	}
	return "", err
})

// start runs the S3 server on a free port until the test binary ends, and
// returns the server's URL.
func start(program, dir string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := l.Addr().String()
	l.Close()
	data := filepath.Join(dir, "data")
	meta := filepath.Join(dir, "meta")
	if err := errors.Join(os.MkdirAll(data, 0o700), os.MkdirAll(meta, 0o700)); err != nil {
		return "", err
	}
	args := []string{"--port", address, "--health", "/health", "--quiet", "posix"}
	if !hasAttributes(data) {
		args = append(args, "--sidecar", meta)
	}
	cmd := exec.Command(program, append(args, data)...)
	cmd.Dir = dir
	cmd.Env = []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey}
	server, err := servers.Start(cmd)
	if err != nil {
		return "", err
	}
	endpoint := "http://" + address
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		select {
		case <-server.Ended:
			return "", fmt.Errorf("versitygw ended: %s", server.Log())
		case <-time.After(10 * time.Millisecond):
		}
		if answer, err := http.Get(endpoint + "/health"); err == nil {
			answer.Body.Close()
			return endpoint, nil
		}
	}
	return "", errors.New("versitygw did not answer within 30 s")
}
