package pages

import (
	"net/url"
	"slices"
	"strings"

	"atelier/internal/base/ids"
	"atelier/internal/web/studio"
)

const (
	// homePath is the URL path of the page that opens after signing in if no
	// other page was requested: the studio.
	homePath = "/"
	// accountPath is the URL path of the account page.
	accountPath = "/account"
)

// destinations are the URL paths to which a sign-in may redirect, in addition
// to the pages of the studio and of company tokens.
var destinations = []string{accountPath, "/account/delete", "/device", "/devices", "/invitation", authorizePath, "/password", "/tokens"}

// safeDestination returns the page that the query parameter next names, with
// its query encoded again. Anyone can write a link with this parameter, so
// only pages of this service are accepted; any other value becomes homePath.
func safeDestination(next string) string {
	path, query, _ := strings.Cut(next, "?")
	if !slices.Contains(destinations, path) && !studio.IsPage(path) && !isCompanyTokens(path) {
		return homePath
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return homePath
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

// signInFirst returns the URL of the sign-in page, which opens the requested
// page afterwards.
func (v *pageRequest) signInFirst() string {
	page := "/signin"
	if v.queryValue("intent") == "signup" {
		page = "/signup"
	}
	next := safeDestination(v.r.URL.RequestURI())
	if next == homePath {
		return page
	}
	return withQuery(page, url.Values{"next": {next}})
}
