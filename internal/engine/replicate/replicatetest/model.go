package replicatetest

import (
	"encoding/json"
	"net/http"
)

// schema is the OpenAPI schema of the painter model, in the form that Cog
// generates.
const schema = `{
  "openapi": "3.0.2",
  "info": {"title": "Cog", "version": "0.1.0"},
  "paths": {},
  "components": {"schemas": {
    "Input": {"type": "object", "title": "Input", "required": ["prompt"], "properties": {
      "prompt": {"type": "string", "title": "Prompt", "x-order": 0, "description": "Input prompt"},
      "image": {"type": "string", "title": "Image", "format": "uri", "x-order": 1, "description": "A picture to start from"},
      "seed": {"type": "integer", "title": "Seed", "x-order": 2, "description": "Random seed"},
      "num_outputs": {"type": "integer", "title": "Num Outputs", "default": 1, "minimum": 1, "maximum": 4, "x-order": 3, "description": "Number of images to output"},
      "scheduler": {"enum": ["DDIM", "K_EULER"], "type": "string", "title": "scheduler", "default": "K_EULER", "x-order": 4, "allOf": [{"$ref": "#/components/schemas/scheduler"}]},
      "guidance_scale": {"type": "number", "title": "Guidance Scale", "default": 7.5, "minimum": 1, "maximum": 50, "x-order": 5}
    }},
    "scheduler": {"enum": ["DDIM", "K_EULER"], "type": "string", "title": "scheduler", "description": "An enumeration."},
    "Output": {"type": "array", "items": {"type": "string", "format": "uri"}, "title": "Output"}
  }}
}`

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("owner") + "/" + r.PathValue("name")
	if name != Painter && name != Community {
		s.problem(w, http.StatusNotFound, "The requested resource could not be found.")
		return
	}
	s.reply(w, http.StatusOK, map[string]any{
		"url": "https://replicate.com/" + name, "owner": r.PathValue("owner"), "name": r.PathValue("name"),
		"description": "Paints what you say.", "visibility": "public", "is_official": name == Painter, "run_count": 12,
		"latest_version": map[string]any{
			"id": Version, "created_at": "2024-05-01T00:00:00Z", "cog_version": "0.9.4", "openapi_schema": json.RawMessage(schema),
		},
	})
}
