package pages

import "strings"

// Entry is a route as tests see it.
type Entry struct {
	Method, Path string
	SignedIn     bool // the route requires a session
}

// Table lists every route.
func Table() []Entry {
	var all []Entry
	for _, rt := range (&server{}).listRoutes() {
		all = append(all, Entry{rt.method, strings.TrimSuffix(rt.path, "{$}"), rt.audience == sessionRequired})
	}
	return all
}

// IsFile reports whether the pages serve a static file at path.
func IsFile(path string) bool { return staticFiles()[path] != nil }

// Internals that tests use.
var (
	Destination = safeDestination
	Words       = formatDuration
	WaitFor     = formatWait
	Amount      = formatAmount
	Browser     = browserName
)

// Token returns the CSRF token of a form to path for a browser with this
// secret.
func Token(key []byte, secret, path string) string {
	return (&server{Parts: Parts{Key: key}}).computeMAC(secret, path)
}
