package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
)

// spoolBuffer is all that a spool holds in memory.
const spoolBuffer = 32 << 10

// spool collects one part of a value at a time: its beginning in memory, a
// longer one in a file of the system's temporary folder. The file has no name
// there, so it goes with the process however that ends. A sender that stalls
// holds one small buffer and, on disk, no more than one part.
type spool struct {
	buffer []byte
	file   *os.File
	size   int64
	sum    hash.Hash
}

func newSpool() *spool { return &spool{buffer: make([]byte, spoolBuffer)} }

// fillPart reads the next part from r, of at most limit bytes, and says whether it
// is the last one. An error of r comes back as it is.
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
			return true, nil // all of it is in the buffer
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

// readBlock fills p and says whether r ended before. It differs from
// io.ReadFull in that io.ErrUnexpectedEOF of r, by which a request that was cut
// off ends, stays an error.
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

// appendToFile adds to the file, which the first bytes make.
func (s *spool) appendToFile(p []byte) error {
	if s.file == nil {
		f, err := os.CreateTemp("", "atelier-upload-")
		if err != nil {
			return storageError("spool an upload", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil {
			return storageError("spool an upload", err)
		}
	}
	if _, err := s.file.WriteAt(p, s.size); err != nil {
		return storageError("spool an upload", err)
	}
	return nil
}

// newReader reads what was collected, as often as it is asked for.
func (s *spool) newReader() io.ReadSeeker {
	if s.file == nil {
		return bytes.NewReader(s.buffer[:s.size])
	}
	return io.NewSectionReader(s.file, 0, s.size)
}

// sha256Hex is the hash of the part.
func (s *spool) sha256Hex() string { return hex.EncodeToString(s.sum.Sum(nil)) }

// closeFile gives the file back.
func (s *spool) closeFile() {
	if s.file != nil {
		_ = s.file.Close() // it has no name any more, and nobody needs its bytes
	}
}
