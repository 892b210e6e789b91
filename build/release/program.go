package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// Program is a compiled program, and the modules that are part of it.
type Program struct {
	Target   Target
	Path     string
	Info     *debug.BuildInfo
	Licences []byte // the licence texts of all modules, and of Go itself
}

// readProgram reads the modules of a compiled program and their licences.
func readProgram(ctx context.Context, s Source, t Target, path string) (Program, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return Program{}, err
	}
	p := Program{Target: t, Path: path, Info: info}
	if p.Licences, err = collectLicences(ctx, s, info); err != nil {
		return Program{}, err
	}
	return p, nil
}

// externalModules returns the modules of a program that are not in this
// repository, sorted by path.
func externalModules(info *debug.BuildInfo) []*debug.Module {
	var all []*debug.Module
	for _, m := range info.Deps {
		if !strings.HasPrefix(m.Path, "atelier/") {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// licenceName matches the names of files with licence texts and notices.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([-.].*)?$`)

// collectLicences returns the licence texts of the modules of a program. It
// fails if a module has none.
func collectLicences(ctx context.Context, s Source, info *debug.BuildInfo) ([]byte, error) {
	folders, err := moduleFolders(ctx, s)
	if err != nil {
		return nil, err
	}
	root, err := goRoot(ctx)
	if err != nil {
		return nil, err
	}

	var text bytes.Buffer
	text.WriteString("The program contains the works below, under the licences that follow each name.\nIts own licence is in the file LICENSE, further notices are in the file NOTICE.\n")
	if err := addLicences(&text, "Go "+strings.TrimPrefix(info.GoVersion, "go"), root); err != nil {
		return nil, err
	}
	for _, m := range externalModules(info) {
		if m.Replace != nil {
			m = m.Replace
		}
		folder, ok := folders[m.Path+"@"+m.Version]
		if !ok {
			return nil, fmt.Errorf("%s %s is part of the program but not in the module cache", m.Path, m.Version)
		}
		if err := addLicences(&text, m.Path+" "+m.Version, folder); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// addLicences appends the licence texts in a folder under a heading. It also
// reads the sub-folders that contain nothing but licences of parts.
func addLicences(text *bytes.Buffer, name, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceName.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(text, "\n%s\n%s, %s\n\n%s\n", strings.Repeat("=", 80), name, e.Name(), bytes.TrimSpace(content))
		found = true
	}
	if !found {
		return fmt.Errorf("%s has no licence file", name)
	}
	return nil
}

// moduleFolders returns the folder of each module, by path and version.
func moduleFolders(ctx context.Context, s Source) (map[string]string, error) {
	c := exec.CommandContext(ctx, "go", "list", "-m", "-json", "all")
	c.Dir = s.Root
	c.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	folders := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var m struct{ Path, Version, Dir string }
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		if m.Dir != "" {
			folders[m.Path+"@"+m.Version] = m.Dir
		}
	}
	return folders, nil
}

func goRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	root := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(root, "LICENSE")); errors.Is(err, fs.ErrNotExist) {
		return filepath.Dir(root), nil // some distributions keep it one folder above
	}
	return root, nil
}
