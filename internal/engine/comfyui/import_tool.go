package comfyui

import (
	"context"

	"atelier/internal/engine/comfyui/workflowimport"
	"atelier/internal/engine/manifestdraft"
)

// ImportTool drafts a manifest for a workflow, based on the server's
// descriptions of its nodes.
func (e *Engine) ImportTool(ctx context.Context, r workflowimport.Request) (manifestdraft.Tool, workflowimport.Report, error) {
	return workflowimport.ImportTool(ctx, e.fetchJSON, r)
}

func (e *Engine) fetchJSON(ctx context.Context, path string, answer any) error {
	short, cancel := e.server.WithTimeout(ctx)
	defer cancel()
	return e.server.CallJSON(short, "GET", path, nil, answer)
}
