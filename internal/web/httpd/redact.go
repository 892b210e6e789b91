package httpd

import (
	"strings"

	"atelier/internal/base/ids"
)

// Limits on the parts of a URL that are logged.
const (
	maxWord     = 24
	maxSegments = 12
	redacted    = "…"
)

// redactPath returns a URL path for the log. People paste secrets into URLs,
// and links in e-mails contain secrets, so the log shows only segments that
// cannot be secret: the fixed segments of the route, ids where the route has a
// parameter, and plain words. File names chosen by users are not shown.
func redactPath(path, route string) string {
	if path == route { // most requests, because the route has no parameters
		return path
	}
	segments := strings.Split(path, "/")
	fixed := strings.Split(route, "/")
	for i, segment := range segments {
		if i == maxSegments {
			segments = append(segments[:i], redacted)
			break
		}
		known := ""
		if i < len(fixed) {
			known = fixed[i]
		}
		if known == "{name}" { // a file name chosen by a user
			segments[i] = redacted
			continue
		}
		isID := strings.HasPrefix(known, "{") && ids.Valid(segment)
		if segment != known && segment != "" && !isID && !isWord(segment) {
			segments[i] = redacted
		}
	}
	return strings.Join(segments, "/")
}

// isWord reports whether text is short and consists of lower-case letters,
// dashes, dots and underscores, or is an API version such as v2. Prefixes of
// this service's credentials are not words.
func isWord(text string) bool {
	if len(text) > maxWord || strings.HasPrefix(text, "atl_") || strings.HasPrefix(text, "whsec_") {
		return false
	}
	if digits, ok := strings.CutPrefix(text, "v"); ok && isNumber(digits) && len(digits) <= 2 {
		return true
	}
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && r != '-' && r != '.' && r != '_'
	})
}

func isNumber(text string) bool {
	return text != "" && len(text) <= 9 && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// loggedParameters are the query parameters whose values are logged, each with
// a function that checks the form of the value. Other values may be secret,
// such as device_code and the signatures of URLs.
var loggedParameters = map[string]func(value string) bool{
	"limit":      isNumber,
	"tool_id":    ids.Valid,
	"team_id":    ids.Valid,
	"company_id": ids.Valid,
	"tool_tag":   areWords,
	"status":     areWords,
	"group_by":   areWords,
	"format":     areWords,
	"start_utc":  isTime,
	"end_utc":    isTime,
}

// redactQuery returns a URL query for the log: names that are plain words, and
// the values of loggedParameters.
func redactQuery(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, given := strings.Cut(part, "=")
		isPlain := loggedParameters[name]
		switch {
		case isPlain != nil && (!given || isPlain(value)):
		case isWord(name):
			parts[i] = name + "=" + redacted
		default:
			parts[i] = redacted
		}
	}
	return strings.Join(parts, "&")
}

// areWords reports whether a value is a comma-separated list of words (see
// isWord), in upper or lower case.
func areWords(value string) bool {
	for word := range strings.SplitSeq(strings.ReplaceAll(value, "%2C", ","), ",") {
		if !isWord(strings.ToLower(word)) {
			return false
		}
	}
	return len(value) <= 4*maxWord
}

// isTime reports whether a value looks like a date or time.
func isTime(value string) bool {
	const date = "2006-01-02"
	if len(value) < len(date) || len(value) > 40 || value[4] != '-' || value[7] != '-' {
		return false
	}
	return !strings.ContainsFunc(value, func(r rune) bool {
		return (r < '0' || r > '9') && !strings.ContainsRune("-:.+%TZA", r)
	})
}
