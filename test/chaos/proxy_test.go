package chaos

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// disturbance is what a proxy does to connections.
type disturbance int32

const (
	passOn    disturbance = iota
	delay                 // every block of bytes waits
	reset                 // connections are reset, new ones at once
	truncate              // connections break in the middle of a block
	blackHole             // connections are accepted, and nothing arrives
)

var disturbanceNames = map[disturbance]string{delay: "delay", reset: "reset", truncate: "truncate", blackHole: "black hole"}

// proxy passes connections on to an address, undisturbed at first.
type proxy struct {
	address string // where it listens
	network string
	target  string
	mode    atomic.Int32

	mu    sync.Mutex
	open  map[net.Conn]bool
	ended bool
}

// newProxy starts a proxy in front of an address.
func newProxy(t testing.TB, network, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String(), network: network, target: target, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		p.breakAll()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

// disturb changes what happens to connections from now on, also to open ones.
func (p *proxy) disturb(d disturbance) {
	p.mode.Store(int32(d))
	if d == reset {
		p.breakAll()
	}
}

// heal ends a disturbance. The connections that suffered from it are broken:
// bytes that were lost do not come later.
func (p *proxy) heal() {
	was := disturbance(p.mode.Swap(int32(passOn)))
	if was == blackHole || was == truncate {
		p.breakAll()
	}
}

// breakAll resets all connections.
func (p *proxy) breakAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		resetConn(c)
	}
}

// resetConn closes a connection with a reset instead of an orderly end.
func resetConn(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

// keep remembers an open connection. It reports false after the test's end.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	return !p.ended
}

func (p *proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

func (p *proxy) serve(from net.Conn) {
	defer from.Close()
	defer p.forget(from)
	if disturbance(p.mode.Load()) == reset || !p.keep(from) {
		resetConn(from)
		return
	}
	to, err := net.Dial(p.network, p.target)
	if err != nil {
		resetConn(from)
		return
	}
	defer to.Close()
	defer p.forget(to)
	if !p.keep(to) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copyBlocks(to, from) })
	both.Go(func() { p.copyBlocks(from, to) })
	both.Wait()
}

// copyBlocks copies one direction of a connection until it ends.
func (p *proxy) copyBlocks(to, from net.Conn) {
	block := make([]byte, 16<<10)
	for {
		n, err := from.Read(block)
		switch disturbance(p.mode.Load()) {
		case delay:
			time.Sleep(20*time.Millisecond + rand.N(200*time.Millisecond))
		case truncate:
			_, _ = to.Write(block[:n/2])
			resetConn(to)
			resetConn(from)
			return
		case blackHole:
			if err == nil {
				continue
			}
		}
		if n > 0 {
			if _, err := to.Write(block[:n]); err != nil {
				resetConn(from)
				return
			}
		}
		if err == io.EOF {
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			return
		}
		if err != nil {
			resetConn(to)
			return
		}
	}
}
