package main

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the format of dpkg has it
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// debFiles are the files of packaging/deb that a Debian package installs.
var debFiles = []struct {
	source string
	entry  entry
}{
	{"atelier.service", entry{name: "usr/lib/systemd/system/atelier.service", mode: 0o644}},
	{"atelier.yaml", entry{name: "etc/atelier/atelier.yaml", mode: 0o640}},
	{"environment", entry{name: "etc/atelier/environment", mode: 0o640}},
	{"copyright", entry{name: "usr/share/doc/atelier/copyright", mode: 0o644}},
}

// debScripts are the files of packaging/deb that dpkg runs.
var debScripts = []string{"postinst", "prerm", "postrm"}

// writeDeb writes a Debian package (deb(5)): an ar archive with the version of
// the format, the control files and the installed files. The format is small
// enough to need no library, and the ones there are bring dozens of modules.
func writeDeb(s Source, p Program, name string) error {
	data, err := debData(s, p)
	if err != nil {
		return err
	}
	control, err := debControl(s, p, data)
	if err != nil {
		return err
	}
	controlTar, err := packTarGzip(s, control)
	if err != nil {
		return err
	}
	dataTar, err := packTarGzip(s, withFolders(data))
	if err != nil {
		return err
	}

	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	addArMember(&out, "debian-binary", []byte("2.0\n"), s.Time)
	addArMember(&out, "control.tar.gz", controlTar, s.Time)
	addArMember(&out, "data.tar.gz", dataTar, s.Time)
	return os.WriteFile(name, out.Bytes(), 0o644) //nolint:gosec // for everybody
}

// addArMember appends a file to an ar archive.
func addArMember(out *bytes.Buffer, name string, content []byte, at time.Time) {
	fmt.Fprintf(out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, at.Unix(), 0, 0, "100644", len(content))
	out.Write(content)
	if len(content)%2 == 1 {
		out.WriteByte('\n')
	}
}

// debData returns the files that the package installs.
func debData(s Source, p Program) ([]entry, error) {
	program, err := os.ReadFile(p.Path)
	if err != nil {
		return nil, err
	}
	all := []entry{{name: "usr/bin/atelier", mode: 0o755, content: program}}
	for _, f := range debFiles {
		one := f.entry
		if one.content, err = os.ReadFile(filepath.Join(s.Root, "packaging", "deb", f.source)); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return append(all, licenceEntries("usr/share/doc/atelier")...), nil
}

// debControl returns the control files: the description, the scripts, the list
// of settings files, which an upgrade keeps, and the digests.
func debControl(s Source, p Program, data []entry) ([]entry, error) {
	var conffiles, sums strings.Builder
	size := 0
	for _, e := range data {
		size += (len(e.content) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(e.content), e.name) //nolint:gosec // the format of dpkg has it
		if strings.HasPrefix(e.name, "etc/") {
			fmt.Fprintf(&conffiles, "/%s\n", e.name)
		}
	}
	template, err := os.ReadFile(filepath.Join(s.Root, "packaging", "deb", "control"))
	if err != nil {
		return nil, err
	}
	control := strings.NewReplacer(
		"{version}", debVersion(s.Version),
		"{architecture}", p.Target.Arch,
		"{maintainer}", s.Maintainer,
		"{size}", fmt.Sprint(size),
	).Replace(string(template))

	all := []entry{
		{name: "./control", mode: 0o644, content: []byte(control)},
		{name: "./conffiles", mode: 0o644, content: []byte(conffiles.String())},
		{name: "./md5sums", mode: 0o644, content: []byte(sums.String())},
	}
	for _, name := range debScripts {
		content, err := os.ReadFile(filepath.Join(s.Root, "packaging", "deb", name))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name: "./" + name, mode: 0o755, content: content})
	}
	return all, nil
}

// debVersion returns a version in the form of Debian, in which a tilde sorts
// before everything: 1.2.0~rc1 is older than 1.2.0.
func debVersion(version string) string { return strings.ReplaceAll(version, "-", "~") }

// withFolders adds the folders of the files before them, each once, because
// dpkg creates no folder that is not in the package.
func withFolders(files []entry) []entry {
	seen := map[string]bool{}
	all := []entry{{name: "./", mode: 0o755}}
	for _, f := range files {
		parts := strings.Split(path.Dir(f.name), "/")
		for i := range parts {
			folder := "./" + strings.Join(parts[:i+1], "/") + "/"
			if !seen[folder] {
				seen[folder] = true
				all = append(all, entry{name: folder, mode: 0o755})
			}
		}
		f.name = "./" + f.name
		all = append(all, f)
	}
	return all
}
