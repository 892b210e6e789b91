package boards

import (
	"net/http"
	"strconv"
	"strings"

	"atelier/internal/base/fault"
	"atelier/internal/board"
)

// maxTags is the maximum number of entity tags in an If-Match header.
const maxTags = 100

// parseIfMatch parses the If-Match header (RFC 9110 section 13.1.1). Weak tags
// and tags that are not revisions match no board.
func parseIfMatch(header http.Header) (board.Match, error) {
	lines, isGiven := header["If-Match"]
	if !isGiven {
		return board.Match{}, nil
	}
	invalid := fault.New(fault.Invalid, "The If-Match header is not valid.").Field("If-Match", `Must be * or a list of entity tags, such as "12".`)
	text := strings.Trim(strings.Join(lines, ","), " \t")
	if text == "*" {
		return board.Match{}, nil // every existing board matches; a missing board gets NOT_FOUND anyway
	}

	m := board.Match{Strict: true}
	for tags := 0; ; {
		text = strings.TrimLeft(text, " \t,") // a list may have empty elements
		if text == "" {
			if tags == 0 {
				return board.Match{}, invalid
			}
			return m, nil
		}
		tag, rest, ok := cutEntityTag(text)
		if rest = strings.TrimLeft(rest, " \t"); !ok || rest != "" && rest[0] != ',' || tags == maxTags {
			return board.Match{}, invalid
		}
		if n, err := strconv.ParseInt(tag, 10, 64); err == nil && revisionTag(n) == `"`+tag+`"` {
			m.Revisions = append(m.Revisions, n)
		}
		text = rest
		tags++
	}
}

// cutEntityTag splits the first entity tag from a list of tags. It returns ""
// for a weak tag.
func cutEntityTag(text string) (tag, rest string, ok bool) {
	text, isWeak := strings.CutPrefix(text, "W/")
	if text, ok = strings.CutPrefix(text, `"`); !ok {
		return "", "", false
	}
	if tag, rest, ok = strings.Cut(text, `"`); !ok {
		return "", "", false
	}
	for i := range len(tag) {
		if c := tag[i]; c <= ' ' || c == 0x7f {
			return "", "", false
		}
	}
	if isWeak {
		tag = ""
	}
	return tag, rest, true
}

// revisionTag returns the ETag of a board revision.
func revisionTag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

// setRevision sets the ETag header to the revision of the board after this
// request.
func setRevision(w http.ResponseWriter, revision int64) {
	w.Header()["Etag"] = []string{revisionTag(revision)}
}
