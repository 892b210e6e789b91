package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// target is a request that is sent again and again.
type target struct {
	address, path, token string
	url                  string // as the program says it
}

func (t target) with(path string) target {
	t.path = path
	return t
}

// request is the bytes on the wire.
func (t target) request() []byte {
	head := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n", t.path, t.address)
	if t.token != "" {
		head += "Authorization: Bearer " + t.token + "\r\n"
	}
	return []byte(head + "\r\n")
}

// fetch asks once and gives the body.
func fetch(t target) ([]byte, error) {
	c, err := net.Dial("tcp", t.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Write(t.request()); err != nil {
		return nil, err
	}
	var body bytes.Buffer
	err = answer(bufio.NewReader(c), &body)
	return body.Bytes(), err
}

// load asks for a while and gives answers a second.
func load(t target) float64 {
	rate, _ := measure(t)
	return rate
}

// measure asks on several connections for a while and gives answers a second
// and how long each took. The client does as little as it can, since it shares
// the machine with the server: a heavy one would hide what the server costs.
func measure(t target) (rate float64, took []time.Duration) {
	var group sync.WaitGroup
	var times [connections][]time.Duration
	end := time.Now().Add(span)
	for i := range connections {
		group.Go(func() {
			c, err := net.Dial("tcp", t.address)
			if err != nil {
				fatal(err)
			}
			defer c.Close()
			request, r := t.request(), bufio.NewReaderSize(c, 64<<10)
			for at := time.Now(); at.Before(end); {
				if _, err := c.Write(request); err != nil {
					fatal(err)
				}
				if err := answer(r, io.Discard); err != nil {
					fatal(err)
				}
				now := time.Now()
				times[i] = append(times[i], now.Sub(at))
				at = now
			}
		})
	}
	start := time.Now()
	group.Wait()
	elapsed := time.Since(start)
	took = slices.Concat(times[:]...)
	return float64(len(took)) / elapsed.Seconds(), took
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// answer reads one answer, which must be a success with or without a length.
func answer(r *bufio.Reader, body io.Writer) error {
	status, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("answer %q", status)
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
