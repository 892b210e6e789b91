package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"

	"atelier/internal/base/osfile"
)

// spoolBuffer is the size of a spool's memory buffer, in bytes.
const spoolBuffer = 32 << 10

// spool buffers one part of a value at a time: a short part in memory, a
// longer one in a file of the system's temporary folder. The file has no
// name, so the system deletes it even if the process is killed. If a client
// stops sending, its upload occupies one small buffer and at most one part on
// disk.
type spool struct {
	buffer []byte
	file   *os.File
	size   int64
	sum    hash.Hash
}

func newSpool() *spool { return &spool{buffer: make([]byte, spoolBuffer)} }

// fillPart reads the next part of at most limit bytes from r and reports
// whether it is the last one. It returns an error of r unchanged.
func (s *spool) fillPart(r io.Reader, limit int64) (last bool, err error) {
	s.size = 0
	s.sum = sha256.New()
	for s.size < limit {
		n, ended, err := readBlock(r, s.buffer[:min(int64(len(s.buffer)), limit-s.size)])
		if err != nil {
			return false, err
		}

		s.sum.Write(s.buffer[:n])
		if ended && s.size == 0 && s.file == nil {
			s.size = int64(n)
			return true, nil // the whole part is in the memory buffer
		}

		if err := s.appendToFile(s.buffer[:n]); err != nil {
			return false, err
		}

		s.size += int64(n)
		if ended {
			return true, nil
		}
	}
	return false, nil
}

// readBlock fills p from r and reports whether r ended before p was full.
// Unlike io.ReadFull it returns io.ErrUnexpectedEOF of r as an error, because
// a truncated request body ends with it.
func readBlock(r io.Reader, p []byte) (n int, ended bool, err error) {
	for n < len(p) {
		m, err := r.Read(p[n:])
		n += m
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// appendToFile appends p to the spool's file. It creates the file if there is
// none.
func (s *spool) appendToFile(p []byte) error {
	if s.file == nil {
		f, err := osfile.CreateUnnamed("", "atelier-upload-")
		if err != nil {
			return storageError("spool an upload", err)
		}
		s.file = f
	}
	if _, err := s.file.WriteAt(p, s.size); err != nil {
		return storageError("spool an upload", err)
	}
	return nil
}

// newReader returns a reader of the buffered part. It can be called several
// times, for retries.
func (s *spool) newReader() io.ReadSeeker {
	if s.file == nil {
		return bytes.NewReader(s.buffer[:s.size])
	}
	return io.NewSectionReader(s.file, 0, s.size)
}

// sha256Hex returns the SHA-256 of the part in hexadecimal.
func (s *spool) sha256Hex() string { return hex.EncodeToString(s.sum.Sum(nil)) }

// closeFile closes the temporary file, if there is one.
func (s *spool) closeFile() {
	if s.file != nil {
		_ = s.file.Close() // an error is ignored, because the system deletes the file
	}
}
