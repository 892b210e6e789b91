package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

// onNodes runs the tests of this package on several nodes: every installation
// has two API nodes and two workers, each with a data folder of its own, on one
// PostgreSQL database and one S3 bucket. A proxy sends the requests to the API
// nodes in turn.
var onNodes = flag.Bool("nodes", false, "run every installation as two API nodes and two workers on PostgreSQL and S3, behind a proxy")

// engines are the databases with which tests run.
func engines() []string {
	if *onNodes {
		return []string{"postgres"}
	}
	return dbtest.Engines
}

// needOneProcess skips a test of a property that only one process has, or that
// only an installation in one folder has.
func needOneProcess(t *testing.T, reason string) {
	t.Helper()
	if *onNodes {
		t.Skip("not with -nodes: " + reason)
	}
}

// spread lets the installation consist of several nodes.
func (s *site) spread() {
	s.t.Helper()
	bucket := blobtest.S3(s.t)
	s.bucket = &bucket
	s.database = dbtest.Bare(s.t, "postgres")
	secret := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("n", 32)))
	s.nodesEnv = append(onBucket(bucket), "ATELIER_SECRET="+secret, "ATELIER_HTTP_TRUSTED_PROXIES=127.0.0.0/8")
}

// keptFiles fails the test unless the stored files come to be those that the
// database names.
func (s *site) keptFiles() {
	s.t.Helper()
	db := dbtest.Open(s.t, s.database)
	if s.bucket == nil {
		program.KeptFiles(s.t, db, s.data)
		return
	}
	program.KeptKeys(s.t, db, s.storedFiles)
}

// storedFiles are the keys of the stored files.
func (s *site) storedFiles() map[string]bool {
	s.t.Helper()
	if s.bucket == nil {
		return program.Files(s.t, s.data)
	}
	keys := map[string]bool{}
	objects := s.bucket.Client(s.t).Client.ListObjects(s.t.Context(), s.bucket.Name, minio.ListObjectsOptions{Recursive: true})
	for object := range objects {
		if object.Err != nil {
			s.t.Fatal(object.Err)
		}
		keys[object.Key] = true
	}
	return keys
}

// eachFile calls see with every file of the installation: those of its data
// folder, if it has one, and those of its bucket.
func (s *site) eachFile(see func(name string, content []byte)) {
	s.t.Helper()
	err := filepath.WalkDir(s.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		see(filepath.Base(path), content)
		return err
	})
	if err != nil && (s.bucket == nil || !errors.Is(err, fs.ErrNotExist)) {
		s.t.Fatal(err)
	}
	if s.bucket == nil {
		return
	}
	store := s.bucket.Client(s.t).Client
	for key := range s.storedFiles() {
		object, err := store.GetObject(s.t.Context(), s.bucket.Name, key, minio.GetObjectOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		content, err := io.ReadAll(object)
		if err != nil {
			s.t.Fatal(err)
		}
		see(key, content)
	}
}

// overwriteFile replaces the bytes of a stored file.
func (s *site) overwriteFile(key string, data []byte) {
	s.t.Helper()
	if s.bucket == nil {
		if err := os.WriteFile(filepath.Join(s.data, "blobs", "data", key), data, 0o600); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	_, err := s.bucket.Client(s.t).Client.PutObject(s.t.Context(), s.bucket.Name, key, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

// serveNodes starts two API nodes and two workers, and a proxy before them, and
// waits until all are ready. The returned node stands for all of them: they are
// stopped and killed together, and if one of them ends by itself, the others are
// killed.
func (s *site) serveNodes(args ...string) *node {
	s.t.Helper()
	listen := "127.0.0.1:0"
	var rest []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--listen" {
			i++
			listen = args[i]
			continue
		}
		rest = append(rest, args[i])
	}
	p := startProxy(s.t, listen)
	all := &node{t: s.t, url: p.url, stderr: &watch.Log{}, exited: make(chan struct{}), stopping: &atomic.Bool{}}
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("stderr of the nodes:\n%s", all.stderr)
		}
	})

	type start struct {
		*node
		ready <-chan string
	}
	var starts []start
	names := []string{"api-1", "api-2", "worker-1", "worker-2"}
	if s.oneWorker {
		names = names[:3]
	}
	for _, name := range names {
		role, _, _ := strings.Cut(name, "-")
		address := program.FreeAddress(s.t)
		one := append([]string{"serve", "--listen", address, "--base-url", p.url, "--roles", role}, rest...)
		cmd := s.commandIn(context.Background(), filepath.Join(s.data, name), one...)
		n, lines := s.launch(cmd, all.stderr)
		n.isMember = true
		n.url = "http://" + address
		if role == "api" {
			p.backends = append(p.backends, address)
		}
		starts = append(starts, start{n, n.awaitURL(lines)})
		all.members = append(all.members, n)
	}

	go func() {
		var group sync.WaitGroup
		var once sync.Once
		for _, n := range all.members {
			group.Go(func() {
				<-n.exited
				once.Do(func() { all.err = n.err })
				if !all.stopping.Load() {
					for _, other := range all.members {
						other.cmd.Process.Kill()
					}
				}
			})
		}
		group.Wait()
		p.server.Close()
		close(all.exited)
	}()
	for _, one := range starts {
		s.awaitStart(one.node, one.ready)
	}
	go p.serve()
	return all
}

