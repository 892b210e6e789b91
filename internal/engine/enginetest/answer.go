package enginetest

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// BreakOff answers with half of what it promises, and ends the connection.
func BreakOff(w http.ResponseWriter, content []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content[:len(content)/2])  // who is gone does not read it
	_ = http.NewResponseController(w).Flush() // the half has to go out
	panic(http.ErrAbortHandler)
}

// Flood answers with a start, and then on and on until nobody listens.
func Flood(w http.ResponseWriter, r *http.Request, start string) {
	_, err := w.Write([]byte(start))
	for more := bytes.Repeat([]byte("A"), 64<<10); err == nil && r.Context().Err() == nil; {
		_, err = w.Write(more)
	}
}

// Drip answers byte by byte, over and over, until nobody listens.
func Drip(w http.ResponseWriter, r *http.Request, content []byte) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i = (i + 1) % len(content) {
		if _, err := w.Write(content[i : i+1]); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// Drop ends the connection without an answer.
func Drop(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Trouble is the way in which a stand-in goes wrong just now. The zero value is
// well.
type Trouble[F ~string] struct {
	mu    sync.Mutex
	fault F
	times int // how often it still happens, -1 for always
}

// Break has it go wrong, so many times or, with 0, until Heal.
func (t *Trouble[F]) Break(f F, times int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if times == 0 {
		times = -1
	}
	t.fault = f
	t.times = times
}

// Heal ends Break.
func (t *Trouble[F]) Heal() { t.Break("", 0) }

// Is tells whether it goes wrong in this way now, which counts.
func (t *Trouble[F]) Is(f F) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != f || t.times == 0 {
		return false
	}
	if t.times > 0 {
		t.times--
	}
	return true
}
