package tiny

import (
	"fmt"
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/tiny/kernel"
	"atelier/internal/engine/builtin/tiny/neural"
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
		if got, read := task.buildCaption(tt.prompt); got != tt.want || read != strings.TrimSpace(tt.prompt) {
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
	caption, read := task.buildCaption(prompt)
	if n := task.countWords(caption); n != m.MaxWords() || !strings.HasSuffix(caption, ", flat emoji in the snow") || !strings.HasPrefix(prompt, read) {
		t.Errorf("caption = %q with %d words of %d", caption, n, m.MaxWords())
	}
	if note, want := task.promptNote(prompt, read), fmt.Sprintf("Only the first %d words were read.", m.MaxWords()-5); note != want {
		t.Errorf("note = %q, want %q", note, want)
	}
	// Nothing of this lies between spaces, and a letter of the last is four words.
	for _, prompt := range []string{strings.Repeat("fox,car;", 15), strings.Repeat("fox-car-", 15), strings.Repeat("\ufdfa", 99)} {
		caption, read := task.buildCaption(prompt)
		if n := task.countWords(caption); n > m.MaxWords() || n < m.MaxWords()-4 || !strings.HasPrefix(prompt, read) {
			t.Errorf("caption = %q with %d words of %d", caption, n, m.MaxWords())
		}
		if note := task.promptNote(prompt, read); !strings.HasPrefix(note, "Only the first ") {
			t.Errorf("%s: note = %q", prompt, note)
		}
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
		"🦊":                           "The prompt has no word that this model can read, so the picture has nothing to do with the prompt. The model reads English.",
		"лиса":                        "The only word is unknown to this model, so the picture has nothing to do with the prompt: лиса.",
		"":                            "The prompt has no word that this model can read, so the picture has nothing to do with the prompt. The model reads English.",
		"…?!":                         "The prompt has no word that this model can read, so the picture has nothing to do with the prompt. The model reads English.",
		"the fox’s Blorptangle":       "1 of 3 words is unknown to this model and was left out of the drawing: blorptangle.",
		"fox,fox,Blorptangle":         "1 of 2 words is unknown to this model and was left out of the drawing: blorptangle.",
		// Words of others are named as they were written.
		"red ギターだ":   "1 of 2 words is unknown to this model and was left out of the drawing: ギターだ.",
		"red लोमड़ी": "1 of 2 words is unknown to this model and was left out of the drawing: लोमड़ी.",
		// It was shown several of what it was shown one of.
		"three strawberries, two wolves and four knives": "",
		// It has seen no lawyer, and draws something all the same.
		"a lawyer in the snow":      "This model learned 1 of 5 words from texts only, without a picture, and guesses at it: lawyer.",
		"democracy":                 "This model learned the only word from texts only, without a picture, and guesses at it: democracy.",
		"a lawyer of Democracy":     "This model learned 2 of 4 words from texts only, without a picture, and guesses at them: lawyer, democracy.",
		"his fox is very red":       "",
		"blorptangle with a lawyer": "1 of 4 words is unknown to this model and was left out of the drawing: blorptangle. This model learned 1 of 4 words from texts only, without a picture, and guesses at it: lawyer.",
		strings.Repeat("狐", 300):    "The only word is unknown to this model, so the picture has nothing to do with the prompt: " + strings.Repeat("狐", oneListBytes/3) + "….",
	} {
		if got := task.promptNote(prompt, prompt); got != want {
			t.Errorf("%q: note = %q, want %q", prompt, got, want)
		}
	}
}

// TestNotesFit names as much as there is room for.
func TestNotesFit(t *testing.T) {
	t.Parallel()
	task := &task{model: model(t)}
	many := func(word string) string {
		var all []string
		for i := range 12 {
			all = append(all, fmt.Sprint(word, i))
		}
		return strings.Join(all, " ")
	}
	for _, prompt := range []string{
		many(strings.Repeat("x", 300)), many(strings.Repeat("y", 30)),
		many(strings.Repeat("y", 30)) + " lawyer democracy parliament philosophy constitution legislation jurisprudence bureaucracy",
		strings.Repeat(many("zz")+" ", 9),
	} {
		_, read := task.buildCaption(prompt)
		if note := task.promptNote(prompt, read); len(note) > engine.MaxNote || !strings.Contains(note, "…") && len(prompt) > 300 && !strings.HasPrefix(note, "Only") {
			t.Errorf("a note of %d bytes: %s", len(note), note)
		}
	}
}
