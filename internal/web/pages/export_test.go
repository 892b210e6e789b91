package pages

import "strings"

// Entry is a route as tests see it.
type Entry struct {
	Method, Path string
	SignedIn     bool // whether it is for people who are
}

// Table lists every route.
func Table() []Entry {
	var all []Entry
	for _, rt := range (&server{}).listRoutes() {
		all = append(all, Entry{rt.method, strings.TrimSuffix(rt.path, "{$}"), rt.audience == sessionRequired})
	}
	return all
}

// What tests look into.
var (
	Destination = safeDestination
	Words       = formatDuration
	WaitFor     = formatWait
	Amount      = formatAmount
	Browser     = browserName
)

// Token is what a form to path carries where secret is the browser's.
func Token(key []byte, secret, path string) string {
	return (&server{Parts: Parts{Key: key}}).computeMAC(secret, path)
}
