package manifestdraft

import "fmt"

// The functions below return fields for servers that do not describe their
// parameters, but whose API is known.

// PictureTypes are the MIME types of pictures that tools accept and return.
var PictureTypes = []string{"image/png", "image/jpeg", "image/webp"}

// PromptField returns the field for the prompt.
func PromptField() Field {
	return Field{
		Key:       "prompt",
		Type:      "PROMPT",
		Label:     "Prompt",
		Required:  true,
		MaxLength: 4000,
	}
}

// SamplingFields returns the fields for parameters that all diffusion models
// have: negative prompt, steps, guidance and seed. They have no defaults,
// because the model's own defaults are best.
func SamplingFields() []Field {
	return []Field{
		{
			Key:       "negative_prompt",
			Type:      "NEG_PROMPT",
			Label:     "What to avoid",
			MaxLength: 4000,
			Advanced:  true,
		},
		{
			Key:      "steps",
			Type:     "STEPS",
			Label:    "Steps",
			Min:      Bound(1),
			Max:      Bound(100),
			Advanced: true,
		},
		{
			Key:      "cfg",
			Type:     "CFG",
			Label:    "Guidance",
			Min:      Bound(0),
			Max:      Bound(20),
			Step:     Bound(0.5),
			Advanced: true,
		},
		{Key: "seed", Type: "SEED", Label: "Seed", Advanced: true},
	}
}

// SizeField returns a field for picture sizes, given as 640x480. The first size
// is the default.
func SizeField(list ...string) Field {
	f := Field{Key: "size", Type: "WIDTH_HEIGHT", Label: "Size"}
	for i, text := range list {
		var s Size
		if _, err := fmt.Sscanf(text, "%dx%d", &s.Width, &s.Height); err != nil {
			continue // never happens, because callers pass constants
		}
		s.Text = fmt.Sprintf("%d × %d", s.Width, s.Height)
		f.Sizes = append(f.Sizes, s)
		if i == 0 {
			f.Default = map[string]any{"width": s.Width, "height": s.Height}
		}
	}
	return f
}

// Bound returns a pointer to n, for the limits of a field.
func Bound(n float64) *float64 { return &n }
