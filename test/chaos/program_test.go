package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

// server is a process of the program, at an address that it keeps when it is
// started anew.
type server struct {
	t       *testing.T
	w       *installation
	address string
	front   *proxy // where clients reach it
	log     *watch.Log
	cmd     *exec.Cmd
	exited  chan struct{}
}

func (w *installation) command(args ...string) *exec.Cmd {
	w.t.Helper()
	path, err := program.Binary()
	if err != nil {
		w.t.Fatal(err)
	}
	database := w.database
	if args[0] == "serve" {
		database = w.served
	}
	cmd := exec.Command(path, append(args, "--data", w.data, "--database", database)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.data, "ATELIER_METRICS_LISTEN=off"}, w.env...)
	return cmd
}

// do runs a command to its end and decodes what it prints.
func (w *installation) do(args ...string) (v map[string]any) {
	w.t.Helper()
	cmd := w.command(append(args, "--json")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("%v: %v: %s%s", args, err, stderr.Bytes(), stdout.Bytes())
	}
	if err := json.Unmarshal(stdout.Bytes(), &v); err != nil {
		w.t.Fatal(err)
	}
	return v
}

// check has the program verify its database, beside the servers.
func (w *installation) check() {
	w.t.Helper()
	if v := w.do("check"); fmt.Sprint(v["violations"]) != "[]" {
		w.t.Errorf("violations: %v", v)
	}
}

// start starts the process and expects it to serve within 5 s.
func (p *server) start() {
	p.t.Helper()
	p.startWith()
}

// startWith is start with more settings. With a crash point among them, the
// process may die before it serves.
func (p *server) startWith(env ...string) {
	p.t.Helper()
	began := time.Now()
	p.cmd = p.w.command("serve", "--listen", p.address)
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stderr = p.log
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	ready := make(chan struct{})
	p.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		defer close(exited)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "atelier: ready ") {
				close(ready)
			}
		}
		_ = cmd.Wait() // it is killed, every time
	}(p.cmd, p.exited)
	select {
	case <-ready:
	case <-p.exited:
		if len(env) > 0 {
			return
		}
		p.t.Fatalf("the server ended by itself\n%s", p.log)
	case <-time.After(time.Minute):
		p.t.Fatalf("the server is not ready after a minute\n%s", p.log)
	}
	res, err := http.Get("http://" + p.address + "/readyz")
	if err != nil {
		if len(env) > 0 {
			return
		}
		p.t.Fatal(err)
	}
	res.Body.Close()
	took := time.Since(began)
	if res.StatusCode != 200 || took > 5*time.Second {
		p.t.Errorf("/readyz = %d, %v after the start", res.StatusCode, took)
	}
	p.w.slowest = max(p.w.slowest, took)
}

// end kills the process, whatever state it is in.
func (p *server) end() {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Kill()
	<-p.exited
}

// fault is a time in which a process was stopped or died.
type fault struct {
	from   time.Time
	to     time.Time
	paused string // the address of the process, if it went on afterwards
	// everywhere is set if no process could do its work meanwhile.
	everywhere bool
}

// kill ends a process as a power cut would.
func (w *installation) kill(p *server) {
	from := time.Now()
	p.end()
	w.faults = append(w.faults, fault{from: from, to: time.Now()})
	w.kills++
}

// pause stops a process for a while.
func (w *installation) pause(p *server, d time.Duration) {
	w.t.Helper()
	from := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		w.t.Fatal(err)
	}
	<-time.After(d)
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		w.t.Fatal(err)
	}
	w.faults = append(w.faults, fault{from: from, to: time.Now(), paused: p.address})
	w.pauses++
	// What it held goes on for a moment before it is killed.
	<-time.After(300 * time.Millisecond)
}
