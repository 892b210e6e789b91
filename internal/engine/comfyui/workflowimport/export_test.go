package workflowimport

import "atelier/internal/engine/manifestdraft"

// NodeClasses are the server's descriptions of node classes by name.
type NodeClasses = map[string]nodeClass

// DraftWithClasses drafts a manifest without a server. Unlike ImportTool, it
// accepts nodes of unknown classes.
func DraftWithClasses(classes NodeClasses, data []byte, r Request) (manifestdraft.Tool, error) {
	src, err := findWorkflow(data)
	if err != nil {
		return manifestdraft.Tool{}, err
	}
	d := newBuilder()
	d.classes = classes
	if src.api != nil {
		if d.nodes, err = readGraph(src.api); err != nil {
			return manifestdraft.Tool{}, err
		}
	} else {
		w, err := parseEditorWorkflow(src.editor)
		if err != nil {
			return manifestdraft.Tool{}, err
		}
		converted, err := convertWorkflow(w, classes)
		if err != nil {
			return manifestdraft.Tool{}, err
		}
		d.nodes = converted.nodes
		d.app = readAppMode(w.root, d.nodes, converted.places)
	}
	tool, _, err := d.draftTool(r)
	return tool, err
}
