package pages

import (
	"net/url"
	"slices"
	"strings"

	"atelier/internal/base/ids"
)

// home is the page after signing in where no other was requested.
const home = "/account"

// destinations are the pages to which a sign-in may redirect.
var destinations = []string{home, "/device", "/devices", "/invitation", "/tokens"}

// destination returns the page that a next parameter names, with its query encoded
// anew. The parameter comes from a link that anyone can write, so only pages of this
// service are accepted; anything else becomes home.
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

// signInFirst returns the address of the sign-in page, with the requested page as the
// one to open afterwards.
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
