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

// Source says where a manifest comes from.
type Source string

// The sources of manifests: the program itself and the operator's folder. If
// both have a manifest with the same slug, the manifest in the operator's
// folder is used.
const (
	Builtin   Source = "builtin"
	Directory Source = "directory"
)

// ManifestFolder is a folder with manifests of tools, and optionally tags.yaml
// and kits.yaml.
type ManifestFolder struct {
	Source Source
	Files  fs.FS
	// Name is put before file names in the positions of problems.
	Name string
	// EngineAvailability reports whether tools of an engine can run. If it is
	// nil, all tools can run.
	EngineAvailability func(engine string) Availability
	// Inspect returns the reasons why a tool with a valid manifest cannot run.
	// If it is nil, tools are not inspected.
	Inspect func(t *Tool) []Remark
}

// Remark describes a setting in a tool's manifest because of which the tool
// cannot run.
type Remark struct {
	// Path is the position in the manifest, as keys and list indexes, for
	// example fields, 2, accept. For a missing key it is the position of the
	// parent.
	Path    []string
	Message string
}

// FlowPath returns the position in a flow, such as steps.1.inputs.factor.
func (r Remark) FlowPath() string {
	return strings.TrimPrefix(strings.Join(r.Path, "."), "engine.with.")
}

// Availability says whether a tool can run on this node.
type Availability int

// The possible availabilities of a tool.
const (
	Available           Availability = iota
	Unavailable                      // no engine or program of this node can run the tool
	UnknownAvailability              // this node cannot determine whether the tool can run; the stored tool stays unchanged
)

// Files in a manifest folder that are not manifests of tools.
const (
	tagsFile = "tags.yaml"
	kitsFile = "kits.yaml"
)

// Limits of files in a folder of manifests, in bytes and pixels.
const (
	maxManifest = 1 << 20
	maxAsset    = 1 << 20
	maxPixels   = 2048 // maximum width and height of a picture
)

// Set is the content that the catalog should have, as read from folders of
// manifests.
type Set struct {
	// Problems are errors in manifests. The tools, tags and kits with errors
	// are not applied.
	Problems []Problem
	// Warnings are probable mistakes: remarks on tools, and ignored files. They
	// do not prevent the manifests from being applied.
	Warnings []Problem
	// Assets are the PNG files of the pictures that the manifests refer to, by
	// digest.
	Assets map[Asset][]byte

	tools, tags, kits map[string]entry
	sources           []Source
	// brokenTools are the slugs of tools whose manifest has a problem. These
	// tools stay unchanged in the database.
	brokenTools map[string]bool
	// brokenLists are the list files (tags.yaml or kits.yaml) that have a
	// problem. All their items stay unchanged in the database.
	brokenLists map[listFile]bool
	// unavailable are the slugs of tools that cannot run on this node. unknown
	// are the slugs of tools for which this node cannot determine whether they
	// can run.
	unavailable, unknown map[string]bool
	flows                []readFlow
}

// readFlow is a flow whose manifest is valid by itself, and where it was read.
type readFlow struct {
	slug       string
	definition string
	tool       *Tool
	reader     *manifestReader
	root       *yaml.Node
}

// entry is a valid manifest of a tool, or a valid tag or kit.
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

// listFile identifies the list of tags or kits of a source.
type listFile struct {
	kind   kind
	source Source
}

// Len returns the number of tools in the set.
func (s *Set) Len() int { return len(s.tools) }

// LenOf returns the number of tools in the set that come from a source.
func (s *Set) LenOf(source Source) (n int) {
	for _, e := range s.tools {
		if e.source == source {
			n++
		}
	}
	return n
}

// SourceOf returns where the manifest of a tool of the set comes from.
func (s *Set) SourceOf(slug string) Source { return s.tools[slug].source }

// AllTools returns the tools of the set by slug, in the order of the slugs.
// They contain only the data of their manifests.
func (s *Set) AllTools() iter.Seq2[string, *Tool] {
	return func(yield func(string, *Tool) bool) {
		for _, slug := range sortedKeys(s.tools) {
			t, err := decodeTool(s.tools[slug].definition)
			if err == nil && !yield(slug, t) { // cannot fail, because Read encoded the definition
				return
			}
		}
	}
}

