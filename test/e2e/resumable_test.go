package e2e

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/file/resumable"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/api/apitest"
	"atelier/test/program"
)

// resumableCrashes are the points in the life of a resumable upload, and how
// many bytes of a file with more than one part count after a death there.
var resumableCrashes = []struct {
	point  string
	offset int
}{
	{"resumable.after_part:1", 0},
	{"resumable.after_commit:1", 8 << 20},
	{"resumable.after_part:2", 8 << 20},
	{"resumable.after_ingest:1", 8 << 20},
	{"resumable.after_finish:1", resumableSize},
}

const resumableSize = 9 << 20

// TestKilledWithAnUpload kills the program in the middle of the request that
// sends a whole file. The client asks what has arrived and goes on from there.
func TestKilledWithAnUpload(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			for _, c := range resumableCrashes {
				t.Run(c.point, func(t *testing.T) {
					s := newStage(t, engine)
					killUpload(t, s, c.point, c.offset)
					s.keptFiles()
				})
			}
		})
	}
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		for _, c := range resumableCrashes {
			t.Run(c.point, func(t *testing.T) {
				bucket := blobtest.S3(t)
				killUpload(t, newStage(t, "postgres", onBucket(bucket)...), c.point, c.offset)
				store, err := blob.Open(t.Context(), bucket.Address(), bucket.Options())
				if err != nil {
					t.Fatal(err)
				}
				defer store.Close()
				watch.Until(t, "the sweep of all parts", func() bool { return len(blobtest.Keys(t, store, resumable.Folder)) == 0 })
			})
		}
	})
}

// onBucket are the settings of a service that stores its files in a bucket.
func onBucket(bucket blobtest.Bucket) []string {
	return []string{"ATELIER_S3_ACCESS_KEY=" + bucket.AccessKey, "ATELIER_S3_SECRET_KEY=" + bucket.SecretKey, "ATELIER_BLOBS=" + bucket.Address()}
}

// killUpload kills the program at a point of an upload, after which so many
// bytes count, and finishes the upload with another program. A third one is left
// running, and sweeps what belongs to nothing.
func killUpload(t *testing.T, s *site, point string, offset int) {
	token := s.token("anna@example.com")
	env := s.env
	s.env = append(slices.Clone(env), "ATELIER_CRASH="+point)
	n := s.serve()
	n.token = token
	file := wave(resumableSize)
	location := n.beginUpload(len(file), "key")
	if res, err := n.sendBytes(location, 0, file); err == nil {
		res.Body.Close()
		t.Errorf("the program answered %d", res.StatusCode)
	}
	<-n.exited
	if !killed(n.err) {
		t.Fatalf("the program ended with %v", n.err)
	}
	s.check() // with an unfinished upload, and parts without a row

	s.env = env
	n = s.serve()
	n.token = token
	if again := n.beginUpload(len(file), "key"); again != location {
		t.Errorf("the same creation = %s, want %s", again, location)
	}
	if got := n.uploadOffset(location).Header.Get("Upload-Offset"); got != strconv.Itoa(offset) {
		t.Fatalf("offset = %s, want %d", got, offset)
	}
	if offset < len(file) {
		n.finishUpload(location, offset, file)
	}
	n.checkUpload(location, file)
	n.stop()
	s.check()

	// Short times would let the sweep take the parts of a slow request.
	s.env = append(slices.Clone(env), "ATELIER_RETENTION_ORPHANS=1s", "ATELIER_RETENTION_EVERY=1s")
	program.ForgetDead(t, dbtest.Open(t, s.database))
	n = s.serve()
	n.token = token
	id := n.uploadOffset(location).Header.Get("Upload-Id")
	n.call("DELETE", "/api/v2/uploads/"+id, "").want(t, http.StatusNoContent)
	s.check()
}

// TestUploadOnTwoNodes sends the parts of a file to two nodes in turn, which
// share an S3 bucket and a database. Then it sends each part of a file to both at
// once.
func TestUploadOnTwoNodes(t *testing.T) {
	t.Parallel()
	s := newStage(t, "postgres", onBucket(blobtest.S3(t))...)
	token := s.token("anna@example.com")
	first, second := s.serveTwo()
	nodes := []*node{first, second}
	for _, n := range nodes {
		n.token = token
	}
	file := wave(resumableSize)
	location := nodes[0].beginUpload(len(file), "in-turn")
	const size = 2 << 20
	for i, part := range slices.Collect(slices.Chunk(file, size)) {
		if status, err := nodes[(i+1)%2].sendStatus(location, i*size, part); err != nil || status != http.StatusNoContent {
			t.Fatalf("part %d = %d, %v", i, status, err)
		}
	}
	for _, n := range nodes {
		n.checkUpload(location, file)
	}

	location = nodes[1].beginUpload(len(file), "at-once")
	for i, part := range slices.Collect(slices.Chunk(file, size)) {
		var statuses [2]int
		var errs [2]error
		dbtest.Together(2, func(which int) { statuses[which], errs[which] = nodes[which].sendStatus(location, i*size, part) })
		slices.Sort(statuses[:])
		if errors.Join(errs[:]...) != nil || statuses != [2]int{http.StatusNoContent, http.StatusConflict} {
			t.Fatalf("part %d to both = %v, %v; want that one wins", i, statuses, errs)
		}
	}
	for _, n := range nodes {
		n.checkUpload(location, file)
	}
	s.check()
}

