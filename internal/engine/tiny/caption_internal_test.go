package tiny

import (
	"fmt"
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/tiny/kernel"
	"atelier/internal/engine/tiny/neural"
)

func model(t *testing.T) *neural.Model {
	t.Helper()
	m, err := neural.Open(kernel.Best(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func TestCaptions(t *testing.T) {
	t.Parallel()
	m := model(t)
	for _, tt := range []struct{ prompt, style, background, want string }{
		{"red fox", "", "", "red fox"},
		{"red fox", "any", "prompt", "red fox"},
		{" Red fox. ", "flat", "snow", "Red fox, flat emoji in the snow"},
		{"two cats!", "", "blue", "two cats on a blue background"},
		{"", "3d", "moon", ", 3d emoji on the moon"},
	} {
		task := &task{Job: engine.Job{Values: map[string]any{"style": tt.style, "background": tt.background}}, model: m}
		if got, read := task.caption(tt.prompt); got != tt.want || read != strings.TrimSpace(tt.prompt) {
			t.Errorf("caption = %q of %q, want %q", got, read, tt.want)
		}
	}
}

// TestLongPrompts leaves room for the words of the style and the background, and
// says what was not read.
func TestLongPrompts(t *testing.T) {
	t.Parallel()
	m := model(t)
	task := &task{Job: engine.Job{Values: map[string]any{"style": "flat", "background": "snow"}}, model: m}
	prompt := strings.TrimSpace(strings.Repeat("red fox, blue car; ", 15))
	caption, read := task.caption(prompt)
	if n := task.count(caption); n != m.Words() || !strings.HasSuffix(caption, ", flat emoji in the snow") || !strings.HasPrefix(prompt, read) {
		t.Errorf("caption = %q with %d words of %d", caption, n, m.Words())
	}
	if note, want := task.note(prompt, read), fmt.Sprintf("Only the first %d words were read.", m.Words()-5); note != want {
		t.Errorf("note = %q, want %q", note, want)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	task := &task{model: model(t)}
	for prompt, want := range map[string]string{
		"red fox":                     "",
		"a red fox on a green hill":   "",
		"Blorptangle fox with quuxes": "2 of 4 words are unknown to this model and were left out of the drawing: blorptangle, quuxes.",
		"a fox, a Blorptangle":        "1 of 3 words is unknown to this model and was left out of the drawing: blorptangle.",
		"blorptangle, Blorptangle!":   "The only word is unknown to this model, so the picture has nothing to do with the prompt: blorptangle.",
		"blorptangle quuxes":          "All 2 words are unknown to this model, so the picture has nothing to do with the prompt: blorptangle, quuxes.",
		"🦊":                           "The prompt has no word that this model can read, so the picture has nothing to do with it. It reads English.",
		"лиса":                        "The only word is unknown to this model, so the picture has nothing to do with the prompt: лиса.",
		"":                            "The prompt has no word that this model can read, so the picture has nothing to do with it. It reads English.",
	} {
		if got := task.note(prompt, prompt); got != want {
			t.Errorf("%q: note = %q, want %q", prompt, got, want)
		}
	}
	for _, word := range []string{strings.Repeat("x", 300), strings.Repeat("y", 30)} {
		var words []string
		for i := range 24 {
			words = append(words, fmt.Sprint(word, i))
		}
		if note := about(words, 30); len(note) > engine.MaxRemark || !strings.HasSuffix(note, "….") {
			t.Errorf("a note of %d bytes: %s", len(note), note)
		}
	}
}
