package catalog

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"image/png"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Source is where manifests come from.
type Source string

// The sources. Where both have a slug, the directory's is the one that counts.
const (
	Builtin   Source = "builtin"
	Directory Source = "directory"
)

// From is a place to read manifests from.
type From struct {
	Source Source
	Files  fs.FS
	// Name is put before file names in problems.
	Name string
	// Offer says what becomes of tools that need an engine; nil offers all.
	Offer func(engine string) Offer
	// Inspect finds what a tool could not run with although its manifest is well
	// formed; nil finds nothing.
	Inspect func(t *Tool) []Remark
}

// Remark is something in a tool's manifest that keeps it from running.
type Remark struct {
	// Path is where, by keys and places in lists: fields, 2, accept. What is not
	// in the manifest is remarked on at what it would be in.
	Path    []string
	Message string
}

// Offer is what becomes of a tool.
type Offer int

// The ways to offer a tool, or not.
const (
	Offered Offer = iota
	LeftOut       // nothing here can run it
	AsItWas       // others know whether something can
)

// The files of a source that are no tools.
const (
	tagsFile = "tags.yaml"
	kitsFile = "kits.yaml"
)

// Bounds of a source.
const (
	maxManifest = 1 << 20
	maxAsset    = 1 << 20
	maxPixels   = 2048 // each way
)

// Set is what some sources say the catalog is.
type Set struct {
	Problems []Problem
	// Warnings are what is not as it was probably meant: remarks on tools, and
	// files that are not read. They change nothing.
	Warnings []Problem
	Assets   map[Asset][]byte

	tools, tags, kits map[string]entry
	sources           []Source
	// broken are the slugs of tools whose manifest had a problem: they stay as
	// they are.
	brokenTools map[string]bool
	// kept are lists with a problem: all that came from them stays.
	brokenLists map[listFile]bool
	// left are the slugs of tools that are not offered, and same of those about
	// which others decide.
	unavailable, unknown map[string]bool
}

// entry is a manifest that is fit to be stored.
type entry struct {
	source     Source
	definition string // canonical JSON
}

type kind string

const (
	toolKind kind = "tool"
	tagKind  kind = "tool_tag"
	kitKind  kind = "kit"
)

// listFile is a source's list of one kind.
type listFile struct {
	kind   kind
	source Source
}

// Len says how many tools the set has.
func (s *Set) Len() int { return len(s.tools) }

// LenOf says how many of them come from a source.
func (s *Set) LenOf(source Source) (n int) {
	for _, e := range s.tools {
		if e.source == source {
			n++
		}
	}
	return n
}

// Tools gives the set's tools by slug, in order, as their manifests say.
func (s *Set) Tools() iter.Seq2[string, *Tool] {
	return func(yield func(string, *Tool) bool) {
		for _, slug := range sortedKeys(s.tools) {
			t, err := decodeTool(s.tools[slug].definition)
			if err == nil && !yield(slug, t) { // it was read before it was stored
				return
			}
		}
	}
}

// Read reads manifests and reports every problem with file and line. It fails
// only when a source cannot be read at all.
func Read(from ...From) (*Set, error) {
	s := &Set{
		Assets:      map[Asset][]byte{},
		tools:       map[string]entry{},
		tags:        map[string]entry{},
		kits:        map[string]entry{},
		brokenTools: map[string]bool{},
		brokenLists: map[listFile]bool{},
		unavailable: map[string]bool{},
		unknown:     map[string]bool{},
	}
	names := make([][]string, len(from))
	for i, f := range from {
		s.sources = append(s.sources, f.Source)
		all, err := fs.ReadDir(f.Files, ".")
		if err != nil {
			return nil, fmt.Errorf("read tools: %w", err)
		}
		for _, e := range all {
			if n := e.Name(); !e.IsDir() && strings.HasSuffix(n, ".yaml") && !strings.HasPrefix(n, ".") {
				names[i] = append(names[i], n)
			}
		}
		s.warnUnread(f, all, len(names[i]) > 0)
	}
	// Tools name tags and kits name tools, so they are read in that order.
	for _, f := range from {
		s.readList(f, tagsFile, tagKind, func(r *manifestReader, root *yaml.Node) { r.readTags(root) })
	}
	for i, f := range from {
		for _, n := range names[i] {
			if n != tagsFile && n != kitsFile {
				s.readTool(f, n)
			}
		}
	}
	for _, f := range from {
		s.readList(f, kitsFile, kitKind, func(r *manifestReader, root *yaml.Node) { r.readKits(root, s.knowsTool) })
	}
	SortProblems(s.Problems)
	SortProblems(s.Warnings)
	return s, nil
}

