package workflowimport

import (
	"slices"
	"strings"
	"unicode"
)

// lastPart returns the name of an input without the prefixes of the dynamic
// choices that contain it.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// splitName splits the name of an input into words in lower case.
func splitName(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// hasWord reports whether a name has one of the words.
func hasWord(name string, words ...string) bool {
	return slices.ContainsFunc(splitName(name), func(w string) bool { return slices.Contains(words, w) })
}

// isTechnical reports whether the name of a text input indicates a technical
// value, such as a path or a format, rather than text that a person would
// write.
func isTechnical(name string) bool {
	return hasWord(name,
		"prefix", "suffix", "delimiter", "separator", "find", "pattern", "regex", "expression", "formula", "code", "shader",
		"path", "file", "filename", "folder", "directory", "url", "key", "keys", "token", "sigmas", "points", "coordinates", "bboxes",
		"format", "mode", "device", "dtype", "json", "config", "id", "uuid", "name", "names", "color", "colour", "version", "model", "ext", "extension",
	)
}

// truncateText shortens text to at most maxRunes characters.
func truncateText(text string, maxRunes int) string {
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes])
	}
	return text
}

// singleLine replaces control characters, such as line breaks, with spaces.
func singleLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
