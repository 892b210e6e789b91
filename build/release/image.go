package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the number of the user and the group that the image runs as.
const imageUser = 65532

// writeImage writes an image for the given architectures as an OCI image layout
// in a tar archive. The image contains the program with its licences, a user, a
// folder for data, a folder for temporary files, and the certificates of the
// authorities that Mozilla trusts, in the version that go.mod names.
func writeImage(s Source, programs map[string]Program, name string) error {
	folder, err := os.MkdirTemp("", "atelier-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)

	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range slices.Sorted(maps.Keys(programs)) {
		image, err := buildImage(s, arch, programs[arch])
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	to, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	// The names under which tools that load a layout find the image: the first is
	// of the specification, Docker and Podman prefer the second.
	tagged := layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": s.Version,
		"io.containerd.image.name":          imageName + ":" + s.Version,
	})
	if err := to.AppendIndex(index, tagged); err != nil {
		return err
	}
	return packFolder(s, folder, name)
}

// buildImage returns the image for one architecture.
func buildImage(s Source, arch string, p Program) (v1.Image, error) {
	files, err := imageFiles(p)
	if err != nil {
		return nil, err
	}
	packed, err := packTar(files, s.Time)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(s.Level), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: s.Time}, CreatedBy: "build/release"},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: s.Time}
	config.OS = "linux"
	config.Architecture = arch
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", imageUser, imageUser),
		Entrypoint:   []string{"/usr/bin/atelier"},
		Cmd:          []string{"serve"},
		Env:          []string{"PATH=/usr/local/bin:/usr/bin:/bin", "ATELIER_DATA=/var/lib/atelier", "ATELIER_LISTEN=0.0.0.0:8080", "ATELIER_LOG_FORMAT=json"},
		WorkingDir:   "/var/lib/atelier",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Volumes:      map[string]struct{}{"/var/lib/atelier": {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "Atelier",
			"org.opencontainers.image.version":  s.Version,
			"org.opencontainers.image.revision": s.Commit,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// imageFiles returns the content of the image's only layer.
func imageFiles(p Program) ([]entry, error) {
	content, err := os.ReadFile(p.Path)
	if err != nil {
		return nil, err
	}
	account := fmt.Sprintf("atelier:x:%d:", imageUser)
	files := []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\n" + account + "\n")},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\n%s%d::/var/lib/atelier:/sbin/nologin\n", account, imageUser)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: trustedCertificates()},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: "usr/bin/atelier", mode: 0o755, content: content},
		{name: "var/", mode: 0o755},
		{name: "var/lib/", mode: 0o755},
		{name: "var/lib/atelier/", mode: 0o700, owner: imageUser},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/doc/", mode: 0o755},
		{name: "usr/share/doc/atelier/", mode: 0o755},
	}
	return append(files, licenceEntries("usr/share/doc/atelier")...), nil
}

// trustedCertificates returns the certificates of the authorities that Mozilla
// trusts without constraints, in PEM. Those with constraints are left out,
// because a file of certificates cannot express them.
func trustedCertificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writing to memory does not fail
		}
	}
	return all.Bytes()
}

// packFolder writes all files of a folder to a tar archive, sorted by name.
func packFolder(s Source, folder, name string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	w := tar.NewWriter(f)
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeDir, Name: filepath.ToSlash(relative) + "/", Mode: 0o755, ModTime: s.Time, Format: tar.FormatGNU}
		var content []byte
		if !d.IsDir() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
			h.Typeflag = tar.TypeReg
			h.Name = filepath.ToSlash(relative)
			h.Mode = 0o644
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}
