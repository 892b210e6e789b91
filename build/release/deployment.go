package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// imageName is the name of the image without a tag. This is the long form of
// "atelier" for Docker and Podman.
const imageName = "docker.io/library/atelier"

// developmentImage is the image that the compose file in the repository uses.
const developmentImage = "atelier:latest"

// writeCompose writes the compose file with the image of the release.
func writeCompose(s Source, name string) error {
	text, err := os.ReadFile(filepath.Join(s.Root, "packaging", "compose", "compose.yaml"))
	if err != nil {
		return err
	}
	if n := bytes.Count(text, []byte(developmentImage)); n != 1 {
		return fmt.Errorf("the compose file names %s %d times, want once", developmentImage, n)
	}
	text = bytes.Replace(text, []byte(developmentImage), []byte("atelier:"+s.Version), 1)
	return os.WriteFile(name, text, 0o644) //nolint:gosec // for everybody
}

// writeChart writes the Helm chart as an archive that Helm installs. The version
// of the release is the chart's version and the tag of its image.
func writeChart(s Source, name string) error {
	folder := os.DirFS(filepath.Join(s.Root, "packaging", "chart"))
	var files []entry
	err := fs.WalkDir(folder, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, file)
		if file == "Chart.yaml" {
			content = bytes.Replace(content, []byte("version: 0.0.0\n"), fmt.Appendf(nil, "version: %s\nappVersion: %q\n", s.Version, s.Version), 1)
		}
		files = append(files, entry{name: path.Join("atelier", file), mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return err
	}
	packed, err := packTarGzip(s, files)
	if err != nil {
		return err
	}
	return os.WriteFile(name, packed, 0o644) //nolint:gosec // for everybody
}
