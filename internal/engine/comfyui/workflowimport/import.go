// Package workflowimport drafts manifests for ComfyUI workflows. It reads a
// workflow in any of ComfyUI's formats, converts it to the API format, and
// finds the inputs that people usually choose.
package workflowimport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"atelier/internal/engine/comfyui/nodegraph"
	"atelier/internal/engine/manifestdraft"
)

// Request is a request to draft a manifest for a workflow.
type Request struct {
	Name string // name of the tool; if empty, it is derived from the file's name
	// Data is the content of a file with the workflow: JSON in API format or
	// in the format of the editor, or a media file that ComfyUI made. If Data
	// is nil, the workflow of the server's last successful run is imported.
	Data   []byte
	File   string // name of the workflow's file, in the folder of the manifest
	Engine string // name of the engine in the service's settings
}

// FetchJSON sends a GET request for a path to the ComfyUI server and decodes
// the JSON of the response into answer. Its errors are those of a
// backend.Client.
type FetchJSON func(ctx context.Context, path string, answer any) error

// ImportTool drafts a manifest for a workflow and reports what became of its
// inputs. Inputs that people usually choose, such as the prompt or the size,
// become fields with the server's ranges and the workflow's values as
// defaults. All other inputs stay as they are in the workflow.
func ImportTool(ctx context.Context, fetch FetchJSON, r Request) (manifestdraft.Tool, Report, error) {
	d, err := fetch.readWorkflow(ctx, r.Data)
	if err != nil {
		return manifestdraft.Tool{}, Report{}, err
	}
	return d.draftTool(r)
}

// draftTool drafts a manifest for the workflow that was read.
func (d *manifestBuilder) draftTool(r Request) (manifestdraft.Tool, Report, error) {
	d.order = nodegraph.SortIDs(slices.Collect(maps.Keys(d.nodes)))
	d.findLive()
	if err := d.findOutput(); err != nil {
		return manifestdraft.Tool{}, Report{}, err
	}
	d.addTexts()
	d.addFiles()
	d.addSizes()
	d.addLengths()
	d.addSamplers()
	d.addSeeds()
	results := d.resultRange()
	d.applyAppMode()
	d.checkValues()
	d.completeReport()
	graph, err := d.workflowFile()
	if err != nil {
		return manifestdraft.Tool{}, Report{}, err
	}
	name := cmp.Or(r.Name, manifestdraft.Label(strings.TrimSuffix(path.Base(r.File), path.Ext(r.File))))
	with := map[string]any{"bind": d.bind}
	if len(d.results) < d.allSavers || len(d.results) > 1 {
		with["outputs"] = d.results
	}
	return manifestdraft.Tool{
		Name:       truncateText(name, 80),
		Price:      manifestdraft.Price{Type: "COST", Tokens: 1},
		NumResults: results,
		Output:     d.output,
		Engine:     manifestdraft.Engine{Name: r.Engine, With: with, Include: map[string]string{"workflow": r.File}},
		Fields:     d.fields,
		Files:      map[string][]byte{r.File: graph},
	}, d.report, nil
}

// manifestBuilder collects the fields and bindings of a manifest draft for a
// workflow.
type manifestBuilder struct {
	nodes   map[string]graphNode
	classes map[string]nodeClass
	order   []string
	live    map[string]bool // nodes that results depend on
	app     *appMode        // nil if the author chose no form
	source  []byte          // the file itself, if it is in API format
	changed bool            // the graph differs from the source

	fields   []manifestdraft.Field
	bind     map[string][]string
	owner    map[place]string  // keys of bind by place
	keys     map[string]string // field keys, by the input's name and value
	usedKeys map[string]bool
	fixed    map[place]string // reasons why inputs are not fields

	output    manifestdraft.Output
	savers    []saver  // nodes whose files are results
	results   []string // their ids
	allSavers int      // number of nodes that save files of any type

	report Report
}

// readWorkflow reads a workflow in any format, and the server's descriptions
// of its nodes.
func (fetch FetchJSON) readWorkflow(ctx context.Context, data []byte) (*manifestBuilder, error) {
	src, err := fetch.openSource(ctx, data)
	if err != nil {
		return nil, err
	}
	d := newBuilder()
	d.report.Source = src.origin
	if src.api == nil {
		err = fetch.readEditorGraph(ctx, d, src.editor)
	} else {
		err = fetch.readAPIGraph(ctx, d, src)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

func newBuilder() *manifestBuilder {
	return &manifestBuilder{
		bind:     map[string][]string{},
		owner:    map[place]string{},
		keys:     map[string]string{},
		usedKeys: map[string]bool{},
		fixed:    map[place]string{},
	}
}

func (fetch FetchJSON) openSource(ctx context.Context, data []byte) (workflowSource, error) {
	if data == nil {
		return fetch.lastRun(ctx)
	}
	return findWorkflow(data)
}

// savingClasses are the classes that replace previews in workflows that save
// nothing.
var savingClasses = []string{"SaveImage", "SaveAudio"}

// readAPIGraph reads a workflow in API format. The same workflow in the format
// of the editor, if there is one, has the author's form and the names of
// custom node packs.
func (fetch FetchJSON) readAPIGraph(ctx context.Context, d *manifestBuilder, src workflowSource) error {
	nodes, err := readGraph(src.api)
	if err != nil {
		return err
	}
	d.nodes = nodes
	if src.plain {
		d.source = src.api
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Class)
	}
	if d.classes, err = fetch.fetchClasses(ctx, append(names, savingClasses...)); err != nil {
		return err
	}
	editor, editorErr := parseEditorWorkflow(src.editor) // fails if there is none
	packs := map[string]string{}
	if editorErr == nil {
		for _, g := range append(slices.Collect(maps.Values(editor.subgraphs)), editor.root) {
			for _, n := range g.Nodes {
				packs[n.Type] = packOf(n)
			}
		}
	}
	var missing []missingClass
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if _, ok := d.classes[name]; !ok {
			missing = append(missing, missingClass{name, packs[name]})
		}
	}
	if len(missing) > 0 {
		return refuseMissing(missing)
	}
	if editorErr == nil && editor.root.Extra.Linear != nil {
		places := map[string][]string{}
		if converted, err := convertWorkflow(editor, d.classes); err == nil {
			places = converted.places
		}
		d.app = readAppMode(editor.root, d.nodes, places)
	}
	return nil
}

// readEditorGraph reads a workflow in the format of the editor.
func (fetch FetchJSON) readEditorGraph(ctx context.Context, d *manifestBuilder, text []byte) error {
	editor, err := parseEditorWorkflow(text)
	if err != nil {
		return err
	}
	if d.classes, err = fetch.fetchClasses(ctx, append(editor.classNames(), savingClasses...)); err != nil {
		return err
	}
	converted, err := convertWorkflow(editor, d.classes)
	if err != nil {
		return err
	}
	if len(converted.missing) > 0 {
		return refuseMissing(converted.missing)
	}
	d.nodes = converted.nodes
	d.report.Warnings = converted.warnings
	d.report.Notes = converted.notes
	d.app = readAppMode(editor.root, d.nodes, converted.places)
	return nil
}

// workflowFile returns the workflow in API format. A file that was in that
// format stays as it is.
func (d *manifestBuilder) workflowFile() ([]byte, error) {
	if d.source != nil && !d.changed {
		return d.source, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d.nodes); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
