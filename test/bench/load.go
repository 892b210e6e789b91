package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// target is a request that is sent again and again.
type target struct {
	address, path, token string
	url                  string // as the program says it
	body                 string // of a POST, in JSON
	takesGzip            bool
}

func (t target) with(path string) target {
	t.path = path
	return t
}

// request is the bytes on the wire.
func (t target) request() []byte {
	method := "GET"
	if t.body != "" {
		method = "POST"
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n", method, t.path, t.address)
	if t.token != "" {
		head += "Authorization: Bearer " + t.token + "\r\n"
	}
	if t.takesGzip {
		head += "Accept-Encoding: gzip\r\n"
	}
	if t.body != "" {
		head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(t.body))
	}
	return []byte(head + "\r\n" + t.body)
}

// wire is a connection that asks one thing after another.
type wire struct {
	net.Conn
	in *bufio.Reader
}

func dial(address string) (*wire, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &wire{c, bufio.NewReaderSize(c, 64<<10)}, nil
}

func (w *wire) ask(request []byte, body io.Writer) error {
	if _, err := w.Write(request); err != nil {
		return err
	}
	return answer(w.in, body)
}

// fetch asks once and gives the body.
func fetch(t target) ([]byte, error) {
	w, err := dial(t.address)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	var body bytes.Buffer
	err = w.ask(t.request(), &body)
	return body.Bytes(), err
}

// rota hands out the places of a list. No two connections have the same one at
// once, as long as the list is as long as a multiple of their number.
type rota struct {
	size int
	at   [connections]int
}

func newRota(size int) *rota {
	r := &rota{size: size}
	for i := range r.at {
		r.at[i] = i % size
	}
	return r
}

func (r *rota) next(connection int) int {
	n := r.at[connection]
	r.at[connection] = (n + connections) % r.size
	return n
}

// asking is a side that asks one thing.
func asking(name string, t target) side { return posting(name, []target{t}) }

// posting is a side that asks many things in turn.
func posting(name string, all []target) side {
	requests := make([][]byte, len(all))
	for i, t := range all {
		requests[i] = t.request()
	}
	r := newRota(len(all))
	return side{name, func(span time.Duration) (float64, error) {
		rate, _, err := measure(all[0].address, requests, r, span)
		return rate, err
	}}
}

// measure asks on several connections for a while and gives answers a second
// and how long each took. The client does as little as it can, since it shares
// the machine with the server: a heavy one would hide what the server costs.
func measure(address string, requests [][]byte, turns *rota, span time.Duration) (rate float64, took []time.Duration, err error) {
	var group errgroup.Group
	var times [connections][]time.Duration
	start := time.Now()
	end := start.Add(span)
	for i := range connections {
		group.Go(func() error {
			w, err := dial(address)
			if err != nil {
				return err
			}
			defer w.Close()
			for at := time.Now(); at.Before(end); {
				if err := w.ask(requests[turns.next(i)], io.Discard); err != nil {
					return err
				}
				now := time.Now()
				times[i] = append(times[i], now.Sub(at))
				at = now
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, nil, err
	}
	elapsed := time.Since(start)
	took = slices.Concat(times[:]...)
	return float64(len(took)) / elapsed.Seconds(), took, nil
}

// answer reads one answer, which must be a success with or without a length.
func answer(r *bufio.Reader, body io.Writer) error {
	status, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200 ")) && !bytes.HasPrefix(status, []byte("HTTP/1.1 202 ")) {
		rest, _ := r.Peek(r.Buffered())
		return fmt.Errorf("answer %q, %.1000q", status, rest)
	}
	length, chunked := int64(-1), false
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if v, ok := value(line, "content-length:"); ok {
			if length, err = strconv.ParseInt(v, 10, 64); err != nil {
				return err
			}
		}
		if v, ok := value(line, "transfer-encoding:"); ok {
			chunked = v == "chunked"
		}
	}
	if !chunked {
		_, err := io.CopyN(body, r, length)
		return err
	}
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(line)), 16, 64)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(body, r, size); err != nil {
			return err
		}
		if _, err := r.Discard(2); err != nil {
			return err
		}
		if size == 0 {
			return nil
		}
	}
}

// value gives the value of a header line with this name.
func value(line []byte, name string) (string, bool) {
	if len(line) < len(name) || !strings.EqualFold(string(line[:len(name)]), name) {
		return "", false
	}
	return strings.TrimSpace(string(line[len(name):])), true
}