// SortProblems orders problems by where they are.
func SortProblems(all []Problem) {
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// warnUnread tells of what looks like a manifest and is not read, and of a source
// that has none.
func (s *Set) warnUnread(f From, all []fs.DirEntry, some bool) {
	warn := func(name, message string) {
		s.Warnings = append(s.Warnings, Problem{path.Join(f.Name, name), 1, 1, message})
	}
	for _, e := range all {
		name := e.Name()
		switch suffix := strings.ToLower(path.Ext(name)); {
		case strings.HasPrefix(name, "."):
		case e.IsDir() && hasManifests(f.Files, name):
			warn(name, "manifests in folders are not read: move them up")
		case !e.IsDir() && (suffix == ".yml" || suffix == ".yaml") && path.Ext(name) != ".yaml":
			warn(name, "is not read: the names of manifests end in .yaml")
		}
	}
	if !some {
		warn("", "there is no manifest in this folder: files whose names end in .yaml")
	}
}

// hasManifests tells whether a folder holds files that look like manifests.
func hasManifests(files fs.FS, folder string) bool {
	all, _ := fs.ReadDir(files, folder) // one that cannot be read shows none
	return slices.ContainsFunc(all, func(e fs.DirEntry) bool {
		suffix := strings.ToLower(path.Ext(e.Name()))
		return !e.IsDir() && (suffix == ".yml" || suffix == ".yaml")
	})
}

// knowsTag tells whether a tool may name the tag. With a broken vocabulary any
// may be: the tags in force are those of the last good one.
func (s *Set) knowsTag(slug string) bool {
	_, ok := s.tags[slug]
	return ok || s.brokenLists[listFile{tagKind, Builtin}] || s.brokenLists[listFile{tagKind, Directory}]
}

func (s *Set) knowsTool(slug string) bool {
	_, ok := s.tools[slug]
	return ok || s.brokenTools[slug] || s.unavailable[slug] || s.unknown[slug]
}

func (s *Set) readTool(f From, name string) {
	r := &manifestReader{file: path.Join(f.Name, name), storeAsset: s.newAssetReader(f.Files), readInclude: newIncludeReader(f.Files)}
	slug := strings.TrimSuffix(name, ".yaml")
	if !slugPattern.MatchString(slug) || len(slug) > 64 {
		r.addProblem(nil, "a manifest's file name has small letters, digits and dashes, such as my-tool.yaml")
	}
	if root := s.readRoot(r, f.Files, name); root != nil {
		t := r.readTool(root, s.knowsTag)
		if len(r.problems) == 0 {
			s.addTool(f, slug, t, canonicalJSON(r.plainValue(root)))
		}
		if f.Inspect != nil {
			for _, remark := range f.Inspect(t) {
				s.Warnings = append(s.Warnings, r.locateRemark(root, remark))
			}
		}
	}
	if len(r.problems) > 0 {
		s.Problems = append(s.Problems, r.problems...)
		s.brokenTools[slug] = true
		delete(s.tools, slug) // an operator's broken override must not bring the built-in back
	}
}

// addTool takes a good manifest in, unless nothing can run its tool.
func (s *Set) addTool(f From, slug string, t *Tool, definition string) {
	offer := Offered
	if f.Offer != nil {
		offer = f.Offer(t.Engine.Name)
	}
	switch offer {
	case LeftOut:
		s.unavailable[slug] = true
	case AsItWas:
		s.unknown[slug] = true
	default:
		s.tools[slug] = entry{f.Source, definition}
	}
}

// Left gives the slugs of the tools that nothing here can run, in order.
func (s *Set) Left() []string { return sortedKeys(s.unavailable) }

// readList reads a file that maps slugs to items, if the source has it.
func (s *Set) readList(f From, name string, k kind, check func(*manifestReader, *yaml.Node)) {
	if _, err := fs.Stat(f.Files, name); errors.Is(err, fs.ErrNotExist) {
		return
	}
	r := &manifestReader{file: path.Join(f.Name, name)}
	root := s.readRoot(r, f.Files, name)
	if root != nil {
		check(r, root)
	}
	if len(r.problems) > 0 {
		s.Problems = append(s.Problems, r.problems...)
		s.brokenLists[listFile{k, f.Source}] = true
		return
	}
	items, _ := r.plainValue(root).(map[string]any) // a mapping, or check had found a problem
	for slug, item := range items {
		s.entriesOf(k)[slug] = entry{f.Source, canonicalJSON(item)}
	}
}

// readRoot reads a file and gives its first node, nil after a problem. What is too
// large to walk is found here, before anything walks it.
func (s *Set) readRoot(r *manifestReader, files fs.FS, name string) *yaml.Node {
	text, err := readFile(files, name, maxManifest)
	if err != nil {
		r.addProblem(nil, "%v", err)
		return nil
	}
	root := r.parseDocument(text)
	if root == nil {
		return nil
	}
	r.plainValue(root)
	if len(r.problems) > 0 {
		return nil
	}
	r.nodeCount = 0
	return root
}

func readFile(files fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, fmt.Errorf("there is no file %s", name)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are allowed", name, info.Size(), limit)
	}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read", name)
	}
	return text, nil
}