// Read reads the manifests of folders. Problems in files are collected in the
// set with their positions. Read returns an error only if a folder cannot be
// read at all.
func Read(from ...ManifestFolder) (*Set, error) {
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

	// Tools refer to tags, and kits refer to tools. They are therefore read in
	// this order.
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

	s.checkFlows()
	for _, f := range from {
		s.readList(f, kitsFile, kitKind, func(r *manifestReader, root *yaml.Node) { r.readKits(root, s.knowsTool) })
	}

	SortProblems(s.Problems)
	SortProblems(s.Warnings)
	return s, nil
}

// SortProblems sorts problems by file, line and column.
func SortProblems(all []Problem) {
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// warnUnread adds a warning for each file that looks like a manifest but is
// ignored, and a warning if the folder has no manifest.
func (s *Set) warnUnread(f ManifestFolder, all []fs.DirEntry, hasAny bool) {
	warn := func(name, message string) {
		s.Warnings = append(s.Warnings, Problem{path.Join(f.Name, name), 1, 1, message})
	}
	for _, e := range all {
		name := e.Name()
		switch suffix := strings.ToLower(path.Ext(name)); {
		case strings.HasPrefix(name, "."):
		case e.IsDir() && hasManifests(f.Files, name):
			warn(name, "manifests in subfolders are not read; move them to the main folder")
		case !e.IsDir() && (suffix == ".yml" || suffix == ".yaml") && path.Ext(name) != ".yaml":
			warn(name, "is not read: the name of a manifest must end in .yaml")
		}
	}
	if !hasAny {
		warn("", "this folder has no manifest (a file whose name ends in .yaml)")
	}
}

// hasManifests reports whether a subfolder has files that look like manifests.
func hasManifests(files fs.FS, folder string) bool {
	all, _ := fs.ReadDir(files, folder) // an unreadable folder counts as empty
	return slices.ContainsFunc(all, func(e fs.DirEntry) bool {
		suffix := strings.ToLower(path.Ext(e.Name()))
		return !e.IsDir() && (suffix == ".yml" || suffix == ".yaml")
	})
}

// knowsTag reports whether tools may use the tag. If a tags.yaml has a problem,
// every tag is accepted, because the tags in the database stay in use.
func (s *Set) knowsTag(slug string) bool {
	_, ok := s.tags[slug]
	return ok || s.brokenLists[listFile{tagKind, Builtin}] || s.brokenLists[listFile{tagKind, Directory}]
}

func (s *Set) knowsTool(slug string) bool {
	_, ok := s.tools[slug]
	return ok || s.brokenTools[slug] || s.unavailable[slug] || s.unknown[slug]
}

func (s *Set) readTool(f ManifestFolder, name string) {
	r := &manifestReader{file: path.Join(f.Name, name), storeAsset: s.newAssetReader(f.Files), readInclude: newIncludeReader(f.Files)}
	slug := strings.TrimSuffix(name, ".yaml")
	if !slugPattern.MatchString(slug) || len(slug) > 64 {
		r.addProblem(nil, "the file name of a manifest may contain only lower-case letters, digits and dashes, such as my-tool.yaml")
	}
	if root := s.readRoot(r, f.Files, name); root != nil {
		t := r.readTool(root, s.knowsTag)
		if len(r.problems) == 0 {
			definition := canonicalJSON(r.plainValue(root))
			s.addTool(f, slug, t, definition)
			if t.IsFlow() {
				s.flows = append(s.flows, readFlow{slug, definition, t, r, root})
			}
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
		delete(s.tools, slug) // a built-in tool must not replace the operator's tool whose manifest has a problem
	}
}

// addTool adds a tool with a valid manifest to the set, unless the tool cannot
// run.
func (s *Set) addTool(f ManifestFolder, slug string, t *Tool, definition string) {
	availability := Available
	if f.EngineAvailability != nil {
		availability = f.EngineAvailability(t.Engine.Name)
	}
	switch availability {
	case Unavailable:
		s.unavailable[slug] = true
	case UnknownAvailability:
		s.unknown[slug] = true
	default:
		s.tools[slug] = entry{f.Source, definition}
	}
}

// checkFlows checks the flows of the set after all tools were read. A flow with
// a tool that cannot run on this node cannot run either; a flow with a tool
// whose manifest has a problem stays unchanged in the database.
func (s *Set) checkFlows() {
	tools := map[string]*Tool{}
	for slug, t := range s.AllTools() {
		tools[slug] = t
	}
	find := func(slug, _ string) *Tool { return tools[slug] }
	for changed := true; changed; {
		changed = false
		for _, f := range s.flows {
			if s.tools[f.slug].definition != f.definition {
				continue // replaced by a manifest of another folder, or left out
			}
			names := f.tool.Flow.Tools()
			var problems []Problem
			switch {
			case slices.ContainsFunc(names, func(slug string) bool { return s.unavailable[slug] }):
				s.unavailable[f.slug] = true
			case slices.ContainsFunc(names, func(slug string) bool { return s.unknown[slug] || s.brokenTools[slug] }):
				s.unknown[f.slug] = true
			default:
				for _, remark := range f.tool.CheckFlow(find) {
					problems = append(problems, f.reader.locateRemark(f.root, remark))
				}
				if len(problems) == 0 {
					continue
				}
				s.Problems = append(s.Problems, problems...)
				s.brokenTools[f.slug] = true
			}
			delete(s.tools, f.slug)
			delete(tools, f.slug)
			changed = true
		}
	}
}

// UnavailableTools returns the slugs of the tools that cannot run on this node,
// in alphabetical order.
func (s *Set) UnavailableTools() []string { return sortedKeys(s.unavailable) }

// readList reads tags.yaml or kits.yaml, if the folder has it. check validates
// the file and adds its problems to the reader.
func (s *Set) readList(f ManifestFolder, name string, k kind, check func(*manifestReader, *yaml.Node)) {
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

	items, _ := r.plainValue(root).(map[string]any) // never fails: check has already rejected all values that are not mappings
	for slug, item := range items {
		s.entriesOf(k)[slug] = entry{f.Source, canonicalJSON(item)}
	}
}

// readRoot reads a YAML file and returns its root node, or nil if there was a
// problem. It rejects files that are too large, before other functions read
// their nodes.
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
		return nil, fmt.Errorf("%s has %d bytes; at most %d are allowed", name, info.Size(), limit)
	}

	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read", name)
	}
	return text, nil
}

