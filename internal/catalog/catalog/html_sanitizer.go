package catalog

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// keptElements are the elements that an HTML leaf may have: those of running
// text. None of them loads, runs or submits anything.
var keptElements = strings.Fields(`a b blockquote br code dd dl dt em h1 h2 h3 h4 h5 h6 hr i kbd li ol p pre s small span strong
	sub sup table tbody td th thead tr u ul`)

// voidElements are those of them that have no end (HTML section 13.1.2).
var voidElements = []string{"br", "hr"}

// droppedElements go with all that is in them; of others that are not kept, the
// text stays.
var droppedElements = strings.Fields(`applet audio button canvas datalist form frameset iframe math noembed noframes noscript object
	plaintext script select style svg template textarea title video xmp`)

// sanitizeHTML makes HTML safe to be put into a page as it is: pages of clients
// show what a manifest says, and a manifest may come from anywhere. The result
// is written anew from tokens, well nested, with escaped text and no attributes
// but the address of a link. Sanitizing it again changes nothing.
func sanitizeHTML(text string) string {
	var b strings.Builder
	var open []string // elements that wait for their end
	dropped := ""     // the element that is being left out
	depth := 0        // of elements with that name

	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken { // the end: a reader of a string has no other error
			break
		}
		token := tokens.Token()

		switch {
		case dropped != "":
			switch {
			case token.Data != dropped:
			case kind == html.StartTagToken:
				depth++
			case kind == html.EndTagToken:
				depth--
			}
			if depth == 0 {
				dropped = ""
			}
		case kind == html.TextToken:
			b.WriteString(html.EscapeString(token.Data))
		case kind == html.StartTagToken && slices.Contains(droppedElements, token.Data):
			dropped = token.Data
			depth = 1
		case !slices.Contains(keptElements, token.Data):
		case slices.Contains(voidElements, token.Data):
			if kind != html.EndTagToken {
				b.WriteString("<" + token.Data + ">")
			}
		case kind == html.StartTagToken || kind == html.SelfClosingTagToken: // only void elements close themselves
			b.WriteString("<" + token.Data + linkAttributes(token) + ">")
			open = append(open, token.Data)
		case kind == html.EndTagToken && slices.Contains(open, token.Data):
			open = closeElements(&b, open, token.Data)
		}
	}
	for len(open) > 0 {
		open = closeElements(&b, open, open[0])
	}
	return b.String()
}

// closeElements ends the newest open element of a name and those within it.
func closeElements(b *strings.Builder, open []string, name string) []string {
	for {
		last := open[len(open)-1]
		open = open[:len(open)-1]
		b.WriteString("</" + last + ">")
		if last == name {
			return open
		}
	}
}

// linkAttributes writes the attributes of a link to somewhere on the web, ""
// for everything else.
func linkAttributes(token html.Token) string {
	if token.Data != "a" {
		return ""
	}
	for _, a := range token.Attr {
		if a.Key != "href" {
			continue
		}
		u, err := url.Parse(strings.TrimSpace(a.Val))
		if err != nil || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "mailto" {
			return ""
		}
		return ` href="` + html.EscapeString(u.String()) + `" rel="noopener noreferrer nofollow"`
	}
	return ""
}
