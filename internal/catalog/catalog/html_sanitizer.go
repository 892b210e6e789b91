package catalog

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// keptElements are the HTML elements that are allowed in a form. They only
// format text: they cannot load, run or submit anything.
var keptElements = strings.Fields(`a b blockquote br code dd dl dt em h1 h2 h3 h4 h5 h6 hr i kbd li ol p pre s small span strong
	sub sup table tbody td th thead tr u ul`)

// voidElements are the allowed elements without an end tag (HTML, section
// 13.1.2).
var voidElements = []string{"br", "hr"}

// droppedElements are removed with their content. Other elements that are not
// allowed are replaced by their content.
var droppedElements = strings.Fields(`applet audio button canvas datalist form frameset iframe math noembed noframes noscript object
	plaintext script select style svg template textarea title video xmp`)

// sanitizeHTML makes HTML from a manifest safe to insert into web pages, since
// a manifest may come from an untrusted author. The result is rebuilt from
// tokens. It is well nested, its text is escaped, and links have only a URL and
// a fixed rel attribute. Sanitizing it again changes nothing.
func sanitizeHTML(text string) string {
	var b strings.Builder
	var open []string // names of the open elements
	dropped := ""     // name of the dropped element that contains the current token
	depth := 0        // number of open elements with that name

	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken { // end of the text; reading a string cannot fail
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
		case kind == html.StartTagToken || kind == html.SelfClosingTagToken: // HTML ignores the slash of a self-closing tag
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

// closeElements closes the innermost open element with the given name, and all
// elements in it. It returns the elements that are still open.
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

// linkAttributes returns the attributes of a link to an https, http or mailto
// URL. It returns "" for all other tags.
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
