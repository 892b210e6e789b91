// Package workflowimport drafts manifests for ComfyUI workflows. It reads a
// workflow in any of ComfyUI's formats, converts it to the API format, and
// finds the nodes that save results and the inputs that people usually choose.
//
//	file, server ──▶ workflowSource ──▶ workflow ──▶ form, toolOutput ──▶ manifest
//	                 (as it was found)  (API format)        └──▶ Report
package workflowimport

import (
	"cmp"
	"context"
	"path"
	"strings"

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
// the JSON of the response into answer. It returns the errors of a
// backend.Client.
type FetchJSON func(ctx context.Context, path string, answer any) error

// ImportTool drafts a manifest for a workflow and reports how its inputs are
// used. Inputs that people usually choose, such as the prompt or the size,
// become fields with the server's ranges and the workflow's values as defaults.
// All other inputs stay as they are in the workflow.
func ImportTool(ctx context.Context, fetch FetchJSON, r Request) (manifestdraft.Tool, Report, error) {
	in, err := fetch.readWorkflow(ctx, r.Data)
	if err != nil {
		return manifestdraft.Tool{}, Report{}, err
	}
	return in.draftTool(r)
}

// draftTool drafts a manifest for the workflow.
func (in *importedWorkflow) draftTool(r Request) (manifestdraft.Tool, Report, error) {
	w := in.workflow
	finder := outputFinder{workflow: w, report: &in.report}
	if in.app != nil {
		finder.chosen = in.app.outputs
	}
	output, err := finder.findOutput()
	if err != nil {
		return manifestdraft.Tool{}, Report{}, err
	}

	f := in.buildForm(output.isFilm())
	results := output.resultRange(w, f)
	in.applyAppMode(f)
	in.report.Warnings = append(in.report.Warnings, checkValues(w, f)...)
	in.report.listFields(f)
	in.report.listFixed(w, f)
	in.report.listResults(w, output.savers)

	graph, err := w.encodeFile()
	if err != nil {
		return manifestdraft.Tool{}, Report{}, err
	}
	name := cmp.Or(r.Name, manifestdraft.Label(strings.TrimSuffix(path.Base(r.File), path.Ext(r.File))))
	with := map[string]any{"bind": f.bind}
	if ids := output.nodeIDs(); ids != nil {
		with["outputs"] = ids
	}
	return manifestdraft.Tool{
		Name:       truncateText(name, 80),
		Price:      manifestdraft.Price{Type: "COST", Tokens: 1},
		NumResults: results,
		Output:     output.describeOutput(),
		Engine:     manifestdraft.Engine{Name: r.Engine, With: with, Include: map[string]string{"workflow": r.File}},
		Fields:     f.fields,
		Files:      map[string][]byte{r.File: graph},
	}, in.report, nil
}

// buildForm returns a form with fields for all inputs that people usually
// choose. The fields are in the order in which they are added. film means that
// a batch of pictures is saved as one file.
func (in *importedWorkflow) buildForm(film bool) *form {
	w := in.workflow
	f := newForm()
	numbers := numberFields{w, f}
	texts := textFinder{w, f}
	sizes := sizeFinder{w, f, numbers}
	lengths := lengthFinder{w, f, numbers, film}
	settings := settingFinder{w, f, numbers}

	texts.addTexts()
	addFiles(w, f)
	sizes.addSizes()
	lengths.addLengths()
	settings.addSamplers()
	settings.addSeeds()
	return f
}
