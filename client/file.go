package client

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// File is a file to send, from the disk or from any io.ReaderAt. It is read
// while it is sent, perhaps several times, and never held in memory whole.
type File struct {
	// Name is the name that the service shows.
	Name string
	// Path is the file on the disk. It is used if Content is nil.
	Path string
	// Content has the bytes of the file, and Size their number.
	Content io.ReaderAt
	Size    int64
}

// FileAt returns the file at a path of the disk.
func FileAt(path string) File { return File{Name: filepath.Base(path), Path: path} }

// FileOf returns a file with the given content.
func FileOf(name string, content []byte) File {
	return File{Name: name, Content: bytes.NewReader(content), Size: int64(len(content))}
}

// openFile is a File that is open for reading.
type openFile struct {
	name    string
	content io.ReaderAt
	size    int64
	close   func() error
}

// open opens a file.
func (f File) open() (*openFile, error) {
	if f.Content != nil {
		return &openFile{name: f.Name, content: f.Content, size: f.Size, close: func() error { return nil }}, nil
	}
	if f.Path == "" {
		return nil, errors.New("a file needs a path or content")
	}
	disk, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	info, err := disk.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: f.Path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	name := f.Name
	if name == "" {
		name = filepath.Base(f.Path)
	}
	return &openFile{name: name, content: disk, size: info.Size(), close: disk.Close}, nil
}

// Progress is told of the bytes that were moved so far, and of their total. It
// may be called from another goroutine, but never twice at once, and not after
// the call that it was given to has returned.
type Progress func(done, total int64)

// section is a part of a file that is sent.
type section struct {
	from     io.Reader
	left     int64 // bytes of the section that were not read yet
	done     int64 // bytes of all files that were read
	total    int64 // bytes of all files
	progress Progress
}

// section returns the size bytes of the file from an offset on.
func (f *openFile) section(offset, size int64) *section {
	return &section{
		from:  io.NewSectionReader(f.content, offset, size),
		left:  size,
		done:  offset,
		total: f.size,
	}
}

// Read implements io.Reader. Its failures are final: the file is at fault, not
// the connection.
func (s *section) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.left -= int64(n)
	s.done += int64(n)
	if s.progress != nil && n > 0 {
		s.progress(s.done, s.total)
	}
	switch {
	case err == io.EOF && s.left > 0:
		err = &finalError{errors.New("the file became shorter while it was sent")}
	case err != nil && err != io.EOF:
		err = &finalError{err}
	}
	return n, err
}
