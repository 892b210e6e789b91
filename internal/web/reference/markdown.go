package reference

import "strings"

// block is a paragraph, or a list where Items is set.
type block struct {
	Text  []span
	Items [][]span
}

// span is a run of text in one style.
type span struct {
	Text       string
	Code, Bold bool
	Href       string // of a section that the code names
}

// blocks reads the little Markdown that descriptions use: paragraphs, bullet
// lists, `code` and **bold**. Anything else stays as it is written.
func blocks(text string) []block {
	var all []block
	var open *block // what the next line may continue
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		item, bullet := strings.CutPrefix(line, "- ")
		if !bullet {
			item, bullet = strings.CutPrefix(line, "* ")
		}
		switch {
		case line == "":
			open = nil
		case bullet && len(all) > 0 && all[len(all)-1].Items != nil:
			open = &all[len(all)-1]
			open.Items = append(open.Items, []span{{Text: item}})
		case bullet:
			all = append(all, block{Items: [][]span{{{Text: item}}}})
			open = &all[len(all)-1]
		case open == nil:
			all = append(all, block{Text: []span{{Text: line}}})
			open = &all[len(all)-1]
		case open.Items != nil:
			open.Items[len(open.Items)-1][0].Text += " " + line
		default:
			open.Text[0].Text += " " + line
		}
	}
	for i, b := range all {
		if b.Items == nil {
			all[i].Text = spans(b.Text[0].Text)
		}
		for j, item := range b.Items {
			all[i].Items[j] = spans(item[0].Text)
		}
	}
	return all
}

// spans reads the styles within a paragraph. A mark without its partner is
// text.
func spans(text string) []span {
	var all []span
	plain := func(s string) {
		if s != "" {
			all = append(all, span{Text: s})
		}
	}
	from := 0
	for i := 0; i < len(text); {
		var mark string
		switch {
		case text[i] == '`':
			mark = "`"
		case strings.HasPrefix(text[i:], "**"):
			mark = "**"
		default:
			i++
			continue
		}
		inner, _, closed := strings.Cut(text[i+len(mark):], mark)
		if !closed || inner == "" || mark == "**" && strings.TrimSpace(inner) != inner {
			i += len(mark)
			continue
		}
		plain(text[from:i])
		all = append(all, span{Text: inner, Code: mark == "`", Bold: mark == "**"})
		i += len(inner) + 2*len(mark)
		from = i
	}
	plain(text[from:])
	return all
}