// newAssetReader takes in pictures that lie beside the manifests.
func (s *Set) newAssetReader(files fs.FS) func(name string) (Asset, error) {
	return func(name string) (Asset, error) {
		if !fs.ValidPath(name) || path.Ext(name) != ".png" {
			return "", fmt.Errorf("%q must be the name of a .png file beside the manifest", name)
		}
		data, err := readFile(files, name, maxAsset)
		if err != nil {
			return "", err
		}
		conf, err := png.DecodeConfig(bytes.NewReader(data))
		if err != nil || conf.Width > maxPixels || conf.Height > maxPixels {
			return "", fmt.Errorf("%s must be a PNG of at most %d × %d pixels", name, maxPixels, maxPixels)
		}
		sum := sha256.Sum256(data)
		a := Asset(hex.EncodeToString(sum[:]))
		s.Assets[a] = data
		return a, nil
	}
}

// hashOf is the fingerprint of everything in a manifest that a person can edit.
func hashOf(definition string) string {
	sum := sha256.Sum256([]byte(definition))
	return "v1:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// decodeStored reads a stored item with the same rules as a manifest.
func decodeStored[T any](definition string, read func(*manifestReader, *yaml.Node) T) (item T, err error) {
	r := &manifestReader{file: "stored definition"}
	root := r.parseDocument([]byte(definition))
	if root != nil {
		item = read(r, root)
	}
	if len(r.problems) > 0 {
		return item, errors.New(r.problems[0].String())
	}
	return item, nil
}

// entriesOf gives the set's items of a kind.
func (s *Set) entriesOf(k kind) map[string]entry {
	switch k {
	case toolKind:
		return s.tools
	case tagKind:
		return s.tags
	}
	return s.kits
}

// sortedKeys gives the slugs of a list in order, so that applying twice does the
// same in the same order.
func sortedKeys[T any](bySlug map[string]T) []string { return slices.Sorted(maps.Keys(bySlug)) }

// decodeTag and decodeKit read an item of a list, whose slug is its name there.
func decodeTag(r row) (Tag, error) {
	list, err := decodeStored(namedDefinition(r), (*manifestReader).readTags)
	if err != nil {
		return Tag{}, err
	}
	list[0].ID = r.id
	return list[0], nil
}

func decodeKit(r row) (Kit, error) {
	list, err := decodeStored(namedDefinition(r), func(d *manifestReader, n *yaml.Node) []Kit { return d.readKits(n, nil) })
	if err != nil {
		return Kit{}, err
	}
	list[0].ID = r.id
	return list[0], nil
}

func namedDefinition(r row) string { return canonicalJSON(r.slug) + ": " + r.definition }
