package faltest

import (
	"io"
	"net/http"
)

// schema is the catalog's OpenAPI document of the painter model. Its component
// names are arbitrary, as on fal; the paths of the queue refer to the
// components for inputs and outputs.
const schema = `{
  "openapi": "3.0.4",
  "info": {"title": "Queue OpenAPI for fal-ai/painter/dev", "version": "1.0.0", "x-fal-metadata": {"endpointId": "fal-ai/painter/dev", "category": "text-to-image"}},
  "components": {
    "securitySchemes": {"apiKeyAuth": {"type": "apiKey", "in": "header", "name": "Authorization", "description": "Fal Key"}},
    "schemas": {
      "QueueStatus": {"type": "object", "properties": {"status": {"type": "string", "enum": ["IN_QUEUE", "IN_PROGRESS", "COMPLETED"]}, "request_id": {"type": "string"}}, "required": ["status", "request_id"]},
      "BaseInput": {"type": "object", "properties": {"unrelated": {"type": "string"}}},
      "PainterDevInput": {"title": "PainterInput", "type": "object", "required": ["prompt"], "x-fal-order-properties": ["prompt", "image_url", "num_images", "seed"], "properties": {
        "seed": {"title": "Seed", "anyOf": [{"type": "integer"}, {"type": "null"}], "description": "The same seed gives the same picture."},
        "prompt": {"title": "Prompt", "type": "string", "description": "What to paint."},
        "image_url": {"title": "Image Url", "type": "string", "description": "A picture to start from."},
        "num_images": {"title": "Num Images", "type": "integer", "minimum": 1, "maximum": 4, "default": 1}
      }},
      "PainterDevOutput": {"title": "PainterOutput", "type": "object", "properties": {"images": {"type": "array", "items": {"$ref": "#/components/schemas/Image"}}}},
      "Image": {"title": "Image", "type": "object", "required": ["url"], "properties": {"url": {"type": "string"}, "content_type": {"type": "string", "default": "image/jpeg"}}}
    }
  },
  "paths": {
    "/fal-ai/painter/dev/requests/{request_id}/status": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/QueueStatus"}}}}}}},
    "/fal-ai/painter/dev": {"post": {"requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PainterDevInput"}}}}, "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/QueueStatus"}}}}}}},
    "/fal-ai/painter/dev/requests/{request_id}": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/PainterDevOutput"}}}}}}}
  }
}`

// catalog serves fal's catalog, which contains only the painter model.
func (s *Server) catalog() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/openapi/queue/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("endpoint_id") != Painter {
			s.reply(w, http.StatusNotFound, map[string]any{"error": "Not found"})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, schema)
	})
	return mux
}
