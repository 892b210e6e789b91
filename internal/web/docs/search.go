package docs

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"atelier/internal/web/httpd"
)

// entry is a section of a page in the search index.
type entry struct {
	Page    string `json:"page"`
	Heading string `json:"heading"` // empty: the beginning of the page
	Path    string `json:"path"`
	Text    string `json:"text"`
}

// maxQuery is the number of bytes of a query that are used.
const maxQuery = 200

// maxResults is the number of results that a search returns.
const maxResults = 30

// serveSearch handles GET /docs/search, the form at the top of every page. The
// script of the pages searches in the browser instead, by the same rules.
func (s *site) serveSearch(w http.ResponseWriter, r *http.Request) {
	httpd.RecordOf(r.Context()).Route = root + "/search"
	query := strings.TrimSpace(shorten(strings.ToValidUTF8(r.URL.Query().Get("q"), ""), maxQuery))
	s.respond(w, r, http.StatusOK, view{
		Title: "Search",
		Query: query,
		Body:  renderResults("Search", query, searchEntries(s.index, query)),
	})
}

// searchEntries returns the sections that contain every word of the query, the
// best first. Words match within longer ones, and case does not matter.
func searchEntries(index []entry, query string) []entry {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil
	}
	type match struct {
		entry
		score int
	}
	var found []match
	for _, e := range index {
		if score := scoreEntry(e, words); score > 0 {
			found = append(found, match{e, score})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(b.score, a.score) })

	var results []entry
	for _, m := range found[:min(len(found), maxResults)] {
		results = append(results, m.entry)
	}
	return results
}

// scoreEntry returns how well a section matches, and 0 if a word is missing.
// page.js has the same rules.
func scoreEntry(e entry, words []string) int {
	page := strings.ToLower(e.Page)
	heading := strings.ToLower(e.Heading)
	text := strings.ToLower(e.Text)
	score := 0
	for _, word := range words {
		points := 0
		if strings.Contains(heading, word) {
			points += 12
		}
		if strings.Contains(page, word) {
			points += 6
			if heading == "" {
				points += 12
			}
		}
		points += min(strings.Count(text, word), 4)
		if points == 0 {
			return 0
		}
		score += points
	}
	return score
}

// renderResults renders the results of a search.
func renderResults(title, query string, results []entry) template.HTML {
	var out strings.Builder
	fmt.Fprintf(&out, "<h1>%s</h1>\n", html.EscapeString(title))
	switch {
	case query == "":
		out.WriteString("<p>Write a word into the field at the top of the page.</p>\n")
	case len(results) == 0:
		fmt.Fprintf(&out, "<p>No page contains “%s”.</p>\n", html.EscapeString(query))
	default:
		fmt.Fprintf(&out, "<p>Sections with “%s”:</p>\n<ol class=\"results\">\n", html.EscapeString(query))
		for _, e := range results {
			name := e.Page
			if e.Heading != "" {
				name += " › " + e.Heading
			}
			fmt.Fprintf(&out, "<li><a href=\"%s\">%s</a><p>%s</p></li>\n",
				html.EscapeString(e.Path), html.EscapeString(name), html.EscapeString(excerpt(e.Text, query)))
		}
		out.WriteString("</ol>\n")
	}
	return template.HTML(out.String()) //nolint:gosec // every value is escaped above
}

// excerpt returns the part of a text around the first word of the query that
// occurs in it.
func excerpt(text, query string) string {
	const before, length = 60, 200
	start := 0
	lower := strings.ToLower(text)
	for _, word := range strings.Fields(strings.ToLower(query)) {
		if at := strings.Index(lower, word); at >= 0 && len(lower) == len(text) {
			start = max(at-before, 0)
			break
		}
	}
	for start > 0 && !utf8.RuneStart(text[start]) {
		start--
	}
	part := shorten(text[start:], length)
	if len(part) < len(text)-start {
		part += "…"
	}
	if start > 0 {
		part = "…" + part
	}
	return part
}

// shorten returns the beginning of a text, at most n bytes of whole characters.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
