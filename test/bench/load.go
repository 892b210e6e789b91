package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// target is a request that is sent again and again.
type target struct {
	address, path, token string
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

// load asks on several connections for a while and gives answers a second. The
// client does as little as it can, since it shares the machine with the server:
// a heavy one would hide what the server costs.
func load(t target) float64 {
	var answered atomic.Int64
	var group sync.WaitGroup
	end := time.Now().Add(span)
	for range connections {
		group.Go(func() {
			c, err := net.Dial("tcp", t.address)
			if err != nil {
				fatal(err)
			}
			defer c.Close()
			request, r := t.request(), bufio.NewReaderSize(c, 64<<10)
			for time.Now().Before(end) {
				if _, err := c.Write(request); err != nil {
					fatal(err)
				}
				if err := answer(r, io.Discard); err != nil {
					fatal(err)
				}
				answered.Add(1)
			}
		})
	}
	start := time.Now()
	group.Wait()
	return float64(answered.Load()) / time.Since(start).Seconds()
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
