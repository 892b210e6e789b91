package pages

import (
	"net/url"
	"slices"
	"strings"

	"atelier/internal/base/ids"
)

// home is where a browser goes that has nowhere else to go.
const home = "/account"

// destinations are the pages that a sign-in may lead to.
var destinations = []string{home, "/device", "/devices", "/invitation", "/tokens"}

// destination reads a next parameter, which anybody may have written into a
// link: it gives one of our own pages, with the query made anew, and home for
// everything else.
func destination(next string) string {
	path, query, _ := strings.Cut(next, "?")
	if !slices.Contains(destinations, path) && !isCompanyTokens(path) {
		return home
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return home
	}
	return withQuery(path, values)
}

func isCompanyTokens(path string) bool {
	id, ok := strings.CutPrefix(path, "/companies/")
	if !ok {
		return false
	}
	id, ok = strings.CutSuffix(id, "/tokens")
	return ok && ids.Valid(id)
}

func withQuery(path string, values url.Values) string {
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// signInFirst is where a browser goes that asked for a page without being
// signed in, and from there back to that page.
func (v *visit) signInFirst() string {
	page := "/signin"
	if v.query("intent") == "signup" {
		page = "/signup"
	}
	next := destination(v.r.URL.RequestURI())
	if next == home {
		return page
	}
	return withQuery(page, url.Values{"next": {next}})
}
