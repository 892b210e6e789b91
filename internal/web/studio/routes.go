package studio

import (
	"regexp"
	"slices"
	"strings"
)

// Paths are the addresses of the studio's pages. All of them respond with
// index.html, whose script shows the page. web/src/routes.ts has the same list.
var Paths = []string{
	"/",
	"/create/{tool_id}",
	"/library",
	"/library/{library_id}",
	"/boards",
	"/boards/{board_id}",
	"/flows",
	"/flows/{flow_id}",
	"/reports",
	"/you",
	"/you/{part}",
	"/people",
	"/people/{team_id}",
	"/people/{team_id}/{part}",
	"/operator",
	"/operator/{part}",
	"/welcome",
}

// WelcomePath is the address of the page for the first person of an
// installation.
const WelcomePath = "/welcome"

// parameter matches the values of parameters in a path: ids and words. The id of
// a library item contains a colon, which browsers may encode.
var parameter = regexp.MustCompile(`^([A-Za-z0-9_:-]|%3[Aa]){1,64}$`)

// IsPage reports whether path, as it stands in a URL, is the address of a
// studio page whose parameters can be ids or words. Anyone can write a link
// with a path to which a sign-in redirects, so the path must not contain
// anything that a browser could read as another address.
func IsPage(path string) bool {
	segments := strings.Split(path, "/")
	return slices.ContainsFunc(Paths, func(pattern string) bool {
		return slices.EqualFunc(segments, strings.Split(pattern, "/"), matchesSegment)
	})
}

// matchesSegment reports whether a segment of a path matches a segment of one
// of Paths.
func matchesSegment(segment, pattern string) bool {
	if strings.HasPrefix(pattern, "{") {
		return parameter.MatchString(segment)
	}
	return segment == pattern
}