// newAssetReader returns a function that reads a PNG file from the folder of
// the manifests and adds it to the assets of the set.
func (s *Set) newAssetReader(files fs.FS) func(name string) (Asset, error) {
	return func(name string) (Asset, error) {
		if !fs.ValidPath(name) || path.Ext(name) != ".png" {
			return "", fmt.Errorf("%q must be the name of a .png file in the manifest's folder", name)
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

// hashOf returns the hash of a tool's definition, which identifies a version of
// the tool.
func hashOf(definition string) string {
	sum := sha256.Sum256([]byte(definition))
	return "v1:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// decodeStored decodes the stored definition of an item. read is the function
// that reads such an item from a manifest.
func decodeStored[T any](definition string, read func(*manifestReader, *yaml.Node) T) (item T, err error) {
	r := &manifestReader{file: "stored definition", stored: true}
	root := r.parseDocument([]byte(definition))
	if root != nil {
		item = read(r, root)
	}
	if len(r.problems) > 0 {
		return item, errors.New(r.problems[0].String())
	}
	return item, nil
}

// entriesOf returns the tools, tags or kits of the set by slug.
func (s *Set) entriesOf(k kind) map[string]entry {
	switch k {
	case toolKind:
		return s.tools
	case tagKind:
		return s.tags
	case kitKind:
		return s.kits
	}
	return nil
}

// sortedKeys returns the keys of a map in alphabetical order, so that changes
// are applied in the same order every time.
func sortedKeys[T any](bySlug map[string]T) []string { return slices.Sorted(maps.Keys(bySlug)) }

// decodeTag decodes a tag from its row in the database.
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
