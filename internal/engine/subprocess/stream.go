package subprocess

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"time"
)

const (
	maxLine = 64 << 10 // of a line that is handed on
	maxTail = 4 << 10  // of standard error that is kept
	// maxLate and grace bound what is read once the program is gone: what is
	// still in the pipe, and no more from processes that hold its other end.
	maxLate = 1 << 20
	grace   = 500 * time.Millisecond
)

// past is a deadline that wakes whoever reads or writes.
var past = time.Unix(1, 0)

// streams are the pipes between the program and us.
type streams struct {
	near, far      []*os.File // our ends and the program's, by its numbers
	in             []byte
	stdin, status  *os.File
	stdout, stderr *outlet
	tail           tail
}

func (p *Program) pipes() (*streams, error) {
	s := &streams{in: p.Stdin}
	for fd := range statusFile + 1 {
		near, far, err := os.Pipe()
		if err != nil {
			s.close()
			return nil, err
		}
		if fd == 0 { // the only one that it reads
			near, far = far, near
		}
		s.near = append(s.near, near)
		s.far = append(s.far, far)
	}
	s.stdin = s.near[0]
	s.status = s.near[statusFile]
	s.stdout = &outlet{file: s.near[1]}
	s.stderr = &outlet{file: s.near[2]}
	return s, nil
}

// started lets go of the program's ends, which it has by now.
func (s *streams) started() {
	for _, f := range s.far {
		f.Close()
	}
}

// close lets go of all. Closing twice does no harm.
func (s *streams) close() {
	s.started()
	for _, f := range s.near {
		f.Close()
	}
}

// nudge tells all that the program is gone.
func (s *streams) nudge() {
	_ = s.stdin.SetWriteDeadline(past) // it may be closed
	_ = s.stdout.file.SetReadDeadline(past)
	_ = s.stderr.file.SetReadDeadline(past)
}

// feed gives the program its standard input. Programs need not read it.
func (s *streams) feed() {
	_, _ = s.stdin.Write(s.in)
	s.stdin.Close()
}

func (s *streams) listen() { _, _ = io.Copy(&s.tail, s.stderr) }

// told is what the launcher left. Nobody else has the other end, so there is an
// end to read.
func (s *streams) told() []byte {
	b, _ := io.ReadAll(io.LimitReader(s.status, 1<<10))
	return b
}

// outlet reads what the program writes. After a nudge it reads what is there,
// and waits for little more.
type outlet struct {
	file *os.File
	late bool
	read int // since the nudge
}

func (o *outlet) Read(b []byte) (int, error) {
	if !o.late {
		n, err := o.file.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		o.late = true
		if err := o.file.SetReadDeadline(time.Time{}); err != nil {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
	}
	if o.read > maxLate {
		return 0, io.EOF
	}
	timer := time.AfterFunc(grace, func() { _ = o.file.SetReadDeadline(past) })
	defer timer.Stop()
	n, err := o.file.Read(b)
	o.read += n
	return n, err
}

// lines calls f with each line. It holds one buffer, whatever comes.
func lines(r io.Reader, f func(line []byte)) {
	if f == nil {
		_, _ = io.Copy(io.Discard, r)
		return
	}
	buf := make([]byte, 0, maxLine)
	cut := false // the rest of the line is dropped
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		fresh := len(buf)
		buf = buf[:fresh+n]
		for {
			i := bytes.IndexByte(buf[fresh:], '\n')
			if i < 0 {
				break
			}
			if !cut {
				f(bytes.TrimSuffix(buf[:fresh+i], []byte("\r")))
			}
			buf = buf[:copy(buf, buf[fresh+i+1:])]
			fresh = 0
			cut = false
		}
		if len(buf) == cap(buf) {
			if !cut {
				f(buf)
			}
			buf = buf[:0]
			cut = true
		}
		if err != nil {
			if len(buf) > 0 && !cut {
				f(buf)
			}
			return
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	b = b[max(0, n-maxTail):]
	keep := t.b[max(0, len(t.b)+len(b)-maxTail):]
	t.b = append(append(make([]byte, 0, maxTail), keep...), b...)
	return n, nil
}

// String is the tail as text that logs can hold.
func (t *tail) String() string { return strings.TrimSpace(strings.ToValidUTF8(string(t.b), "�")) }
