package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// settings are how a server is started.
type settings struct {
	tags     string            // of the build
	tools    map[string]string // manifests by file name
	database string            // PostgreSQL's address, empty for SQLite
	roles    string            // empty for all
	backends string            // file with model servers, empty for none
	more     []string          // more environment variables
}

// server is the program at work.
type server struct {
	target
	settings
	binary, dir string
	env         []string
	process     *os.Process
	ended       <-chan struct{}
}

// data is the folder of what the server keeps.
func (s *server) data() string { return filepath.Join(s.dir, "data") }

// databaseURL is where the server's database is.
func (s *server) databaseURL() string {
	if s.database != "" {
		return s.database
	}
	return "sqlite://" + filepath.Join(s.data(), "atelier.db")
}

// serve starts the program in a folder of its own.
func (b *bench) serve(ctx context.Context, name string, o settings) (*server, error) {
	binary, err := b.build(ctx, o.tags)
	if err != nil {
		return nil, err
	}
	s := &server{settings: o, binary: binary, dir: filepath.Join(b.dir, name)}
	manifests := filepath.Join(s.dir, "tools")
	if err := os.MkdirAll(manifests, 0o700); err != nil {
		return nil, err
	}
	for file, text := range o.tools {
		if err := os.WriteFile(filepath.Join(manifests, file), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	const many = "1000000"
	s.env = append(os.Environ(), "ATELIER_DATA="+s.data(), "ATELIER_CATALOG_BUILTIN=false", "ATELIER_TOOLS="+manifests, "ATELIER_METRICS_LISTEN=off",
		"ATELIER_LIMITS_REQUESTS_PER_MINUTE=0", "ATELIER_LIMITS_CREATE_PER_MINUTE="+many, "ATELIER_LIMITS_CREATE_PER_HOUR="+many, "ATELIER_LIMITS_ACTIVE_RUNS="+many)
	if o.database != "" {
		s.env = append(s.env, "ATELIER_DATABASE="+o.database)
	}
	if o.backends != "" {
		s.env = append(s.env, "ATELIER_BACKENDS="+o.backends)
	}
	s.env = append(s.env, o.more...)
	return s, s.start(ctx)
}

// start starts the process, also once more after stop.
func (s *server) start(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"serve", "--listen", "127.0.0.1:0"}
	if s.roles != "" {
		args = append(args, "--roles", s.roles)
	}
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Env, cmd.Stderr = s.env, log
	url, ended, err := start(cmd, "atelier: ready ")
	if err != nil {
		text, _ := os.ReadFile(log.Name()) // nothing better to say without it
		return fmt.Errorf("start server: %w: %s", err, text)
	}
	s.process, s.ended = cmd.Process, ended
	address, err := net.ResolveTCPAddr("tcp4", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return err
	}
	s.target = target{address: address.String(), url: url}
	return nil
}

// stop ends the process and waits for it.
func (s *server) stop() {
	_ = s.process.Signal(syscall.SIGTERM) // it may have ended by itself
	<-s.ended
}

// remove stops the server and removes what it kept.
func (s *server) remove() error {
	s.stop()
	return os.RemoveAll(s.dir)
}

// command runs the program beside the server.
func (s *server) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.binary, append(args, "--json")...)
	var said bytes.Buffer
	cmd.Env = s.env
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("atelier %s: %w: %s%.2000s", strings.Join(args, " "), err, said.Bytes(), out)
	}
	return out, err
}

// tool gives the id and the hash of the tool with a name.
func (s *server) tool(token, name string) (id, hash string, err error) {
	type tool struct {
		ID, Name string
		Hash     string `json:"tool_fields_hash"`
	}
	var page struct{ Data []tool }
	if err := s.read(token, "/api/v2/tools?limit=100", &page); err != nil {
		return "", "", err
	}
	for _, one := range page.Data {
		if one.Name == name {
			err := s.read(token, "/api/v2/tools/"+one.ID, &one)
			return one.ID, one.Hash, err
		}
	}
	return "", "", fmt.Errorf("there is no tool %q", name)
}

func (s *server) read(token, path string, into any) error {
	t := s.with(path)
	t.token = token
	text, err := fetch(t)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// start starts a process and waits for the line that says it is ready. If
// there is no such line, the process is ended.
func start(cmd *exec.Cmd, prefix string) (url string, ended <-chan struct{}, err error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	line := make([]byte, 256)
	n, err := out.Read(line)
	done := make(chan struct{})
	go func() {
		io.Copy(io.Discard, out)
		cmd.Wait()
		close(done)
	}()
	url, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), prefix)
	if err == nil && !ok {
		err = fmt.Errorf("unexpected %q", line[:n])
	}
	if err != nil {
		_ = cmd.Process.Kill() // it may have ended by itself
		<-done
		return "", nil, err
	}
	return url, done, nil
}

// serveBare starts a second process that does nothing but write the bytes.
func (b *bench) serveBare(ctx context.Context, body []byte) (target, error) {
	file := filepath.Join(b.dir, "body.json")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return target{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return target{}, err
	}
	address, _, err := start(exec.CommandContext(ctx, self, "bare", file), "bare ")
	return target{address: address, path: "/"}, err
}

// bare is the process: the fastest answer that net/http gives.
func bare(file string) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	length := strconv.Itoa(len(body))
	fmt.Println("bare", l.Addr())
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", length)
		w.Write(body)
	}))
}
