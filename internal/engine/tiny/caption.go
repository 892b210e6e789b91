package tiny

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// styles and backgrounds are words that the captions of the training pictures
// end with, in this order: "red fox, flat emoji in the snow". The network knows
// them best in these very words, so the article stays as it is there before a
// vowel, too.
var (
	styles = map[string]string{
		"3d":      ", 3d emoji",
		"glossy":  ", glossy emoji",
		"flat":    ", flat emoji",
		"cartoon": ", cartoon emoji",
		"simple":  ", simple emoji",
	}
	backgrounds = map[string]string{
		"white":      " on a white background",
		"red":        " on a red background",
		"orange":     " on a orange background",
		"yellow":     " on a yellow background",
		"green":      " on a green background",
		"teal":       " on a teal background",
		"blue":       " on a blue background",
		"purple":     " on a purple background",
		"pink":       " on a pink background",
		"brown":      " on a brown background",
		"beige":      " on a beige background",
		"gray":       " on a gray background",
		"black":      " on a black background",
		"grass":      " in a grassy field",
		"night":      " at night",
		"space":      " in space",
		"beach":      " on the beach",
		"sea":        " on the sea",
		"underwater": " underwater",
		"sunset":     " at sunset",
		"desert":     " in the desert",
		"snow":       " in the snow",
		"forest":     " in the forest",
		"sky":        " in the sky",
		"moon":       " on the moon",
	}
)

// caption is as much of the prompt as the network reads, with the words for the
// style and the background, which have to fit in as well. A choice that is not
// known adds nothing.
func (t *task) caption(prompt string) (caption, read string) {
	style, _ := t.Values["style"].(string)
	background, _ := t.Values["background"].(string)
	more := styles[style] + backgrounds[background]
	read = first(prompt, t.model.Words()-t.count(more), t.count)
	return strings.TrimRight(read, " .,;:!?") + more, read
}

func (t *task) count(text string) int {
	_, words := t.model.Unknown(text)
	return words
}

// first cuts a text after so many words, between two spaces.
func first(text string, most int, count func(string) int) string {
	fields := strings.Fields(text)
	for len(fields) > 1 && count(strings.Join(fields, " ")) > most {
		fields = fields[:len(fields)-1]
	}
	return strings.Join(fields, " ")
}

// namedBytes is how much of a note may be words of the prompt.
const namedBytes = 350

// note says how much of a prompt the network read and which words of that it does
// not know, "" where it read all and knows them.
func (t *task) note(prompt, read string) string {
	note := about(t.model.Unknown(once(read)))
	if n := t.count(read); n < t.count(prompt) {
		note = strings.TrimSpace(fmt.Sprintf("Only the first %d words were read. %s", n, note))
	}
	return note
}

// once is a text with each word once, so that repeated ones count once.
func once(text string) string {
	var all []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsPunct(r) && r != '-' && r != '\'' }) {
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return strings.Join(all, " ")
}

// about says what a picture does not show: those of so many words that the
// network does not know.
func about(unknown []string, words int) string {
	switch {
	case words == 0:
		return "The prompt has no word that this model can read, so the picture has nothing to do with it. It reads English."
	case len(unknown) == 0:
		return ""
	case len(unknown) >= words && words == 1:
		return "The only word is unknown to this model, so the picture has nothing to do with the prompt: " + listed(unknown) + "."
	case len(unknown) >= words:
		return fmt.Sprintf("All %d words are unknown to this model, so the picture has nothing to do with the prompt: %s.", words, listed(unknown))
	case len(unknown) == 1:
		return fmt.Sprintf("1 of %d words is unknown to this model and was left out of the drawing: %s.", words, listed(unknown))
	}
	return fmt.Sprintf("%d of %d words are unknown to this model and were left out of the drawing: %s.", len(unknown), words, listed(unknown))
}

// listed names words, as many as there is room for.
func listed(words []string) string {
	var b strings.Builder
	for _, w := range words {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		if b.Len()+len(w) > namedBytes {
			b.WriteString("…")
			break
		}
		b.WriteString(w)
	}
	return b.String()
}
