package openai

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"atelier/internal/engine/manifestdraft"
)

// model is what a server says about one of its models.
type model struct {
	ID   string `json:"id"`
	Task string `json:"task_type"` // SGLang's, such as T2V
}

func (e *Engine) models(ctx context.Context) ([]model, error) {
	short, cancel := e.c.WithTimeout(ctx)
	defer cancel()
	var list struct {
		Data []model `json:"data"`
	}
	if err := e.c.CallJSON(short, http.MethodGet, "models", nil, &list); err != nil {
		return nil, failure(ctx, err)
	}
	return list.Data, nil
}

// Models names the server's models, in order.
func (e *Engine) Models(ctx context.Context) ([]string, error) {
	list, err := e.models(ctx)
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

// Import writes a manifest for a model. call says what the model is for; where
// it is empty, the model's task or its name does.
func (e *Engine) Import(ctx context.Context, name, call, engineName string) (manifestdraft.Tool, error) {
	list, err := e.models(ctx)
	if err != nil {
		return manifestdraft.Tool{}, err
	}
	at := slices.IndexFunc(list, func(m model) bool { return m.ID == name })
	if at < 0 {
		return manifestdraft.Tool{}, fmt.Errorf("the server has no model %q", name)
	}
	if call == "" {
		if call = list[at].guess(); call == "" {
			return manifestdraft.Tool{}, fmt.Errorf("the model %q may be anything: say which call it is for (images, edits, speech, videos or video-sync)", name)
		}
	}
	draw, ok := drafts[call]
	if !ok {
		return manifestdraft.Tool{}, fmt.Errorf("there is no call %q: it is images, edits, speech, videos or video-sync", call)
	}
	t := manifestdraft.Tool{
		Name:        title(name),
		Description: "Made with " + title(name) + ".",
		Price:       manifestdraft.Price{Type: "COST", Tokens: 1},
		Engine:      manifestdraft.Engine{Name: engineName, With: map[string]any{"call": call, "model": name}},
	}
	draw(&t, strings.ToLower(path.Base(name)))
	return t, nil
}

func title(name string) string {
	runes := []rune(path.Base(name))
	return string(runes[:min(len(runes), 60)])
}

// guesses are parts of names that tell what a model is for, the first that
// fits. Video models are often called after picture models, so they come first.
var guesses = []struct{ part, call string }{
	{"sora", "videos"}, {"wan2", "videos"}, {"wan-", "videos"}, {"video", "videos"}, {"ltx", "videos"}, {"t2v", "videos"}, {"i2v", "videos"}, {"mochi", "videos"}, {"veo", "videos"},
	{"tts", "speech"}, {"kokoro", "speech"}, {"speech", "speech"}, {"piper", "speech"}, {"bark", "speech"}, {"voice", "speech"}, {"orpheus", "speech"},
	{"image-edit", "edits"}, {"kontext", "edits"}, {"pix2pix", "edits"},
	{"dall-e", "images"}, {"gpt-image", "images"}, {"image", "images"}, {"flux", "images"}, {"sdxl", "images"}, {"stable-diffusion", "images"}, {"stablediffusion", "images"},
	{"sd-", "images"}, {"sd3", "images"}, {"sd1", "images"}, {"pixart", "images"}, {"dreamshaper", "images"}, {"kolors", "images"},
}

// guess says what a model is for, "" where nothing tells.
func (m model) guess() string {
	switch strings.ToUpper(m.Task) {
	case "T2I":
		return "images"
	case "I2I", "TI2I":
		return "edits"
	case "T2V", "I2V", "TI2V":
		return "videos"
	}
	name := strings.ToLower(m.ID)
	for _, g := range guesses {
		if strings.Contains(name, g.part) {
			return g.call
		}
	}
	return ""
}

// hosted tells whether a model is OpenAI's own, which refuses what it does not
// know; other servers ignore it.
func hosted(name string) bool {
	for _, start := range []string{"gpt-", "dall-e-", "tts-1", "sora-", "chatgpt-"} {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}