// TestUnfinishedUploadsExpire leaves an upload alone until the program has
// deleted its row, its bytes and its share of the storage.
func TestUnfinishedUploadsExpire(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, engine, "ATELIER_UPLOADS_UNFINISHED_FOR=15s", "ATELIER_UPLOADS_UNFINISHED=1", "ATELIER_RETENTION_EVERY=1s")
			n := s.serve()
			n.token = s.token("anna@example.com")
			file := wave(1 << 20)
			location := n.beginUpload(len(file), "key")
			if status, err := n.sendStatus(location, 0, file[:1000]); err != nil || status != http.StatusNoContent {
				t.Fatalf("the first bytes = %d, %v", status, err)
			}
			used := func() float64 {
				v := s.do("admin", "storage", "show", "--email", "anna@example.com")
				return v["used_bytes"].(float64)
			}
			if got := used(); got != float64(len(file)) {
				t.Errorf("the account uses %v bytes, want the %d of the whole file", got, len(file))
			}
			n.call("POST", "/api/v2/uploads/resumable", "", "Tus-Resumable", "1.0.0", "Upload-Length", "5").want(t, http.StatusTooManyRequests)

			watch.Until(t, "the end of the upload", func() bool {
				return n.call("HEAD", location, "", "Tus-Resumable", "1.0.0").StatusCode == http.StatusNotFound
			})
			watch.Until(t, "the free storage", func() bool { return used() == 0 })
			s.keptFiles()
			n.beginUpload(len(file), "key")
			s.check()
		})
	}
}

// beginUpload creates a resumable upload and returns its address.
func (n *node) beginUpload(length int, key string) string {
	n.t.Helper()
	a := n.call("POST", "/api/v2/uploads/resumable", "", "Tus-Resumable", "1.0.0", "Upload-Length", strconv.Itoa(length), "Idempotency-Key", key)
	a.want(n.t, http.StatusCreated)
	return a.Header.Get("Location")
}

func (n *node) uploadOffset(location string) answer {
	n.t.Helper()
	a := n.call("HEAD", location, "", "Tus-Resumable", "1.0.0")
	a.want(n.t, http.StatusOK)
	return a
}

// sendBytes sends bytes of a resumable upload. The program may die of it.
func (n *node) sendBytes(location string, offset int, data []byte) (*http.Response, error) {
	n.t.Helper()
	r, err := http.NewRequest("PATCH", n.url+location, bytes.NewReader(data))
	if err != nil {
		n.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+n.token)
	r.Header.Set("Content-Type", "application/offset+octet-stream")
	r.Header.Set("Tus-Resumable", "1.0.0")
	r.Header.Set("Upload-Offset", strconv.Itoa(offset))
	// A refusal does not wait for the bytes. The client must not send them then,
	// or the closed connection could hide the answer.
	r.Header.Set("Expect", "100-continue")
	client := http.Client{Transport: apitest.Transport{T: n.t, Next: &http.Transport{ExpectContinueTimeout: time.Minute, DisableKeepAlives: true}}}
	return client.Do(r)
}

// sendStatus is like sendBytes, and returns the status of the answer.
func (n *node) sendStatus(location string, offset int, data []byte) (int, error) {
	n.t.Helper()
	res, err := n.sendBytes(location, offset, data)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// finishUpload sends the rest of a file.
func (n *node) finishUpload(location string, offset int, file []byte) {
	n.t.Helper()
	res, err := n.sendBytes(location, offset, file[offset:])
	if err != nil {
		n.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent || res.Header.Get("Upload-Id") == "" {
		text, _ := io.ReadAll(res.Body)
		n.t.Fatalf("the rest = %d %s", res.StatusCode, text)
	}
}

// checkUpload requires that a resumable upload is finished and has the bytes of
// the file.
func (n *node) checkUpload(location string, file []byte) {
	n.t.Helper()
	a := n.uploadOffset(location)
	if a.Header.Get("Upload-Offset") != strconv.Itoa(len(file)) {
		n.t.Errorf("offset = %s, want %d", a.Header.Get("Upload-Offset"), len(file))
	}
	record := n.json("/api/v2/uploads/" + a.Header.Get("Upload-Id"))
	client := http.Client{Timeout: time.Minute}
	res, err := client.Get(record["url"].(string))
	if err != nil {
		n.t.Fatal(err)
	}
	defer res.Body.Close()
	if stored, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(stored, file) {
		n.t.Errorf("the file has %d bytes, %v; want the %d that were sent", len(stored), err, len(file))
	}
}
