package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"atelier"
)

// licencesName is the file with the licence texts of all works in the programs.
// It is compressed in the repository, and plain in the packages.
const licencesName = "THIRD-PARTY-LICENSES"

// ownModules is how the paths of this repository's modules begin.
const ownModules = "atelier"

// linkedPackage is a package of the program, as go list describes it.
type linkedPackage struct {
	Dir        string
	EmbedFiles []string
	Module     *linkedModule // nil: a package of the standard library
}

type linkedModule struct {
	Path, Version, Dir string
	Replace            *linkedModule
}

// listPackages returns the packages that a program consists of.
func listPackages(ctx context.Context, root string, t Target) ([]linkedPackage, error) {
	c := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,EmbedFiles,Module", "./cmd/atelier")
	c.Dir = root
	c.Env = append(os.Environ(), t.environment()...)
	out, err := c.Output()
	if err != nil {
		if ended, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(ended.Stderr))
		}
		return nil, fmt.Errorf("go list for %s: %w", t, err)
	}
	var all []linkedPackage
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p linkedPackage
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// licenceName matches the names of files with licence texts and notices, and of
// code that is about them.
var licenceName = regexp.MustCompile(`(?i)^(.*[-.])?(licen[cs]e|copying|notice|patents|unlicense)([-.].*)?$`)

// codeEndings are the endings of files that are code.
var codeEndings = []string{".go", ".js", ".css"}

// licenceTexts collects licence texts, each with the works that it is for.
type licenceTexts struct {
	works map[string][]string // by text: lines such as "example.com/module v1.2.0, LICENSE"
	read  map[string]bool     // by folder: whether there are texts in it or above
}

// collectLicences returns the licence texts of the works in the programs for the
// targets: of modules, of parts of modules that have their own, of Go, and of
// works of others that are in this repository. It fails if a module has none.
func collectLicences(ctx context.Context, root string, targets []Target) (string, error) {
	goRoot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	l := licenceTexts{works: map[string][]string{}, read: map[string]bool{}}
	for _, t := range targets {
		packages, err := listPackages(ctx, root, t)
		if err != nil {
			return "", err
		}
		for _, p := range packages {
			name := "Go"
			top := strings.TrimSpace(string(goRoot))
			own := false
			if m := p.Module; m != nil {
				m = cmp.Or(m.Replace, m)
				name = strings.TrimSpace(m.Path + " " + m.Version)
				top = m.Dir
				own = strings.HasPrefix(p.Module.Path, ownModules)
			}
			if own {
				err = l.addEmbedded(p)
			} else {
				err = l.addFolder(name, top, p.Dir)
			}
			if err != nil {
				return "", err
			}
		}
	}
	return l.format(), nil
}

// addFolder adds the texts in the folder of a package and in all folders above
// it, up to the top of its module. It fails if there are none.
func (l licenceTexts) addFolder(name, top, folder string) error {
	found, err := l.addAbove(name, top, folder)
	if err == nil && !found {
		return fmt.Errorf("%s has no licence file", name)
	}
	return err
}

func (l licenceTexts) addAbove(name, top, folder string) (bool, error) {
	if found, known := l.read[folder]; known {
		return found, nil
	}
	found, err := l.addFiles(name, top, folder)
	if err != nil {
		return false, err
	}
	if above := filepath.Dir(folder); folder != top && above != folder {
		foundAbove, err := l.addAbove(name, top, above)
		if err != nil {
			return false, err
		}
		found = found || foundAbove
	}
	l.read[folder] = found
	return found, nil
}

// addEmbedded adds the texts beside the files that a package of this repository
// embeds from a folder below its own: such a folder may be the work of others.
func (l licenceTexts) addEmbedded(p linkedPackage) error {
	for _, file := range p.EmbedFiles {
		folder := filepath.Join(p.Dir, path.Dir(file))
		if folder == p.Dir || l.read[folder] {
			continue
		}
		l.read[folder] = true
		if _, err := l.addFiles(filepath.Base(folder), folder, folder); err != nil {
			return err
		}
	}
	return nil
}

// addFiles adds the texts in a folder and reports whether there are any.
func (l licenceTexts) addFiles(name, top, folder string) (bool, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false, err
	}
	found := false
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceName.MatchString(e.Name()) || slices.Contains(codeEndings, filepath.Ext(e.Name())) {
			continue
		}
		file := filepath.Join(folder, e.Name())
		content, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		relative, err := filepath.Rel(top, file)
		if err != nil {
			return false, err
		}
		text := strings.TrimSpace(strings.ReplaceAll(string(content), "\r\n", "\n"))
		l.works[text] = append(l.works[text], name+", "+filepath.ToSlash(relative))
		found = true
	}
	return found, nil
}

// format returns all texts, each once, below the names of its works.
func (l licenceTexts) format() string {
	headings := map[string]string{}
	for text, works := range l.works {
		slices.Sort(works)
		headings[strings.Join(slices.Compact(works), "\n")] = text
	}
	var all strings.Builder
	all.WriteString("The program contains the works below, each under the licence that follows its\nname. Not every work is in the program for every system.\n")
	for _, heading := range slices.Sorted(maps.Keys(headings)) {
		fmt.Fprintf(&all, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), heading, headings[heading])
	}
	return all.String()
}

// writeLicences writes the compressed licence texts into the repository, from
// where they become part of the program.
func writeLicences(ctx context.Context, root string) error {
	targets, err := parseTargets(strings.Join(allTargets, ","))
	if err != nil {
		return err
	}
	text, err := collectLicences(ctx, root, targets)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, licencesName+".gz"), packed.Bytes(), 0o644) //nolint:gosec // for everybody
}

// checkLicences returns an error if a module of a program is not among the
// licence texts.
func checkLicences(info *debug.BuildInfo) error {
	text := atelier.ThirdPartyLicenses()
	for _, m := range externalModules(info) {
		m = cmp.Or(m.Replace, m)
		if !strings.Contains(text, "\n"+m.Path+" "+m.Version+", ") {
			return fmt.Errorf("%s.gz lacks %s %s: run make generate", licencesName, m.Path, m.Version)
		}
	}
	return nil
}

// externalModules returns the modules of a program that are not in this
// repository, sorted by path.
func externalModules(info *debug.BuildInfo) []*debug.Module {
	var all []*debug.Module
	for _, m := range info.Deps {
		if !strings.HasPrefix(m.Path, ownModules+"/") {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	return all
}
