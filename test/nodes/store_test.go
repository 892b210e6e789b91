package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/testkit/watch"
)

// resultMiB is the size of the result in TestLargeResults: many parts of a
// multipart upload.
const resultMiB = 64

// TestLargeResults makes a large result. Its worker sends it to the S3 server
// in parts, without keeping it in memory, and readers get it from the S3 server,
// after the node has checked that they may.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	bucket := blobtest.S3(t)
	c := newCluster(t, dbtest.Bare(t, "sqlite"), modelTool, &bucket, "ATELIER_STORAGE_PRESIGNED=true", "ATELIER_SHUTDOWN_DELAY=0s")
	n := c.newNode("node", "api,worker", "")
	n.start(n.url())
	token := c.newToken()
	tool, hash := findTool(t, n.url(), token)
	l := newLoad(n.url(), token, tool, hash)

	// A small result first, so that everything is loaded.
	makeModel(t, l, 1)
	before := memoryPeak(t, n.cmd.Process.Pid)
	output := makeModel(t, l, resultMiB)
	grown := memoryPeak(t, n.cmd.Process.Pid) - before
	t.Logf("a result of %d MiB: peak memory %d MiB before, %d MiB more with it", resultMiB, before, grown)
	if grown > resultMiB/2 {
		t.Errorf("a result of %d MiB took %d MiB of memory", resultMiB, grown)
	}
	parts := 0
	for object := range bucket.Client(t).Client.ListObjects(t.Context(), bucket.Name, minio.ListObjectsOptions{Recursive: true}) {
		if object.Err != nil {
			t.Fatal(object.Err)
		}
		if object.Size == resultMiB<<20 {
			_, text, _ := strings.Cut(strings.Trim(object.ETag, `"`), "-") // of a multipart upload: hash and number of parts
			parts, _ = strconv.Atoi(text)
		}
	}
	if parts != resultMiB/8 {
		t.Errorf("the result has %d parts in the bucket, want %d of 8 MiB", parts, resultMiB/8)
	}

	res := request(t, http.MethodGet, output.URL)
	location := res.Header.Get("Location")
	if res.StatusCode != http.StatusTemporaryRedirect || !strings.HasPrefix(location, bucket.Endpoint+"/") || !strings.Contains(location, "X-Amz-Expires=60") ||
		res.Header.Get("Cache-Control") != "private, no-store" {
		t.Fatalf("read = %s to %s, %v; want a redirect to the bucket for a minute, which nobody caches", res.Status, location, res.Header)
	}
	file, err := http.Get(output.URL) // follows the redirect
	if err != nil {
		t.Fatal(err)
	}
	defer file.Body.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file.Body)
	if err != nil || file.StatusCode != http.StatusOK || size != resultMiB<<20 || hex.EncodeToString(sum.Sum(nil)) != output.SHA256 {
		t.Errorf("the file = %s with %d bytes, %v", file.Status, size, err)
	}
	if got := file.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment; filename=") || file.Header.Get("Content-Type") != "model/gltf-binary" {
		t.Errorf("the file has the headers %v", file.Header)
	}
	if res := request(t, http.MethodHead, output.URL); res.StatusCode != http.StatusOK || res.ContentLength != resultMiB<<20 {
		t.Errorf("HEAD = %s with %d bytes, want it answered by the node", res.Status, res.ContentLength)
	}

	// Access is checked before anything is signed.
	if res := request(t, http.MethodGet, strings.Replace(output.URL, "&s=", "&s=x", 1)); res.StatusCode != http.StatusForbidden || res.Header.Get("Location") != "" {
		t.Errorf("a forged URL = %s, %v", res.Status, res.Header)
	}
	if _, ok := l.send(t.Context(), http.MethodDelete, n.url()+"/api/v2/library/"+output.ID, "", http.StatusNoContent); !ok {
		t.Fatal(l.failures)
	}
	if res := request(t, http.MethodGet, output.URL); res.StatusCode != http.StatusNotFound || res.Header.Get("Location") != "" {
		t.Errorf("a deleted file = %s, %v", res.Status, res.Header)
	}
	n.stop()
}

// output is a result of a run.
type output struct {
	ID, URL, SHA256 string
}

// makeModel runs the tool for a model of the given size, and returns it. The
// model has a head, and then noise for its buffer.
func makeModel(t *testing.T, l *load, mib int) output {
	t.Helper()
	size := mib << 20
	description := fmt.Sprintf(`{"asset":{"version":"2.0"},"buffers":[{"byteLength":%d}]}`, size-256)
	description += strings.Repeat(" ", 256-12-8-8-len(description)) // so that the head has 256 bytes
	head := []byte("glTF")
	for _, number := range []int{2, size, len(description)} {
		head = binary.LittleEndian.AppendUint32(head, uint32(number))
	}
	head = append(head, "JSON"+description...)
	head = binary.LittleEndian.AppendUint32(head, uint32(size-256))
	head = append(head, "BIN\x00"...)
	step := fmt.Sprintf(`{"kind": "raw", "base64": %q, "size_mb": %d}`, base64.StdEncoding.EncodeToString(head), mib)
	id, ok := l.createScript(t.Context(), `[{"output": `+step+`}]`)
	var run struct {
		Status  string
		Outputs []output
	}
	watch.Until(t, "the run", func() bool {
		text, read := l.send(context.WithoutCancel(t.Context()), http.MethodGet, l.base+"/api/v2/generate/"+id, "", http.StatusOK)
		if !ok || !read || json.Unmarshal(text, &run) != nil {
			t.Fatal(l.failures)
		}
		return run.Status != "pending"
	})
	if run.Status != "succeeded" || len(run.Outputs) != 1 {
		t.Fatalf("run = %+v", run)
	}
	return run.Outputs[0]
}

// request sends a request without credentials, follows no redirect, and returns
// the response without its body.
func request(t *testing.T, method, address string) *http.Response {
	t.Helper()
	r, err := http.NewRequest(method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// memoryPeak is VmHWM of a process in MiB.
func memoryPeak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("no VmHWM on this system: %v", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Skip("no VmHWM on this system")
	}
	kib, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
