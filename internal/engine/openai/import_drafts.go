package openai

import (
	"slices"
	"strings"

	"atelier/internal/engine/manifestdraft"
)

// draftsByCall contains, for each API endpoint, the function that adds its
// fields and settings to a manifest draft.
var draftsByCall = map[string]func(t *manifestdraft.Tool, name string){
	"images":     draftImages,
	"edits":      draftEdits,
	"speech":     draftSpeech,
	"videos":     draftVideos,
	"video-sync": draftVideoSync,
}

func draftImages(t *manifestdraft.Tool, name string) {
	t.Output = manifestdraft.Output{Type: "IMG", MimeTypes: manifestdraft.PictureTypes}
	t.NumResults = &manifestdraft.NumResults{Min: 1, Max: 4, Default: 1}
	t.Timeout = "10m"
	t.Fields = []manifestdraft.Field{manifestdraft.PromptField()}
	switch {
	case strings.HasPrefix(name, "dall-e-3"):
		t.Engine.With["batch"] = 1 // dall-e-3 makes one picture per request
		t.Engine.With["response_format"] = "b64_json"
		t.Fields = append(t.Fields, manifestdraft.SizeField("1024x1024", "1792x1024", "1024x1792"), selectField("quality", "standard", "hd"))
	case strings.HasPrefix(name, "dall-e-2"):
		t.Engine.With["response_format"] = "b64_json"
		t.Fields = append(t.Fields, manifestdraft.SizeField("1024x1024", "512x512", "256x256"))
	case isOpenAIModel(name): // OpenAI's other models always return base64 and refuse response_format
		t.Fields = append(t.Fields, manifestdraft.SizeField("1024x1024", "1536x1024", "1024x1536"), selectField("quality", "auto", "low", "medium", "high"))
	default:
		t.Engine.With["response_format"] = "b64_json"
		size := manifestdraft.SizeField("1024x1024", "1280x768", "768x1280")
		size.Min = manifestdraft.Bound(256)
		size.Max = manifestdraft.Bound(2048)
		size.MultipleOf = 16
		t.Fields = append(t.Fields, size)
		addSampling(t)
	}
}

func draftEdits(t *manifestdraft.Tool, name string) {
	draftImages(t, name)
	own := []manifestdraft.Field{
		t.Fields[0],
		{
			Key:      "pictures",
			Type:     "IMGS",
			Label:    "Pictures",
			Required: true,
			Accept:   manifestdraft.PictureTypes,
			MaxItems: 4,
		},
		{
			Key:      "mask",
			Type:     "IMG",
			Label:    "Mask",
			Help:     "The first picture is changed where the mask is transparent.",
			Accept:   []string{"image/png"},
			Advanced: true,
		},
	}
	t.Fields = append(own, t.Fields[1:]...)
}

func draftSpeech(t *manifestdraft.Tool, name string) {
	t.Output = manifestdraft.Output{Type: "AUDIO", MimeTypes: []string{"audio/mpeg"}}
	t.Timeout = "5m"
	t.Engine.With["response_format"] = "mp3"
	t.Fields = []manifestdraft.Field{
		{
			Key:       "text",
			Type:      "TEXT_AREA",
			Label:     "Text",
			Required:  true,
			MaxLength: 4096,
		},
		voiceField(name),
		{
			Key:      "speed",
			Type:     "SLIDER",
			Label:    "Speed",
			Default:  1,
			Min:      manifestdraft.Bound(0.25),
			Max:      manifestdraft.Bound(4),
			Step:     manifestdraft.Bound(0.05),
			Advanced: true,
		},
	}
	if strings.HasPrefix(name, "gpt-") {
		t.Fields = append(t.Fields, manifestdraft.Field{
			Key:       "instructions",
			Type:      "TEXT",
			Label:     "Manner",
			Help:      "How it is to be spoken.",
			MaxLength: 1000,
			Advanced:  true,
		})
	}
}

