package workflowimport

import (
	"context"
	"maps"
	"slices"
)

// importedWorkflow is a workflow that was read, and the state of its import.
type importedWorkflow struct {
	workflow *workflow
	app      *appMode // nil if the author chose no form
	report   Report
}

// readWorkflow reads a workflow in any format, and the server's descriptions
// of its nodes. If data is nil, it reads the workflow of the server's last
// successful run.
func (fetch FetchJSON) readWorkflow(ctx context.Context, data []byte) (*importedWorkflow, error) {
	var src workflowSource
	var err error
	if data == nil {
		src, err = fetch.lastRun(ctx)
	} else {
		src, err = findWorkflow(data)
	}
	if err != nil {
		return nil, err
	}

	var in *importedWorkflow
	if src.api == nil {
		in, err = fetch.readEditorGraph(ctx, src.editor)
	} else {
		in, err = fetch.readAPIGraph(ctx, src)
	}
	if err != nil {
		return nil, err
	}
	in.report.Source = src.origin
	return in, nil
}

// savingClasses are the classes that replace previews in workflows that save
// nothing.
var savingClasses = []string{"SaveImage", "SaveAudio"}

// readAPIGraph reads a workflow in API format. If the source also has the
// workflow in the format of the editor, the author's form and the names of
// custom node packs are read from that version.
func (fetch FetchJSON) readAPIGraph(ctx context.Context, src workflowSource) (*importedWorkflow, error) {
	nodes, err := readGraph(src.api)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Class)
	}
	classes, err := fetch.fetchClasses(ctx, append(names, savingClasses...))
	if err != nil {
		return nil, err
	}
	editor, err := parseEditorWorkflow(src.editor)
	if err != nil {
		editor = nil // missing or invalid
	}
	if missing := findMissing(names, classes, editor); len(missing) > 0 {
		return nil, refuseMissing(missing)
	}

	in := &importedWorkflow{workflow: newWorkflow(nodes, classes)}
	if src.plain {
		in.workflow.source = src.api
	}
	if editor != nil && editor.root.Extra.Linear != nil {
		var targets map[inputRef][]inputRef
		if converted, err := convertWorkflow(editor, classes); err == nil {
			targets = converted.targets
		}
		in.app = readAppMode(editor.root, nodes, targets)
	}
	return in, nil
}

// findMissing returns the classes that the server does not have, sorted by
// name. editor is nil if the workflow is not known in the format of the editor,
// which names the custom node packs of classes.
func findMissing(names []string, classes map[string]nodeClass, editor *editorWorkflow) []missingClass {
	packs := map[string]string{}
	if editor != nil {
		for _, g := range append(slices.Collect(maps.Values(editor.subgraphs)), editor.root) {
			for _, n := range g.Nodes {
				packs[n.Type] = packOf(n)
			}
		}
	}
	var missing []missingClass
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if _, ok := classes[name]; !ok {
			missing = append(missing, missingClass{name, packs[name]})
		}
	}
	return missing
}

// readEditorGraph reads a workflow in the format of the editor.
func (fetch FetchJSON) readEditorGraph(ctx context.Context, text []byte) (*importedWorkflow, error) {
	editor, err := parseEditorWorkflow(text)
	if err != nil {
		return nil, err
	}
	classes, err := fetch.fetchClasses(ctx, append(editor.classNames(), savingClasses...))
	if err != nil {
		return nil, err
	}
	converted, err := convertWorkflow(editor, classes)
	if err != nil {
		return nil, err
	}
	if len(converted.missing) > 0 {
		return nil, refuseMissing(converted.missing)
	}
	return &importedWorkflow{
		workflow: newWorkflow(converted.nodes, classes),
		app:      readAppMode(editor.root, converted.nodes, converted.targets),
		report:   Report{Warnings: converted.warnings, Notes: converted.notes},
	}, nil
}
