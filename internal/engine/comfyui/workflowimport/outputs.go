package workflowimport

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"atelier/internal/engine/comfyui/nodegraph"
	"atelier/internal/engine/manifestdraft"
)

// outputFinder finds the nodes of a workflow whose files are results.
type outputFinder struct {
	workflow *workflow
	chosen   []string // ids of the nodes that the author chose for App mode
	report   *Report
}

// findOutput determines the workflow's output type and the nodes that save it.
// If a workflow saves several types, such as a video and stills of it, the
// types have a fixed order of precedence. If the workflow's author chose
// outputs for App mode, all other outputs are ignored.
func (o *outputFinder) findOutput() (toolOutput, error) {
	all := o.listSavers(o.chosen)
	if len(all) == 0 && len(o.chosen) > 0 {
		o.report.addWarning("The outputs that the author chose save nothing; all savers of the workflow count.")
		all = o.listSavers(nil)
	}
	if !slices.ContainsFunc(all, func(s saver) bool { return !s.temp }) {
		all = o.convertPreviews(all)
	}
	all = slices.DeleteFunc(all, func(s saver) bool { return s.temp })
	if len(all) == 0 {
		return toolOutput{}, o.refuseOutput()
	}

	all = o.convertFormats(all)
	savers := selectSavers(all)
	for _, s := range all {
		switch {
		case !s.isStorable():
			o.report.addWarning(fmt.Sprintf("The results of node %s (%s) are left out: files of the format %s cannot be stored.", s.id, o.workflow.nodes[s.id].Class, s.format))
		case len(savers) > 0 && s.kind != savers[0].kind && !s.text:
			o.report.addNote(fmt.Sprintf("The results of node %s (%s, %s) are left out: a tool has results of one type, here %s.", s.id, o.workflow.nodes[s.id].Class, s.mime, savers[0].kind))
		}
	}
	if len(savers) == 0 {
		return toolOutput{}, fmt.Errorf("the workflow saves only files of the format %s, which cannot be stored; change the format of node %s (%s) in the workflow", all[0].format, all[0].id, o.workflow.nodes[all[0].id].Class)
	}
	return toolOutput{savers: savers, complete: len(savers) == len(all)}, nil
}

// selectSavers returns the savers of the type that has precedence. It returns
// no savers if no saver's files can be stored.
func selectSavers(all []saver) []saver {
	for _, kind := range []string{"VID", "ASSET_3D", "AUDIO", "IMG", "TEXT"} {
		savers := slices.DeleteFunc(slices.Clone(all), func(s saver) bool { return s.kind != kind || !s.isStorable() })
		if len(savers) > 0 {
			return savers
		}
	}
	return nil
}

// refuseOutput returns the error for a workflow that saves nothing.
func (o *outputFinder) refuseOutput() error {
	var shown []string
	for _, id := range o.workflow.order {
		if o.workflow.classOf(id).OutputNode {
			shown = append(shown, fmt.Sprintf("%s (%s)", id, o.workflow.nodes[id].Class))
		}
	}
	end := "it needs a node that saves pictures, video, sound, 3D models or text, such as SaveImage or SaveVideo"
	if len(shown) == 0 {
		return errors.New("the workflow saves nothing: " + end)
	}
	return fmt.Errorf("the workflow saves nothing that can be a result; %s only shows something: %s", truncateText(strings.Join(shown, ", "), 300), end)
}

// toolOutput is the output of a tool.
type toolOutput struct {
	savers   []saver // nodes whose files are results; at least one, all of one type
	complete bool    // the workflow has no other nodes that save files
}

// describeOutput returns the output in the form that manifests use.
func (t toolOutput) describeOutput() manifestdraft.Output {
	output := manifestdraft.Output{Type: t.savers[0].kind}
	for _, s := range t.savers {
		if !slices.Contains(output.MimeTypes, s.mime) {
			output.MimeTypes = append(output.MimeTypes, s.mime)
		}
	}
	return output
}

// nodeIDs returns the ids of the nodes whose files are results. It returns nil
// if the manifest does not have to list them.
func (t toolOutput) nodeIDs() []string {
	if t.complete && len(t.savers) == 1 {
		return nil
	}
	var ids []string
	for _, s := range t.savers {
		ids = append(ids, s.id)
	}
	return ids
}

// isFilm reports whether a batch of pictures is saved as one file.
func (t toolOutput) isFilm() bool {
	return slices.ContainsFunc(t.savers, func(s saver) bool { return s.film })
}

// resultRange returns the range for the number of results of a run. The
// workflow makes all results as one batch, or runs once for each result if it
// has a seed that makes the results differ. If several nodes save results,
// every execution makes one result per node.
func (t toolOutput) resultRange(w *workflow, f *form) *manifestdraft.NumResults {
	const most = 4 // maximum number of executions per run
	n := &manifestdraft.NumResults{Min: 1, Max: most, Default: 1}
	batch := int64(1)
	if t.savers[0].kind == "IMG" && !t.isFilm() {
		w.eachInput(intKind, func(ref, from inputRef, v any, _ inputSpec) {
			if !w.classOf(ref.id).hasOutput("LATENT") {
				return
			}
			own, _ := floatOf(v)
			batch = max(batch, int64(min(max(own, 1), 64)))
			if len(t.savers) == 1 {
				f.bindInput(nodegraph.KeyResults, from)
			} else {
				f.leaveFixed(from, "several nodes save results")
			}
		}, "batch_size")
	}
	if count := int64(len(t.savers)); count > 1 {
		n.Min = min(count*batch, 64)
		n.Max = n.Min
		if f.bind[nodegraph.KeySeed] != nil {
			n.Max = min(most*n.Min, 64)
		}
		n.Default = n.Min
		return n
	}
	if f.bind[nodegraph.KeyResults] == nil && f.bind[nodegraph.KeySeed] == nil {
		return nil
	}
	n.Default = batch
	n.Max = max(n.Max, batch)
	return n
}
