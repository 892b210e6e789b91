package fal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"atelier/internal/engine/manifestdraft"
)

// ImportTool drafts a tool's manifest for an endpoint from the endpoint's
// schema in fal's catalog. outputType is the tool's output type; if it is
// empty, ImportTool guesses it.
func (e *Engine) ImportTool(ctx context.Context, model, engineName, outputType string) (manifestdraft.Tool, error) {
	if !endpointPattern.MatchString(model) {
		return manifestdraft.Tool{}, errors.New("the name of an endpoint must have the form owner/name or owner/name/path")
	}
	if e.o.Catalog == nil {
		return manifestdraft.Tool{}, errors.New("the URL of the fal catalog is not set")
	}
	ctx, cancel := e.o.Catalog.WithTimeout(ctx)
	defer cancel()
	var doc json.RawMessage
	if err := e.o.Catalog.CallJSON(ctx, "GET", "openapi/queue/openapi.json?endpoint_id="+url.QueryEscape(model), nil, &doc); err != nil {
		return manifestdraft.Tool{}, fmt.Errorf("fetch the endpoint's schema: %w", err)
	}
	in, out := schemaNames(doc, model)
	_, name, _ := strings.Cut(model, "/")
	tool, err := manifestdraft.ToolFromSchema(manifestdraft.Source{
		Doc:        doc,
		Input:      in,
		Output:     out,
		Name:       manifestdraft.Label(name),
		Engine:     engineName,
		OutputType: outputType,
		Hint:       strings.ReplaceAll(model, "/", " "),
	})
	if err != nil {
		return manifestdraft.Tool{}, err
	}
	tool.Engine.With["endpoint"] = model
	return tool, nil
}

// schemaNames returns the names of an endpoint's input and output schemas,
// which differ between endpoints. It uses the references in the paths of the
// OpenAPI document. If the paths have none, it searches for schemas whose names
// end in Input or Output.
func schemaNames(doc json.RawMessage, model string) (in, out string) {
	type body struct {
		Content map[string]struct {
			Schema struct {
				Ref string `json:"$ref"`
			} `json:"schema"`
		} `json:"content"`
	}
	var all struct {
		Paths map[string]struct {
			Post struct {
				Request body `json:"requestBody"`
			} `json:"post"`
			Get struct {
				Responses map[string]body `json:"responses"`
			} `json:"get"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if json.Unmarshal(doc, &all) != nil {
		return "", ""
	}
	name := func(b body, ending string) string {
		ref := b.Content["application/json"].Schema.Ref
		if named, ok := strings.CutPrefix(ref, "#/components/schemas/"); ok {
			return named
		}
		for _, one := range slices.Sorted(maps.Keys(all.Components.Schemas)) {
			if strings.HasSuffix(one, ending) {
				return one
			}
		}
		return ""
	}
	return name(all.Paths["/"+model].Post.Request, "Input"), name(all.Paths["/"+model+"/requests/{request_id}"].Get.Responses["200"], "Output")
}
