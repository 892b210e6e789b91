package a1111

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"atelier/internal/engine/manifestdraft"
)

// CallHelp lists the API endpoints that ImportTool accepts, for help texts of
// commands.
const CallHelp = "txt2img, img2img or upscale (default: txt2img)"

// maxOptions is the maximum number of samplers or upscalers in a draft.
const maxOptions = 200

// ListModels returns the names of the server's checkpoints, sorted.
func (e *Engine) ListModels(ctx context.Context) ([]string, error) {
	list, err := e.fetchCheckpoints(ctx)
	if err != nil {
		return nil, callFailure(ctx, err)
	}
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = fileTitle(c.Title)
	}
	slices.Sort(names)
	return names, nil
}

// ImportTool drafts a tool's manifest. model is a checkpoint of the server; if
// it is empty, the tool uses the checkpoint that the server has loaded. call is
// the API endpoint, by default txt2img. The options of the draft's fields are
// the samplers and upscalers of the server.
func (e *Engine) ImportTool(ctx context.Context, model, call, engineName string) (manifestdraft.Tool, error) {
	call = cmp.Or(call, "txt2img")
	t := manifestdraft.Tool{
		Price:  manifestdraft.Price{Type: "COST", Tokens: 1},
		Output: manifestdraft.Output{Type: "IMG", MimeTypes: manifestdraft.PictureTypes},
		Engine: manifestdraft.Engine{Name: engineName, With: map[string]any{"call": call}},
	}
	switch call {
	case "txt2img", "img2img":
		t.Timeout = "10m"
		err := e.draftDrawing(ctx, &t, model, call)
		return t, err
	case "upscale":
		t.Timeout = "5m"
		err := e.draftUpscale(ctx, &t)
		return t, err
	}
	return t, fmt.Errorf("the call %q is not supported; supported calls: txt2img, img2img, upscale", call)
}

// draftDrawing completes the draft of a tool that makes pictures with a
// checkpoint.
func (e *Engine) draftDrawing(ctx context.Context, t *manifestdraft.Tool, model, call string) error {
	if model == "" {
		var options struct {
			Checkpoint string `json:"sd_model_checkpoint"`
		}
		if err := e.fetchList(ctx, "options", &options); err != nil {
			return callFailure(ctx, err)
		}
		model = options.Checkpoint
	}
	list, err := e.fetchCheckpoints(ctx)
	if err != nil {
		return callFailure(ctx, err)
	}
	title := matchCheckpoint(list, model)
	if title == "" {
		return fmt.Errorf("the server has no model %q", model)
	}
	checkpoint := fileTitle(title)
	t.Engine.With["checkpoint"] = checkpoint
	t.Name = shortName(path.Base(checkpoint))
	t.Description = "Made with " + t.Name + "."
	t.NumResults = &manifestdraft.NumResults{Min: 1, Max: 4, Default: 1}

	samplers, err := e.listSamplers(ctx)
	if err != nil {
		return err
	}
	t.Fields = []manifestdraft.Field{manifestdraft.PromptField()}
	if call == "img2img" {
		t.Name += " from a picture"
		t.Fields = append(t.Fields, pictureField(), denoiseField(), maskField())
	} else {
		t.Fields = append(t.Fields, drawingSizes(checkpoint))
	}
	t.Fields = append(t.Fields, manifestdraft.SamplingFields()...)
	for i, f := range t.Fields {
		if f.Key == "steps" {
			t.Fields[i].Default = 20 // the server's default of 50 takes much longer and improves pictures little
		}
	}
	t.Fields = append(t.Fields, optionField("sampler", "Sampler", samplers))
	return nil
}

func (e *Engine) listSamplers(ctx context.Context) ([]string, error) {
	var list []sampler
	if err := e.fetchList(ctx, "samplers", &list); err != nil {
		return nil, callFailure(ctx, err)
	}
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.Name
	}
	return names, nil
}

// draftUpscale completes the draft of a tool that enlarges pictures.
func (e *Engine) draftUpscale(ctx context.Context, t *manifestdraft.Tool) error {
	var list []struct {
		Name string `json:"name"`
	}
	if err := e.fetchList(ctx, "upscalers", &list); err != nil {
		return callFailure(ctx, err)
	}
	var names []string
	for _, u := range list {
		if u.Name != "None" && u.Name != "" { // the upscaler None returns the picture unchanged
			names = append(names, u.Name)
		}
	}
	if len(names) == 0 {
		return errors.New("the server has no upscaler")
	}
	upscaler := optionField("upscaler", "Upscaler", names)
	upscaler.Required = true
	upscaler.Default = upscaler.Options[0].Value
	t.Name = "Upscale"
	t.Description = "Enlarges a picture."
	t.Fields = []manifestdraft.Field{
		pictureField(),
		{
			Key:     "factor",
			Type:    "SLIDER",
			Label:   "Factor",
			Default: 2,
			Min:     manifestdraft.Bound(1),
			Max:     manifestdraft.Bound(4),
			Step:    manifestdraft.Bound(0.5),
		},
		upscaler,
	}
	return nil
}

func pictureField() manifestdraft.Field {
	return manifestdraft.Field{
		Key:      "picture",
		Type:     "IMG",
		Label:    "Picture",
		Required: true,
		Accept:   manifestdraft.PictureTypes,
	}
}

func maskField() manifestdraft.Field {
	return manifestdraft.Field{
		Key:      "mask",
		Type:     "IMG",
		Label:    "Mask",
		Help:     "The picture is changed where the mask is white.",
		Accept:   manifestdraft.PictureTypes,
		Advanced: true,
	}
}

func denoiseField() manifestdraft.Field {
	return manifestdraft.Field{
		Key:     "denoise",
		Type:    "SLIDER",
		Label:   "Strength of the change",
		Default: 0.6,
		Min:     manifestdraft.Bound(0),
		Max:     manifestdraft.Bound(1),
		Step:    manifestdraft.Bound(0.05),
	}
}

// drawingSizes returns the field for the size of a picture. Older models, which
// are recognized by the checkpoint's name, get smaller sizes, because they were
// trained with smaller pictures.
func drawingSizes(checkpoint string) manifestdraft.Field {
	list := []string{"1024x1024", "1216x832", "832x1216"}
	for _, old := range []string{"1-5", "1.5", "sd15", "v15", "2-1", "sd1"} {
		if strings.Contains(strings.ToLower(checkpoint), old) {
			list = []string{"512x512", "768x512", "512x768"}
		}
	}
	f := manifestdraft.SizeField(list...)
	f.Min = manifestdraft.Bound(256)
	f.Max = manifestdraft.Bound(2048)
	f.MultipleOf = 8
	return f
}

// optionField returns a select field whose options are names from the server.
func optionField(key, label string, names []string) manifestdraft.Field {
	f := manifestdraft.Field{Key: key, Type: "SINGLE_SELECT", Label: label, Advanced: true}
	for _, name := range names[:min(len(names), maxOptions)] {
		f.Options = append(f.Options, manifestdraft.Option{Text: name, Value: name})
	}
	return f
}

func shortName(name string) string {
	runes := []rune(name)
	return string(runes[:min(len(runes), 60)])
}
