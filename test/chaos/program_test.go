package chaos

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

// command is a command of the program. The servers reach the database through
// the proxy, other commands directly.
func (w *installation) command(args ...string) *exec.Cmd {
	w.t.Helper()
	database := w.database
	if args[0] == "serve" {
		database = w.served
	}
	return w.commandOn(w.data, database, args...)
}

// commandOn is a command of the program on any data folder and database.
func (w *installation) commandOn(data, database string, args ...string) *exec.Cmd {
	w.t.Helper()
	path, err := program.Binary()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(path, append(args, "--data", data, "--database", database)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + data, "ATELIER_METRICS_LISTEN=off"}, w.env...)
	return cmd
}

// exitUnavailable is the exit status of a command that cannot use the database.
const exitUnavailable = 7

// do runs a command to its end and decodes what it prints.
func (w *installation) do(args ...string) (v map[string]any) {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	for tries := 1; ; tries++ {
		cmd := w.command(append(args, "--json")...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if err == nil {
			break
		}
		// The database closes the connection of a process that a busy machine
		// does not let run. The command says so, and may be repeated.
		if cmd.ProcessState.ExitCode() != exitUnavailable || tries == 10 {
			w.t.Fatalf("%v: %v: %s%s", args, err, stderr.Bytes(), stdout.Bytes())
		}
		stdout.Reset()
		stderr.Reset()
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

// startLimit is how long a process may take to be ready, whatever happened
// before. On a machine that is busy elsewhere everything takes longer. So a
// process that is late is compared with others that begin after it, on a
// database where nothing happened: it may not be overtaken by overtakings of
// them, one after the other.
const (
	startLimit  = 5 * time.Second
	overtakings = 3
	startWait   = 5 * time.Minute
)

// start starts the process and expects it to be ready in time.
func (p *server) start() {
	p.t.Helper()
	p.w.slowest = max(p.w.slowest, p.startWith())
}

// startWith starts the process with more settings and returns how long it took
// until it was ready. With a crash point among the settings, the process may die
// before that.
func (p *server) startWith(env ...string) (took time.Duration) {
	p.t.Helper()
	began := time.Now()
	ready := p.launch(p.w.command("serve", "--listen", p.address), env...)
	late := time.After(startLimit)
	compared := make(chan struct{})
	stop := make(chan struct{})
	for limit := time.After(startWait); ; {
		select {
		case <-late:
			go func() {
				defer close(compared)
				p.w.compareStart(stop)
			}()
			defer func() {
				close(stop)
				<-compared
			}()
			continue
		case <-ready:
		case <-p.exited:
			if len(env) == 0 {
				p.t.Fatalf("the server ended by itself\n%s", p.log)
			}
			return 0
		case <-limit:
			p.t.Fatalf("the server is not ready after %v\n%s", startWait, p.log)
		}
		break
	}
	took = time.Since(began)
	res, err := http.Get("http://" + p.address + "/readyz")
	if err != nil {
		if len(env) == 0 {
			p.t.Fatal(err)
		}
		return 0
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		p.t.Errorf("/readyz = %d, %v after the start", res.StatusCode, took)
	}
	return took
}

// launch starts the process and returns a channel that is closed when it says
// that it is ready.
func (p *server) launch(cmd *exec.Cmd, env ...string) (ready <-chan struct{}) {
	p.t.Helper()
	p.cmd = cmd
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = p.log
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.w.starvation.follow(cmd.Process.Pid)
	said := make(chan struct{})
	exited := make(chan struct{})
	p.exited = exited
	go func() {
		defer close(exited)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "atelier: ready ") {
				close(said)
			}
		}
		_ = cmd.Wait() // it is killed, every time
	}()
	return said
}

// compareStart starts processes on the calm database, one after the other, until
// stop is closed because the late process is ready. If that comes too late, the
// machine is not the reason.
func (w *installation) compareStart(stop <-chan struct{}) {
	for range overtakings {
		p := &server{t: w.t, w: w, address: program.FreeAddress(w.t), log: &watch.Log{}}
		began := time.Now()
		ready := p.launch(w.commandOn(w.calmData, w.calmDatabase, "serve", "--listen", p.address), "ATELIER_BLOBS=file://"+filepath.Join(w.calmData, "blobs"))
		select {
		case <-stop:
			p.end()
			return
		case <-p.exited:
			w.t.Errorf("a server on the calm database ended by itself\n%s", p.log)
			return
		case <-ready:
			w.t.Logf("a start took longer than %v; meanwhile one on a calm database took %v", startLimit, time.Since(began))
			p.end()
		}
	}
	w.t.Errorf("a start took longer than %v, and %d others overtook it", startLimit, overtakings)
}

// end kills the process, whatever state it is in.
func (p *server) end() {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Kill()
	<-p.exited
}

// fault is a time in which a process was stopped or died, or in which what it
// depends on failed.
type fault struct {
	from   time.Time
	to     time.Time
	server string // the address of the process that was not ready meanwhile
	// everywhere is set if no process could do its work meanwhile.
	everywhere bool
}

// kill ends a process as a power cut would, and starts it again after a while.
func (w *installation) kill(p *server, down time.Duration) {
	w.t.Helper()
	from := time.Now()
	p.end()
	w.kills++
	<-time.After(down)
	p.start()
	w.faults = append(w.faults, fault{from: from, to: time.Now(), server: p.address})
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
	w.faults = append(w.faults, fault{from: from, to: time.Now(), server: p.address})
	w.pauses++
	// What it held goes on for a moment before it is killed.
	<-time.After(300 * time.Millisecond)
}
