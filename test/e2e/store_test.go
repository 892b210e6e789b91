package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"atelier/internal/file/blob/blobtest"
	"atelier/internal/testkit/watch"
)

// storeProxy stands before an S3 server and counts the reads of objects.
type storeProxy struct {
	*httptest.Server
	reads atomic.Int64
}

// startStoreProxy puts a proxy before the bucket.
func startStoreProxy(t *testing.T, bucket *blobtest.Bucket) *storeProxy {
	t.Helper()
	target, err := url.Parse(bucket.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is signed
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	p := &storeProxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "" {
			p.reads.Add(1)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	bucket.Endpoint = p.URL
	return p
}

// serveOnS3 starts a server on SQLite whose files are in a bucket.
func serveOnS3(t *testing.T, s *site, bucket blobtest.Bucket) *node {
	t.Helper()
	s.env = append(s.env, "ATELIER_S3_ACCESS_KEY="+bucket.AccessKey, "ATELIER_S3_SECRET_KEY="+bucket.SecretKey)
	n := s.serve("--blobs", bucket.Address())
	n.token = s.token("anna@example.com")
	return n
}

// wave is a silent recording of size bytes.
func wave(size int) []byte {
	const rate = 192_000 // so that a long file is a short sound
	b := make([]byte, 0, size)
	b = append(b, "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(size-8))
	b = append(b, "WAVEfmt "...)
	for _, v := range []any{uint32(16), uint16(1), uint16(2), uint32(rate), uint32(4 * rate), uint16(4), uint16(16)} {
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(size-44))
	return append(b, make([]byte, size-44)...)
}

// upload stores a recording and gives its signed address.
func (n *node) upload(file []byte) string {
	n.t.Helper()
	a := n.call("POST", "/api/v2/uploads", string(file), "Content-Type", "audio/wav")
	return a.want(n.t, 201)["url"].(string)
}

// memoryPeak is VmHWM of a process in MiB.
func memoryPeak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("no VmHWM on this system: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib >> 10
		}
	}
	t.Skip("no VmHWM on this system")
	return 0
}

// unreadBytes is what connections to a port hold that their server has not read.
func unreadBytes(t *testing.T, port int) int64 {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Skipf("no table of connections on this system: %v", err)
	}
	local := fmt.Sprintf(":%04X", port)
	var unread int64
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.HasSuffix(fields[1], local) || fields[3] != "01" { // established
			continue
		}
		_, queue, _ := strings.Cut(fields[4], ":")
		n, err := strconv.ParseInt(queue, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		unread += n
	}
	return unread
}

// TestStalledUploads sends most of a part of many files and then nothing more.
// ATELIER_TEST_STALLED=150 is the long form.
func TestStalledUploads(t *testing.T) {
	needOneProcess(t, "it measures the memory of one process")
	t.Parallel()
	uploads := 40
	if long := os.Getenv("ATELIER_TEST_STALLED"); long != "" {
		var err error
		if uploads, err = strconv.Atoi(long); err != nil {
			t.Fatal(err)
		}
	}
	bucket := blobtest.S3(t)
	n := serveOnS3(t, newSite(t), bucket)
	n.upload(wave(1 << 20))
	idle := memoryPeak(t, n.cmd.Process.Pid)

	const sent = 7 << 20 // less than the store sends at once
	file := wave(40 << 20)
	address := strings.TrimPrefix(n.url, "http://")
	for range uploads {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		head := fmt.Sprintf("POST /api/v2/uploads HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: audio/wav\r\nContent-Length: %d\r\n\r\n", address, n.token, len(file))
		if _, err := io.WriteString(conn, head); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(file[:sent]); err != nil {
			t.Fatal(err)
		}
	}
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	watch.Until(t, "the server to read what was sent", func() bool { return unreadBytes(t, port) == 0 })

	n.upload(wave(1 << 20)) // others are served beside them
	peak := memoryPeak(t, n.cmd.Process.Pid)
	t.Logf("VmHWM: %d MiB idle, %d MiB with %d stalled uploads", idle, peak, uploads)
	if grown := peak - idle; grown > 40+uploads/2 {
		t.Errorf("%d stalled uploads took %d MiB", uploads, grown)
	}
}

// TestManyRangesCostOneRead asks for every other few bytes of a file in S3.
func TestManyRangesCostOneRead(t *testing.T) {
	t.Parallel()
	bucket := blobtest.S3(t)
	store := startStoreProxy(t, &bucket)
	n := serveOnS3(t, newSite(t), bucket)
	file := wave(1 << 20)
	address := n.upload(file)

	for _, c := range []struct {
		ranges, apart int
		status        int
		length        int
	}{
		{5400, 12, http.StatusPartialContent, 5399*12 + 1}, // so near that they are one
		{4000, 120, http.StatusOK, len(file)},
	} {
		var all []string
		for i := range c.ranges {
			all = append(all, fmt.Sprintf("%d-%d", i*c.apart, i*c.apart))
		}
		request, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Range", "bytes="+strings.Join(all, ","))
		before := store.reads.Load()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		reads := store.reads.Load() - before
		t.Logf("%d ranges: status %d, %d bytes, %d reads at the store", c.ranges, response.StatusCode, len(body), reads)
		if response.StatusCode != c.status || !bytes.Equal(body, file[:c.length]) {
			t.Errorf("status %d with %d bytes, want %d with %d", response.StatusCode, len(body), c.status, c.length)
		}
		if reads > 2 { // one to check the file, one to serve it
			t.Errorf("%d reads at the store", reads)
		}
	}
}
