package main

import (
	"strings"
	"unicode"
)

// initialisms are the words that Go names have in upper case.
var initialisms = map[string]string{
	"id": "ID", "ids": "IDs", "uid": "UID", "url": "URL", "utc": "UTC", "sha256": "SHA256", "uuid": "UUID", "json": "JSON", "csv": "CSV",
	"html": "HTML", "api": "API", "cfg": "CFG", "3d": "3D", "s3": "S3", "cpu": "CPU", "tls": "TLS",
}

// exportedName converts a name of the document to an exported Go name.
func exportedName(name string) string {
	var b strings.Builder
	for _, word := range splitWords(name) {
		lower := strings.ToLower(word)
		if upper, ok := initialisms[lower]; ok {
			b.WriteString(upper)
			continue
		}
		b.WriteString(strings.ToUpper(lower[:1]) + lower[1:])
	}
	return b.String()
}

// argumentName converts the name of a path parameter to a Go argument name.
func argumentName(name string) string {
	words := splitWords(name)
	first := strings.ToLower(words[0])
	if len(words) == 1 {
		return first
	}
	return first + exportedName(strings.Join(words[1:], "_"))
}

// splitWords splits snake_case, kebab-case, camelCase and UPPER_CASE names
// into words.
func splitWords(name string) []string {
	name = strings.NewReplacer("+", "_plus", "1:1", "1x1", ":", "x", "*", "star").Replace(name)
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, string(word))
			word = nil
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && unicode.IsLower(runes[i-1]):
			flush()
		}
		word = append(word, r)
	}
	flush()
	return words
}

// typeName returns the Go name of a schema.
func typeName(name string) string {
	if renamed, ok := typeNames[name]; ok {
		return renamed
	}
	return name
}

// comment wraps a text as Go comment lines with an indent.
func comment(indent, text string) string {
	const columns = 77
	var b strings.Builder
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, paragraph := range paragraphs {
		if i > 0 {
			b.WriteString(indent + "//\n")
		}
		for _, item := range splitItems(paragraph) {
			lead := "//"
			if strings.HasPrefix(item, "- ") {
				lead = "//  "
			}
			line := indent + lead
			for _, word := range strings.Fields(item) {
				if len(line)+1+len(word) > columns && line != indent+lead {
					b.WriteString(line + "\n")
					line = indent + lead
					if lead != "//" {
						line += "  "
					}
				}
				line += " " + word
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// splitItems splits a paragraph into its list items; a paragraph without a
// list is one item.
func splitItems(paragraph string) []string {
	var items []string
	for _, line := range strings.Split(paragraph, "\n") {
		if strings.HasPrefix(line, "- ") || len(items) == 0 {
			items = append(items, line)
			continue
		}
		items[len(items)-1] += " " + line
	}
	return items
}

// sentence turns a summary of the document into a sentence that begins with
// the name of the thing, as doc comments do.
func sentence(name, rest string) string {
	rest = strings.TrimSpace(rest)
	if rest == "" {
		return name + " is defined by the OpenAPI document."
	}
	return name + ": " + rest
}
