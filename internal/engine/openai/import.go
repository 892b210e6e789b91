package openai

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"atelier/internal/engine/backend"
	"atelier/internal/engine/manifestdraft"
)

// modelInfo is an entry of the server's list of models.
type modelInfo struct {
	ID   string `json:"id"`
	Task string `json:"task_type"` // SGLang's task type, such as T2V
}

func (e *Engine) fetchModels(ctx context.Context) ([]modelInfo, error) {
	short, cancel := e.c.WithTimeout(ctx)
	defer cancel()
	var list struct {
		Data []modelInfo `json:"data"`
	}
	if err := e.c.CallJSON(short, http.MethodGet, "models", nil, &list); err != nil {
		return nil, callFailure(ctx, err)
	}
	return list.Data, nil
}

// ListModels returns the sorted names of the server's models.
func (e *Engine) ListModels(ctx context.Context) ([]string, error) {
	list, err := e.fetchModels(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list))
	for i, m := range list {
		ids[i] = m.ID
	}
	slices.Sort(ids)
	return ids, nil
}

// CallHelp lists the API endpoints that ImportTool accepts, for help texts of
// commands.
const CallHelp = "images, edits, speech, videos, or video-sync for LocalAI (default: from the model's task type or name)"

// ImportTool drafts a tool's manifest for the model called name. call is the
// API endpoint; if it is empty, it is derived from the model's task type or
// name. The draft omits fields that the server's product ignores.
func (e *Engine) ImportTool(ctx context.Context, name, call, engineName string) (manifestdraft.Tool, error) {
	list, err := e.fetchModels(ctx)
	if err != nil {
		return manifestdraft.Tool{}, err
	}
	at := slices.IndexFunc(list, func(m modelInfo) bool { return m.ID == name })
	if at < 0 {
		return manifestdraft.Tool{}, fmt.Errorf("the server has no model %q", name)
	}
	kind := e.detectProduct(ctx)
	if call == "" {
		if call = list[at].guessCall(); call == "" {
			return manifestdraft.Tool{}, fmt.Errorf("cannot tell which call the model %q supports: set --call to images, edits, speech, videos or video-sync", name)
		}
		if call == "videos" && kind == productLocalAI {
			call = "video-sync"
		}
	}
	draw, ok := draftsByCall[call]
	if !ok {
		return manifestdraft.Tool{}, fmt.Errorf("the call %q is not supported; supported calls: images, edits, speech, videos, video-sync", call)
	}
	if calls := productCalls[kind]; calls != nil && !slices.Contains(calls, call) {
		return manifestdraft.Tool{}, fmt.Errorf("%s servers do not support the call %q; supported calls: %s", kind, call, strings.Join(calls, ", "))
	}
	t := manifestdraft.Tool{
		Name:        titleOf(name),
		Description: "Made with " + titleOf(name) + ".",
		Price:       manifestdraft.Price{Type: "COST", Tokens: 1},
		Engine:      manifestdraft.Engine{Name: engineName, With: map[string]any{"call": call, "model": name}},
	}
	model := strings.ToLower(path.Base(name))
	if kind != "" {
		model = "own-" + model // people use names of OpenAI's models as aliases for other models; with the prefix, the model does not count as one of OpenAI's
	}
	draw(&t, model)
	switch {
	case kind == productLocalAI:
		adaptToLocalAI(&t, call)
	case kind == productSDCpp:
		adaptToSDCpp(&t)
	case call == "videos" && list[at].Task != "": // SGLang requires a picture if the request is a form
		t.Engine.With["json"] = true
	}
	return t, nil
}

// product is a server product that ignores or lacks parts of the API, so that
// its tools have fewer fields.
type product string

const (
	productLocalAI product = "LocalAI"
	productSDCpp   product = "stable-diffusion.cpp"
)

// productCalls lists the available API endpoints of each product that does not
// have all of them.
var productCalls = map[product][]string{
	productLocalAI: dialects[localAI].calls,
	productSDCpp:   {"images", "edits"},
}

// detectProduct returns the product of the server. It sends requests to which
// only one product responds. It returns "" for other products.
func (e *Engine) detectProduct(ctx context.Context) product {
	var capabilities struct {
		Modes []string `json:"supported_modes"`
	}
	if e.queryRoot(ctx, "/sdcpp/v1/capabilities", &capabilities) == nil {
		return productSDCpp
	}
	var system struct {
		Backends []string `json:"backends"`
	}
	if e.queryRoot(ctx, "/system", &system) == nil && system.Backends != nil {
		return productLocalAI
	}
	return ""
}

// queryRoot sends a request to a path that is not below the API's base path.
func (e *Engine) queryRoot(ctx context.Context, path string, into any) error {
	short, cancel := e.c.WithTimeout(ctx)
	defer cancel()
	return backend.CallFailure(ctx, e.c.CallJSON(short, http.MethodGet, e.rootURL(path), nil, into))
}

// rootURL returns the URL of a path that is not below the API's base path.
func (e *Engine) rootURL(path string) string {
	at := e.c.BaseURL()
	at.Path = strings.TrimSuffix(at.Path, "/v1") + path
	return at.String()
}

func titleOf(name string) string {
	runes := []rune(path.Base(name))
	return string(runes[:min(len(runes), 60)])
}

// callHints map parts of model names to API endpoints; the first match is
// used. Video models come first, because they are often named after picture
// models.
var callHints = []struct{ part, call string }{
	{"sora", "videos"}, {"wan2", "videos"}, {"wan-", "videos"}, {"video", "videos"}, {"ltx", "videos"}, {"t2v", "videos"}, {"i2v", "videos"}, {"mochi", "videos"}, {"veo", "videos"},
	{"tts", "speech"}, {"kokoro", "speech"}, {"speech", "speech"}, {"piper", "speech"}, {"bark", "speech"}, {"voice", "speech"}, {"orpheus", "speech"},
	{"image-edit", "edits"}, {"kontext", "edits"}, {"pix2pix", "edits"},
	{"dall-e", "images"}, {"gpt-image", "images"}, {"image", "images"}, {"flux", "images"}, {"sdxl", "images"}, {"stable-diffusion", "images"}, {"stablediffusion", "images"},
	{"sd-", "images"}, {"sd3", "images"}, {"sd1", "images"}, {"pixart", "images"}, {"dreamshaper", "images"}, {"kolors", "images"},
}

// guessCall returns the API endpoint of a model. It returns "" if the endpoint
// is unknown.
func (m modelInfo) guessCall() string {
	switch strings.ToUpper(m.Task) {
	case "T2I":
		return "images"
	case "I2I", "TI2I":
		return "edits"
	case "T2V", "I2V", "TI2V":
		return "videos"
	}
	name := strings.ToLower(m.ID)
	for _, g := range callHints {
		if strings.Contains(name, g.part) {
			return g.call
		}
	}
	return ""
}

// isOpenAIModel reports whether a model is made by OpenAI, whose server
// refuses unknown parameters. Other servers ignore them.
func isOpenAIModel(name string) bool {
	for _, start := range []string{"gpt-", "dall-e-", "tts-1", "sora-", "chatgpt-"} {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}
