package e2e

import (
	"fmt"
	"image/color"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
)

// crowd opens connections from an address and keeps them. Each sends text; those
// that the server closes are opened again, so that it has no rest.
type crowd struct {
	t    *testing.T
	node *node
	all  []net.Conn
}

func (c *crowd) open(from, text string, count int) {
	c.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	for range count {
		conn, err := dialer.Dial("tcp", strings.TrimPrefix(strings.Replace(c.node.url, "localhost", "127.0.0.1", 1), "http://"))
		if err != nil {
			c.t.Fatal(err)
		}
		c.all = append(c.all, conn)
		if _, err := io.WriteString(conn, text); err != nil {
			continue // refused
		}
	}
}

func (c *crowd) leave() {
	for _, conn := range c.all {
		conn.Close()
	}
	c.all = nil
}

// TestConnectionsOfOthers has strangers hold as many connections as they can get
// from a server that may have few files open. A person at another address is
// answered quickly throughout, also from the database and the store of files.
func TestConnectionsOfOthers(t *testing.T) {
	needOneProcess(t, "it counts the connections of one process, which a proxy hides")
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	each(t, func(t *testing.T, s *site) {
		s.files = 256
		s.env = append(s.env, "ATELIER_RUNS_PARALLEL=1")
		n := s.serve()
		s.files = 0
		n.token = s.token("anna@example.com")
		picture := string(plainPicture(t, 60, 40, color.NRGBA{200, 30, 30, 255}))

		// visit does what people do, each time over a connection of its own.
		visit := func(when string) {
			t.Helper()
			began := time.Now()
			took := func(what string) {
				t.Helper()
				watch.Took(t, when+": "+what, time.Since(began), time.Second)
				began = time.Now()
			}
			n.get("/api/v2/me", "Connection", "close").want(t, 200)
			took("the person")
			upload := n.call("POST", "/api/v2/uploads?name="+strings.ReplaceAll(when, " ", "-")+".png", picture, "Content-Type", "image/png", "Connection", "close").want(t, 201)
			took("an upload")
			file := n.get(strings.TrimPrefix(upload["url"].(string), n.url), "Connection", "close")
			took("a file")
			if file.StatusCode != 200 || len(file.body) == 0 {
				t.Errorf("%s: the file = %d with %d bytes", when, file.StatusCode, len(file.body))
			}
			if ready := n.get("/readyz", "Connection", "close"); ready.StatusCode != 200 {
				t.Errorf("%s: readyz = %d %s", when, ready.StatusCode, ready.body)
			}
		}
		open := func() int {
			files, err := os.ReadDir(filepath.Join("/proc", fmt.Sprint(n.cmd.Process.Pid), "fd"))
			if err != nil {
				t.Fatal(err)
			}
			return len(files)
		}
		visit("before")
		before := open()

		const request = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
		c := &crowd{t: t, node: n}
		defer c.leave()
		c.open("127.0.0.66", request, 300)
		visit("idle ones of one address")
		c.open("127.0.0.67", "", 300)
		visit("silent ones of one address")
		for i := range 10 {
			c.open(fmt.Sprintf("127.0.1.%d", i+1), request, 40)
		}
		visit("idle ones of ten addresses")
		c.open("127.0.0.68", "POST /api/v2/auth/device/start HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{", 300)
		visit("slow ones of one address")
		if held := open(); held > 256-16 {
			t.Errorf("%d of 256 files are open", held)
		}
		t.Logf("files open: %d before, %d with the crowd", before, open())

		c.leave()
		watch.Until(t, "all connections to end", func() bool { return open() <= before+8 })
		visit("after")
		if log := n.stderr.String(); strings.Contains(log, "too many open files") {
			t.Error("open files ran out")
		}
		n.stop()
		s.check()
	})
}