func draftVideos(t *manifestdraft.Tool, name string) {
	t.Output = manifestdraft.Output{Type: "VID", MimeTypes: []string{"video/mp4", "video/webm"}}
	t.Timeout = "1h"
	picture := manifestdraft.Field{
		Key:      "picture",
		Type:     "IMG",
		Label:    "First picture",
		Accept:   manifestdraft.PictureTypes,
		Advanced: true,
	}
	if !isOpenAIModel(name) {
		seconds := manifestdraft.Field{
			Key:     "seconds",
			Type:    "NUM",
			Label:   "Seconds",
			Default: 4,
			Min:     manifestdraft.Bound(1),
			Max:     manifestdraft.Bound(20),
			Integer: true,
		}
		size := manifestdraft.SizeField("832x480", "480x832", "1280x720", "720x1280")
		size.Min = manifestdraft.Bound(256)
		size.Max = manifestdraft.Bound(1920)
		size.MultipleOf = 16
		t.Fields = []manifestdraft.Field{manifestdraft.PromptField(), picture, seconds, size}
		addSampling(t)
		return
	}
	size := manifestdraft.SizeField("1280x720", "720x1280")
	if strings.Contains(name, "pro") {
		size = manifestdraft.SizeField("1280x720", "720x1280", "1792x1024", "1024x1792")
	}
	t.Fields = []manifestdraft.Field{manifestdraft.PromptField(), picture, selectField("seconds", "4", "8", "12"), size}
}

// draftVideoSync drafts a tool for LocalAI, which ignores a length in seconds
// and uses the number of frames.
func draftVideoSync(t *manifestdraft.Tool, name string) {
	draftVideos(t, "own-"+name) // with the prefix, the model does not count as one of OpenAI's
	at := slices.IndexFunc(t.Fields, func(f manifestdraft.Field) bool { return f.Key == "seconds" })
	t.Fields = slices.Replace(t.Fields, at, at+1, countField("num_frames", "Frames", 257), countField("fps", "Frames per second", 60))
}

// adaptToLocalAI completes a draft for LocalAI, whose endpoint for pictures has
// no parameter for the guidance.
func adaptToLocalAI(t *manifestdraft.Tool, call string) {
	if call != "images" {
		return
	}
	t.Engine.With["dialect"] = localAI
	removeFields(t, "cfg")
}

// adaptToSDCpp removes from a draft everything that stable-diffusion.cpp
// ignores at its OpenAI endpoints.
func adaptToSDCpp(t *manifestdraft.Tool) {
	delete(t.Engine.With, "seed")
	delete(t.Engine.With, "response_format")
	removeFields(t, "negative_prompt", "steps", "cfg", "seed")
	t.Notes = append(t.Notes, "stable-diffusion.cpp ignores the seed, steps, guidance and negative prompt here, and makes the same picture for the same prompt unless it was started with --seed -1. "+
		"It supports them under AUTOMATIC1111's API: add the server to the backends with engine a1111, its URL without /v1, and import that.")
}

func removeFields(t *manifestdraft.Tool, keys ...string) {
	t.Fields = slices.DeleteFunc(t.Fields, func(f manifestdraft.Field) bool { return slices.Contains(keys, f.Key) })
}

// countField returns a field for a whole number from 1 to the given maximum.
// The field has no default, because the model's own default is best.
func countField(key, label string, most float64) manifestdraft.Field {
	return manifestdraft.Field{
		Key:      key,
		Type:     "NUM",
		Label:    label,
		Min:      manifestdraft.Bound(1),
		Max:      manifestdraft.Bound(most),
		Integer:  true,
		Advanced: true,
	}
}

// addSampling adds fields for parameters of diffusion servers that OpenAI's
// API does not have.
func addSampling(t *manifestdraft.Tool) {
	t.Engine.With["seed"] = "seed"
	t.Fields = append(t.Fields, manifestdraft.SamplingFields()...)
}

// selectField returns a select field. The first option is the default.
func selectField(key string, options ...string) manifestdraft.Field {
	f := manifestdraft.Field{Key: key, Type: "SINGLE_SELECT", Label: manifestdraft.Label(key), Default: options[0]}
	for _, o := range options {
		f.Options = append(f.Options, manifestdraft.Option{Text: manifestdraft.Label(o), Value: o})
	}
	return f
}

// voiceField returns the field for the voice of a speech model: a select field
// for well-known models, a text field for other models.
func voiceField(name string) manifestdraft.Field {
	switch {
	case strings.HasPrefix(name, "tts-1"):
		return selectField("voice", "alloy", "ash", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer")
	case strings.HasPrefix(name, "gpt-"):
		return selectField("voice", "alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse")
	case strings.Contains(name, "kokoro"):
		return selectField("voice", "af_heart", "af_bella", "af_nicole", "am_adam", "am_michael", "bf_emma", "bf_isabella", "bm_george", "bm_lewis")
	}
	return manifestdraft.Field{Key: "voice", Type: "TEXT", Label: "Voice", MaxLength: 100}
}
