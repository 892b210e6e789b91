package tiny

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
	read = first(strings.TrimSpace(prompt), t.model.Words()-t.count(more), t.count)
	return strings.TrimRight(read, " .,;:!?") + more, read
}

func (t *task) count(text string) int {
	_, words := t.model.Unknown(text)
	return words
}

// first cuts a text after so many words. Where nothing lies between two of them,
// as in a letter that stands for several, it takes what is left letter by letter.
func first(text string, most int, count func(string) int) string {
	for text != "" && count(text) > most {
		text = strings.TrimRightFunc(text, between)
		cut := strings.LastIndexFunc(text, between)
		if cut < 0 {
			_, last := utf8.DecodeLastRuneInString(text)
			cut = len(text) - last
		}
		text = strings.TrimSpace(text[:cut])
	}
	return text
}

// between tells whether a character is no part of a word.
func between(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }

// inner are the characters that may also join what lies round them to one word.
const inner = "-'’‘ʼ‐‑"

// small are words that say nothing by themselves, so that nobody misses them in
// a picture.
var small = strings.Fields(`we our ours your yours he him his she her hers they them their theirs that these those whom whose
	which how is are was were be been being has had having does did will would shall should could may might must if because
	until while against into during before after further there any both each few most some such only own same so than too very
	just want really quite lot`)

// note says how much of a prompt the network read, which words of that it does
// not know, and which it has only read about; "" where it read all and was shown
// them all. A word counts once.
func (t *task) note(prompt, read string) string {
	var unknown, guessed, seen []string
	words := 0
	for _, w := range strings.FieldsFunc(strings.ToLower(read), func(r rune) bool { return between(r) && !strings.ContainsRune(inner, r) }) {
		if slices.Contains(seen, w) {
			continue
		}
		seen = append(seen, w)
		strange, n := t.model.Unknown(w)
		words += n
		if n == 1 && len(strange) == 1 {
			strange[0] = strings.TrimFunc(w, between) // as it was written, with its marks
		}
		unknown = append(unknown, strange...)
		for _, g := range t.model.Guessed(w) {
			if !slices.Contains(small, g) {
				guessed = append(guessed, g)
			}
		}
	}
	var all []string
	if n := t.count(read); n < t.count(prompt) {
		all = append(all, fmt.Sprintf("Only the first %d words were read.", n))
	}
	room := namedBytes
	if len(unknown) > 0 && len(guessed) > 0 {
		room = bothBytes
	}
	return strings.Join(append(all, about(unknown, guessed, words, room)...), " ")
}

// How much of a note may be words of the prompt: of one kind, and of each of two.
const (
	namedBytes = 320
	bothBytes  = 110
)

// about says what a picture does not show, or not for sure: those of so many
// words that the network does not know, and those that it guesses at.
func about(unknown, guessed []string, words, room int) (all []string) {
	switch {
	case words == 0:
		all = append(all, "The prompt has no word that this model can read, so the picture has nothing to do with it. It reads English.")
	case len(unknown) == 0:
	case len(unknown) >= words && words == 1:
		all = append(all, "The only word is unknown to this model, so the picture has nothing to do with the prompt: "+listed(unknown, room)+".")
	case len(unknown) >= words:
		all = append(all, fmt.Sprintf("All %d words are unknown to this model, so the picture has nothing to do with the prompt: %s.", words, listed(unknown, room)))
	case len(unknown) == 1:
		all = append(all, fmt.Sprintf("1 of %d words is unknown to this model and was left out of the drawing: %s.", words, listed(unknown, room)))
	default:
		all = append(all, fmt.Sprintf("%d of %d words are unknown to this model and were left out of the drawing: %s.", len(unknown), words, listed(unknown, room)))
	}
	const learned = "This model learned %s from texts only, without a picture, and guesses at %s: %s."
	switch {
	case len(guessed) == 0:
	case words == 1:
		all = append(all, fmt.Sprintf(learned, "the only word", "it", listed(guessed, room)))
	case len(guessed) == 1:
		all = append(all, fmt.Sprintf(learned, fmt.Sprintf("1 of %d words", words), "it", listed(guessed, room)))
	default:
		all = append(all, fmt.Sprintf(learned, fmt.Sprintf("%d of %d words", len(guessed), words), "them", listed(guessed, room)))
	}
	return all
}

// listed names words, as many as there is room for, and of the first at least
// the beginning.
func listed(words []string, room int) string {
	all := strings.Join(words, ", ")
	if len(all) <= room {
		return all
	}
	cut := room
	for !utf8.RuneStart(all[cut]) {
		cut--
	}
	if end := strings.LastIndex(all[:cut], ", "); end > 0 {
		cut = end + len(", ")
	}
	return all[:cut] + "…"
}
