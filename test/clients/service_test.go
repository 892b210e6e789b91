package clients_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

const (
	email    = "anna@example.com"
	password = "a fox in the snow"
	granted  = 10000 // tokens of the person
)

// service is an installation of the program, with a person who can pay for
// runs. It keeps its address and its data when the process is killed and
// started again.
type service struct {
	t       *testing.T
	address string
	data    string
	home    string
	env     []string
	token   string // access token of the person
	log     *watch.Log
	cmd     *exec.Cmd
	exited  chan struct{}
}

// startService starts the program with these settings. It is killed with the
// test.
func startService(t *testing.T, settings ...string) *service {
	t.Helper()
	s := &service{
		t:       t,
		address: program.FreeAddress(t),
		data:    filepath.Join(t.TempDir(), "data"),
		home:    t.TempDir(),
		env:     settings,
		log:     &watch.Log{},
	}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", tail(s.log.String(), 4000))
		}
	})
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	s.runCommand("admin", "person", "create", "--email", email, "--password", password, "--verified")
	s.runCommand("admin", "grant", "--email", email, "--tokens", fmt.Sprint(granted))
	s.token = s.runCommand("admin", "token", "create", "--email", email, "--name", "tests")["token"].(string)
	return s
}

// url returns the service's own URL, without a proxy.
func (s *service) url() string { return "http://" + s.address }

func (s *service) command(arguments ...string) *exec.Cmd {
	s.t.Helper()
	binary, err := program.Binary()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(binary, append(arguments, "--data", s.data)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "ATELIER_METRICS_LISTEN=off", "ATELIER_LOG_LEVEL=warn"}, s.env...)
	return cmd
}

// runCommand runs a command beside the server and returns the JSON it prints.
func (s *service) runCommand(arguments ...string) map[string]any {
	s.t.Helper()
	cmd := s.command(append(arguments, "--json")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	err := cmd.Run()
	var v map[string]any
	if err == nil {
		err = json.Unmarshal(stdout.Bytes(), &v)
	}
	if err != nil {
		s.t.Fatalf("atelier %s: %v: %s%s", strings.Join(arguments, " "), err, stderr.Bytes(), stdout.Bytes())
	}
	return v
}

// start starts the process and waits until it serves.
func (s *service) start() error {
	s.cmd = s.command("serve", "--listen", s.address)
	s.cmd.Stderr = s.log
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	ready := make(chan struct{})
	s.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		defer close(exited)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "atelier: ready ") {
				close(ready)
			}
		}
		_ = cmd.Wait() // it is killed, every time
	}(s.cmd, s.exited)
	select {
	case <-ready:
		return nil
	case <-s.exited:
		return fmt.Errorf("the server ended by itself: %s", tail(s.log.String(), 2000))
	case <-time.After(time.Minute):
		return fmt.Errorf("the server is not ready after a minute")
	}
}

// kill ends the process with SIGKILL, if there is one.
func (s *service) kill() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill()
	<-s.exited
	s.cmd = nil
}

// get reads a resource of the API past the proxy, with the access token.
func (s *service) get(path string) map[string]any {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url()+"/api/v2"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var v map[string]any
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s = %s, %v: %v", path, res.Status, err, v)
	}
	return v
}

// list reads all pages of a list.
func (s *service) list(path string) []map[string]any {
	s.t.Helper()
	var all []map[string]any
	for next := ""; ; {
		page := s.get(path + "?limit=100" + next)
		for _, one := range page["data"].([]any) {
			all = append(all, one.(map[string]any))
		}
		if page["has_more"] != true {
			return all
		}
		next = "&cursor=" + page["next_cursor"].(string)
	}
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
