package replicate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"atelier/internal/engine/backend"
	"atelier/internal/engine/manifestdraft"
)

// ImportTool drafts a tool's manifest for a model, given as owner/name, from
// the schema that the provider has for it. The manifest runs an official model
// by its name, any other by its newest version. outputType is the tool's output
// type; if it is empty, ImportTool guesses it.
func (e *Engine) ImportTool(ctx context.Context, model, engineName, outputType string) (manifestdraft.Tool, error) {
	if !pairPattern.MatchString(model) {
		return manifestdraft.Tool{}, errors.New("the name of a model must have the form owner/name")
	}
	ctx, cancel := e.c.WithTimeout(ctx)
	defer cancel()
	var said struct {
		Description string `json:"description"`
		Official    bool   `json:"is_official"`
		Latest      struct {
			ID     string          `json:"id"`
			Schema json.RawMessage `json:"openapi_schema"`
		} `json:"latest_version"`
	}
	if err := e.c.CallJSON(ctx, "GET", "models/"+model, nil, &said); err != nil {
		return manifestdraft.Tool{}, fmt.Errorf("fetch the model: %w", err)
	}
	_, name, _ := strings.Cut(model, "/")
	tool, err := manifestdraft.ToolFromSchema(manifestdraft.Source{
		Doc:        said.Latest.Schema,
		Input:      "Input",
		Output:     "Output",
		Name:       manifestdraft.Label(name),
		Engine:     engineName,
		OutputType: outputType,
		Hint:       said.Description,
	})
	if err != nil {
		return manifestdraft.Tool{}, err
	}
	tool.Description = backend.SanitizeText(said.Description)
	if said.Official {
		tool.Engine.With["model"] = model
	} else {
		tool.Engine.With["version"] = said.Latest.ID
	}
	return tool, nil
}