// serveTwo starts two nodes on one PostgreSQL database that tests ask each by
// its own address: with -nodes the two API nodes, else two servers with all roles.
func (s *site) serveTwo() (first, second *node) {
	s.t.Helper()
	first, second, _ = s.serveTwoBehind()
	return first, second
}

// serveTwoBehind is serveTwo, and returns the addresses that browsers use.
func (s *site) serveTwoBehind() (first, second *node, addresses [2]string) {
	s.t.Helper()
	if s.bucket != nil {
		all := s.serveNodes()
		return all.members[0], all.members[1], [2]string{all.url, all.url}
	}
	first = s.serve()
	second = s.serve()
	return first, second, [2]string{first.url, second.url}
}

// stopAll ends all members in order.
func (n *node) stopAll() {
	n.t.Helper()
	n.stopping.Store(true)
	for _, one := range n.members {
		one.cmd.Process.Signal(syscall.SIGTERM)
	}
	var errs []error
	for _, one := range n.members {
		select {
		case <-one.exited:
			errs = append(errs, one.err)
		case <-time.After(time.Minute):
			n.t.Fatal("a node does not end within a minute")
		}
	}
	<-n.exited
	if n.err = errors.Join(errs...); n.err != nil {
		n.t.Errorf("the nodes ended with %v\n%s", n.err, n.stderr)
	}
}

// signal sends a signal to the process, or to all of them.
func (n *node) signal(sig os.Signal) {
	n.t.Helper()
	for _, one := range n.processes() {
		if err := one.cmd.Process.Signal(sig); err != nil {
			n.t.Fatal(err)
		}
	}
}

// processes are the processes of which the node consists.
func (n *node) processes() []*node {
	if len(n.members) > 0 {
		return n.members
	}
	return []*node{n}
}

// proxy sends each request to the next API node, over a connection of its own.
// It repeats nothing: the connection of a client breaks where that of the node
// does. Only if a connection cannot be opened, it takes the next node.
type proxy struct {
	listener  net.Listener
	url       string
	server    *http.Server
	backends  []string
	next      atomic.Uint64
	transport *http.Transport
}

// startProxy listens at an address. Requests wait until serve is called.
func startProxy(t *testing.T, listen string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		listener: l,
		url:      "http://localhost:" + port,
		transport: &http.Transport{
			DisableKeepAlives:     true,
			DisableCompression:    true,
			ExpectContinueTimeout: time.Minute,
		},
	}
	quiet := log.New(io.Discard, "", 0)
	p.server = &http.Server{
		ErrorLog: quiet,
		Handler: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme = "http"
				r.Out.URL.Host = "node" // chosen by RoundTrip
				r.Out.Host = r.In.Host
				// Tests pretend to come from other networks.
				r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
				r.SetXForwarded()
			},
			Transport:     p,
			FlushInterval: -1,
			ErrorLog:      quiet,
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
				panic(http.ErrAbortHandler)
			},
		},
	}
	t.Cleanup(func() { p.server.Close() })
	t.Cleanup(func() { l.Close() })
	return p
}

func (p *proxy) serve() { _ = p.server.Serve(p.listener) }

// RoundTrip sends a request to the next node.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	first := p.next.Add(1)
	var err error
	for i := range uint64(len(p.backends)) {
		attempt := r.Clone(r.Context())
		attempt.URL.Host = p.backends[(first+i)%uint64(len(p.backends))]
		if r.Body != nil {
			attempt.Body = io.NopCloser(r.Body) // still unread if no connection could be opened
		}
		var res *http.Response
		if res, err = p.transport.RoundTrip(attempt); err == nil {
			return res, nil
		}
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			return nil, err
		}
	}
	return nil, err
}
