package tiny

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// styles and backgrounds are the phrases at the end of a caption, by the values
// of the inputs style and background. The style comes first: "red fox, flat
// emoji in the snow". The network was trained with exactly these words, so they
// contain "a" even before a vowel.
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

// buildCaption returns the caption for the network, and the part of the prompt
// that the caption contains. The caption ends with the words for style and
// background; the prompt is shortened so that they fit. An unknown style or
// background adds nothing.
func (t *task) buildCaption(prompt string) (caption, read string) {
	style, _ := t.Values["style"].(string)
	background, _ := t.Values["background"].(string)
	more := styles[style] + backgrounds[background]
	read = firstWords(strings.TrimSpace(prompt), t.model.MaxWords()-t.countWords(more), t.countWords)
	return strings.TrimRight(read, " .,;:!?") + more, read
}

func (t *task) countWords(text string) int {
	_, words := t.model.UnknownWords(text)
	return words
}

// firstWords shortens a text to at most maxWords words. It removes the last
// word repeatedly. If the text contains no separator, it removes the last
// character instead, because a single character may count as several words.
func firstWords(text string, maxWords int, count func(string) int) string {
	for text != "" && count(text) > maxWords {
		text = strings.TrimRightFunc(text, isSeparator)
		cut := strings.LastIndexFunc(text, isSeparator)
		if cut < 0 {
			_, last := utf8.DecodeLastRuneInString(text)
			cut = len(text) - last
		}
		text = strings.TrimSpace(text[:cut])
	}
	return text
}

// isSeparator reports whether a character is not part of a word.
func isSeparator(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
}

// joiners are separators that may also join two parts of one word, such as the
// hyphen.
const joiners = "-'’‘ʼ‐‑"

// fillerWords are words that a picture cannot show. Notes about a prompt do not
// mention them.
var fillerWords = strings.Fields(`we our ours your yours he him his she her hers they them their theirs that these those whom whose
	which how is are was were be been being has had having does did will would shall should could may might must if because
	until while against into during before after further there any both each few most some such only own same so than too very
	just want really quite lot`)

// promptNote returns a note about a prompt: how much of it the network read,
// which of the words the network does not know, and which words it knows only
// from texts, not from pictures. It returns "" if the network read everything
// and knows all words. Repeated words count once.
func (t *task) promptNote(prompt, read string) string {
	var unknown, guessed, seen []string
	words := 0
	for _, w := range strings.FieldsFunc(strings.ToLower(read), func(r rune) bool { return isSeparator(r) && !strings.ContainsRune(joiners, r) }) {
		if slices.Contains(seen, w) {
			continue
		}
		seen = append(seen, w)
		strange, n := t.model.UnknownWords(w)
		words += n
		if n == 1 && len(strange) == 1 {
			strange[0] = strings.TrimFunc(w, isSeparator) // as written in the prompt, with diacritics
		}
		unknown = append(unknown, strange...)
		for _, g := range t.model.GuessedWords(w) {
			if !slices.Contains(fillerWords, g) {
				guessed = append(guessed, g)
			}
		}
	}
	var all []string
	if n := t.countWords(read); n < t.countWords(prompt) {
		all = append(all, fmt.Sprintf("Only the first %d words were read.", n))
	}
	room := oneListBytes
	if len(unknown) > 0 && len(guessed) > 0 {
		room = twoListsBytes
	}
	return strings.Join(append(all, describeWords(unknown, guessed, words, room)...), " ")
}

// Limits in bytes on a list of words in a note: for a note with one list, and
// for each list in a note with two.
const (
	oneListBytes  = 320
	twoListsBytes = 110
)

// describeWords returns sentences about words that are possibly missing from
// the picture: unknown words, and words that the network knows only from texts.
// words is the number of words in total, room the maximum length of a list in
// bytes.
func describeWords(unknown, guessed []string, words, room int) (all []string) {
	switch {
	case words == 0:
		all = append(all, "The prompt has no word that this model can read, so the picture has nothing to do with the prompt. The model reads English.")
	case len(unknown) == 0:
	case len(unknown) >= words && words == 1:
		all = append(all, "The only word is unknown to this model, so the picture has nothing to do with the prompt: "+listWords(unknown, room)+".")
	case len(unknown) >= words:
		all = append(all, fmt.Sprintf("All %d words are unknown to this model, so the picture has nothing to do with the prompt: %s.", words, listWords(unknown, room)))
	case len(unknown) == 1:
		all = append(all, fmt.Sprintf("1 of %d words is unknown to this model and was left out of the drawing: %s.", words, listWords(unknown, room)))
	default:
		all = append(all, fmt.Sprintf("%d of %d words are unknown to this model and were left out of the drawing: %s.", len(unknown), words, listWords(unknown, room)))
	}
	const learned = "This model learned %s from texts only, without a picture, and guesses at %s: %s."
	switch {
	case len(guessed) == 0:
	case words == 1:
		all = append(all, fmt.Sprintf(learned, "the only word", "it", listWords(guessed, room)))
	case len(guessed) == 1:
		all = append(all, fmt.Sprintf(learned, fmt.Sprintf("1 of %d words", words), "it", listWords(guessed, room)))
	default:
		all = append(all, fmt.Sprintf(learned, fmt.Sprintf("%d of %d words", len(guessed), words), "them", listWords(guessed, room)))
	}
	return all
}

// listWords joins as many words as fit into the given number of bytes, but at
// least the beginning of the first word.
func listWords(words []string, room int) string {
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
