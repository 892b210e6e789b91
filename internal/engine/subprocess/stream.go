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
	maxLine = 64 << 10 // maximum length of a line of output, in bytes
	maxTail = 4 << 10  // number of bytes at the end of standard error that are kept
	// maxLate is the maximum number of bytes, and drainTimeout the maximum
	// time, for reading output after the program has ended. They suffice for
	// the data that is still in the pipe, and end the reading if other
	// processes continue to write to the pipe.
	maxLate      = 1 << 20
	drainTimeout = 500 * time.Millisecond
)

// pastDeadline is a deadline in the past, which makes blocked reads and writes
// return.
var pastDeadline = time.Unix(1, 0)

// streams are the pipes between this process and the program.
type streams struct {
	near, far      []*os.File // pipe ends of this process and of the program, by file descriptor
	in             []byte
	stdin, status  *os.File
	stdout, stderr *outputReader
	tail           tailBuffer
}

func (p *Program) openPipes() (*streams, error) {
	s := &streams{in: p.Stdin}
	for fd := range statusFile + 1 {
		near, far, err := os.Pipe()
		if err != nil {
			s.closeAll()
			return nil, err
		}
		if fd == 0 { // standard input is the only stream that the program reads
			near, far = far, near
		}
		s.near = append(s.near, near)
		s.far = append(s.far, far)
	}
	s.stdin = s.near[0]
	s.status = s.near[statusFile]
	s.stdout = &outputReader{file: s.near[1]}
	s.stderr = &outputReader{file: s.near[2]}
	return s, nil
}

// closeProgramEnds closes this process's copies of the program's pipe ends,
// once the program has started.
func (s *streams) closeProgramEnds() {
	for _, f := range s.far {
		f.Close()
	}
}

// closeAll closes both ends of all pipes. It may be called twice.
func (s *streams) closeAll() {
	s.closeProgramEnds()
	for _, f := range s.near {
		f.Close()
	}
}

// signalEnd makes blocked reads and writes return after the program has ended.
func (s *streams) signalEnd() {
	_ = s.stdin.SetWriteDeadline(pastDeadline) // fails if stdin is closed
	_ = s.stdout.file.SetReadDeadline(pastDeadline)
	_ = s.stderr.file.SetReadDeadline(pastDeadline)
}

// writeStdin writes the program's standard input. Errors are ignored, because
// programs need not read it.
func (s *streams) writeStdin() {
	_, _ = s.stdin.Write(s.in)
	s.stdin.Close()
}

func (s *streams) readStderr() { _, _ = io.Copy(&s.tail, s.stderr) }

// launcherStatus returns the error that the launcher wrote, or nothing if it
// succeeded. The read returns when the launcher ends or starts the program,
// because no other process can write to the pipe.
func (s *streams) launcherStatus() []byte {
	b, _ := io.ReadAll(io.LimitReader(s.status, 1<<10))
	return b
}

// outputReader reads the program's output. After signalEnd it reads the
// remaining output, limited by drainTimeout and maxLate.
type outputReader struct {
	file *os.File
	late bool
	read int // number of bytes read since signalEnd
}

func (o *outputReader) Read(b []byte) (int, error) {
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
	timer := time.AfterFunc(drainTimeout, func() { _ = o.file.SetReadDeadline(pastDeadline) })
	defer timer.Stop()
	n, err := o.file.Read(b)
	o.read += n
	return n, err
}

// eachLine calls f with each line of r. Lines are cut at maxLine bytes, so the
// memory needed does not depend on the input.
func eachLine(r io.Reader, f func(line []byte)) {
	if f == nil {
		_, _ = io.Copy(io.Discard, r)
		return
	}
	buf := make([]byte, 0, maxLine)
	cut := false // true while the rest of a long line is skipped
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

// tailBuffer is a writer that keeps the last maxTail bytes written to it.
type tailBuffer struct{ b []byte }

func (t *tailBuffer) Write(b []byte) (int, error) {
	n := len(b)
	b = b[max(0, n-maxTail):]
	keep := t.b[max(0, len(t.b)+len(b)-maxTail):]
	t.b = append(append(make([]byte, 0, maxTail), keep...), b...)
	return n, nil
}

// String returns the buffer's content as valid UTF-8, for logs.
func (t *tailBuffer) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(t.b), "�"))
}
