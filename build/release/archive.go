package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"atelier"
)

// entry is a file or folder of a package.
type entry struct {
	name    string // relative path; folders end with "/"
	mode    int64
	content []byte
	owner   int // user and group id
}

// licenceEntries returns the licence texts, below a folder.
func licenceEntries(folder string) []entry {
	return []entry{
		{name: path.Join(folder, "LICENSE"), mode: 0o644, content: []byte(atelier.License)},
		{name: path.Join(folder, "NOTICE"), mode: 0o644, content: []byte(atelier.Notice)},
		{name: path.Join(folder, licencesName), mode: 0o644, content: []byte(atelier.ThirdPartyLicenses())},
	}
}

// writeArchive writes the program, its documents and its licences to
// base.tar.gz, or to base.zip for Windows.
func writeArchive(s Source, p Program, base string) error {
	program, err := os.ReadFile(p.Path)
	if err != nil {
		return err
	}
	folder := s.baseName() + "_" + p.Target.OS + "_" + p.Target.Arch
	entries := []entry{{name: path.Join(folder, p.Target.programName()), mode: 0o755, content: program}}
	for _, name := range []string{"README.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(filepath.Join(s.Root, name))
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: path.Join(folder, name), mode: 0o644, content: content})
	}
	entries = append(entries, licenceEntries(folder)...)

	var packed []byte
	name := base + ".tar.gz"
	if p.Target.OS == "windows" {
		name = base + ".zip"
		packed, err = packZip(s, entries)
	} else {
		packed, err = packTarGzip(s, entries)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(name, packed, 0o644) //nolint:gosec // for everybody
}

// packTar returns a tar archive. All entries have the same time, and the
// numeric owners that they ask for.
func packTar(entries []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{
			Typeflag: tar.TypeReg,
			Name:     e.name,
			Mode:     e.mode,
			Size:     int64(len(e.content)),
			ModTime:  at,
			Uid:      e.owner,
			Gid:      e.owner,
			Format:   tar.FormatGNU,
		}
		if e.name[len(e.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// packTarGzip returns a compressed tar archive.
func packTarGzip(s Source, entries []entry) ([]byte, error) {
	plain, err := packTar(entries, s.Time)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, s.Level)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// packZip returns a zip archive.
func packZip(s Source, entries []entry) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, s.Level) })
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: s.Time}
		h.SetMode(os.FileMode(e.mode))
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(f, bytes.NewReader(e.content)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
