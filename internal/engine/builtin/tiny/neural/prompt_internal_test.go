package neural

import (
	"strings"
	"testing"

	"atelier/internal/engine/builtin/tiny/kernel"
)

// No text is a fault: not a long one, nor one that is no text.
func TestAnythingIsAPrompt(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 1)
	for name, prompt := range map[string]string{
		"long":          strings.Repeat("red cat, ", 1<<17),
		"one long word": strings.Repeat("a", 1<<20),
		"marks only":    strings.Repeat("\u0301", 1<<16),
		"growing":       strings.Repeat("\ufdfa", 1<<14),
		"no text":       strings.Repeat("\xff\xc0\x80\x00", 1<<14) + "cat",
		"right to left": "قطة حمراء \u202e cat",
		"hyphens":       strings.Repeat("-'", 1<<16),
	} {
		tokens := make([]int, m.MaxWords())
		m.words.encodeWords(prompt, tokens)
		for _, token := range tokens {
			if token < 0 || token*vectorSize >= len(m.words.vectors) {
				t.Errorf("%s: token %d", name, token)
			}
		}
		m.UnknownWords(prompt)
	}
}
