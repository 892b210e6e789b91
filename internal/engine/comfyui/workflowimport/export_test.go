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
	in := &importedWorkflow{}
	if src.api != nil {
		nodes, err := readGraph(src.api)
		if err != nil {
			return manifestdraft.Tool{}, err
		}
		in.workflow = newWorkflow(nodes, classes)
	} else {
		editor, err := parseEditorWorkflow(src.editor)
		if err != nil {
			return manifestdraft.Tool{}, err
		}
		converted, err := convertWorkflow(editor, classes)
		if err != nil {
			return manifestdraft.Tool{}, err
		}
		in.workflow = newWorkflow(converted.nodes, classes)
		in.app = readAppMode(editor.root, converted.nodes, converted.targets)
	}
	tool, _, err := in.draftTool(r)
	return tool, err
}
