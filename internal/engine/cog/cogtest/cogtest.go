// Package cogtest runs real Cog prediction servers for tests, with the small
// models of test/cogserver.
//
// The server is installed on first use, in the version that test/cogserver
// pins, and kept in the user's cache. If it cannot be installed, its tests are
// skipped; with CI set they fail instead. ATELIER_TEST_COG=skip skips them
// everywhere.
package cogtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"atelier/internal/testkit/servers"
)

// Options select a test server's model and the number of its slots.
type Options struct {
	// Model is the name of the model's class: Predictor makes pictures,
	// Several makes several pictures at the same time, Writer makes text,
	// Album yields sounds, and Radio yields sounds that the server streams.
	// Default: Predictor.
	Model string
	Slots int // number of concurrent predictions; default: 1
	// UploadURL makes the server upload results to this URL instead of
	// embedding them in its responses.
	UploadURL string
}

// modelFiles are the files of each model in test/cogserver.
var modelFiles = map[string]struct{ source, schema string }{
	"Predictor": {"predict.py", "predict.json"},
	"Several":   {"predict.py", "predict.json"},
	"Writer":    {"write.py", "write.json"},
	"Album":     {"album.py", "album.json"},
	"Radio":     {"album.py", "radio.json"},
}

// Server is a Cog server with one model.
type Server struct {
	URL string

	at      place
	o       Options
	dir     string
	port    string
	process *servers.Server
	pid     int
}

// Start starts a server that runs until the test ends, and waits until it
// accepts work.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	at := servers.Need(t, "Cog server", "ATELIER_TEST_COG", prepare)
	if o.Model == "" {
		o.Model = "Predictor"
	}
	dir, err := os.MkdirTemp(at.dir, "server-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{at: at, o: o, dir: dir, port: "0"}
	files := modelFiles[o.Model]
	// These are the files that "cog build" writes into the image.
	for from, to := range map[string]string{files.source: files.source, files.schema: ".cog/openapi_schema.json"} {
		text, err := os.ReadFile(filepath.Join(at.source, from))
		if err != nil {
			t.Fatal(err)
		}
		to = filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.o.Model = files.source + ":" + o.Model
	t.Cleanup(func() { s.Kill(t) })
	s.Restart(t)
	return s
}

var listening = regexp.MustCompile(`Starting coglet server on 127\.0\.0\.1:(\d+)`)

// Restart starts the server again, for example after Kill. The server keeps its
// URL but loses its state.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	args := []string{"-m", "cog.server.http", "--host", "127.0.0.1"}
	if s.o.UploadURL != "" {
		args = append(args, "--upload-url", s.o.UploadURL)
	}
	cmd := exec.Command(filepath.Join(s.at.bin, "python"), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{ // the server finds the Python interpreter of its worker by PATH
		"PATH=" + s.at.bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir, "LANG=C.UTF-8",
		"PORT=" + s.port, "COG_PREDICT_TYPE_STUB=" + s.o.Model, fmt.Sprintf("COG_MAX_CONCURRENCY=%d", max(1, s.o.Slots)),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if s.process, err = servers.Start(cmd); err != nil {
		t.Fatalf("Cog server for tests: %v", err)
	}
	s.pid = cmd.Process.Pid
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		select {
		case <-s.process.Ended:
			t.Fatalf("Cog server for tests ended: %s", s.process.Log())
		case <-time.After(20 * time.Millisecond):
		}
		m := listening.FindStringSubmatch(s.process.Log())
		if m == nil {
			continue
		}
		s.port = m[1]
		s.URL = "http://127.0.0.1:" + m[1]
		if s.Health(t) == "READY" {
			return
		}
	}
	t.Fatalf("Cog server for tests was not ready within 60 s: %s", s.process.Log())
}

// Kill kills the server's processes.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if s.pid == 0 {
		return
	}
	select {
	case <-s.process.Ended:
		return
	default:
	}
	if err := syscall.Kill(-s.pid, syscall.SIGKILL); err != nil {
		t.Errorf("end the Cog server for tests: %v", err)
	}
	<-s.process.Ended
}

// Health returns the status that the server reports. It returns "" if the
// server does not respond.
func (s *Server) Health(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/health-check", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true // the goroutines of an idle connection would count as leaked in tests
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	var h struct {
		Status string `json:"status"`
	}
	if err := json.NewDecoder(res.Body).Decode(&h); err != nil {
		return ""
	}
	return h.Status
}
