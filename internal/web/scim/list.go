package scim

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"atelier/internal/account/provisioning"
)

// query has the parameters of a list request (RFC 7644 section 3.4.2).
type query struct {
	filter     string
	start      int // position of the first result of the page, from 1
	count      int // maximum number of results on the page
	attributes []string
	excluded   []string
}

// readQuery reads the parameters of a list request from the URL.
func readQuery(r *http.Request) (q query, err error) {
	v := r.URL.Query()
	q.filter = v.Get("filter")
	q.attributes = splitList(v.Get("attributes"))
	q.excluded = splitList(v.Get("excludedAttributes"))
	if q.start, err = parseNumber(v.Get("startIndex"), 1); err != nil {
		return q, err
	}
	q.count, err = parseNumber(v.Get("count"), defaultCount)
	return q.clampPage(), err
}

// parseNumber parses a parameter that is a whole number. It returns
// defaultValue if the parameter is absent.
func parseNumber(text string, defaultValue int) (int, error) {
	if text == "" {
		return defaultValue, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, newProblem(invalidValue, "startIndex and count must be whole numbers.")
	}
	return int(n), nil
}

// clampPage moves the start and size of the page into the allowed range. A
// number below the minimum becomes the minimum (RFC 7644 section 3.4.2.4).
func (q query) clampPage() query {
	q.start = max(q.start, 1)
	q.count = min(max(q.count, 0), maxCount)
	return q
}

// selectionOf reads the query parameters that select the attributes of the
// response.
func (k *resourceType) selectionOf(r *http.Request) (selection, error) {
	v := r.URL.Query()
	return k.parseSelection(splitList(v.Get("attributes")), splitList(v.Get("excludedAttributes")))
}

func splitList(list string) (all []string) {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// readSearch reads the query from the body of a search request (RFC 7644
// section 3.4.3).
func readSearch(w http.ResponseWriter, r *http.Request) (q query, err error) {
	sent, err := readBody(w, r)
	if err != nil {
		return q, err
	}
	if sent, err = lowerKeys(sent); err != nil {
		return q, err
	}
	if err := checkMessage(sent, searchRequest); err != nil {
		return q, err
	}

	q = query{start: 1, count: defaultCount, attributes: stringsOf(sent["attributes"]), excluded: stringsOf(sent["excludedattributes"])}
	for name, into := range map[string]*int{"startindex": &q.start, "count": &q.count} {
		if v := sent[name]; v != nil {
			n, ok := v.(float64)
			if !ok || n != math.Trunc(n) || math.Abs(n) > math.MaxInt32 {
				return q, newProblem(invalidValue, "startIndex and count must be whole numbers.")
			}
			*into = int(n)
		}
	}

	var ok bool
	if q.filter, ok = sent["filter"].(string); !ok && sent["filter"] != nil {
		return q, newProblem(invalidFilter, "A filter must be a string.")
	}

	return q.clampPage(), nil
}

func stringsOf(v any) (all []string) {
	list, _ := v.([]any)
	for _, one := range list {
		if s, ok := one.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// finder returns one page of the resources that match a query, and the total
// number of matches.
type finder func(context.Context, provisioning.Client, query) ([]any, int, error)

// listResources responds with one page of resources.
func (s *Server) listResources(w http.ResponseWriter, r *http.Request, client provisioning.Client, q query, find finder) error {
	page, total, err := find(r.Context(), client, q)
	if err != nil {
		return err
	}
	return replyList(w, q.start, total, page)
}

func replyList(w http.ResponseWriter, start, total int, page []any) error {
	if page == nil {
		page = []any{}
	}
	return writeReply(w, http.StatusOK, object{
		"schemas":      []string{listResponse},
		"totalResults": total,
		"startIndex":   start,
		"itemsPerPage": len(page),
		"Resources":    page,
	})
}

// searchAll serves POST /.search. It lists users, then groups. A resource type
// that lacks an attribute of the filter has no matches (RFC 7644 section
// 3.4.2.1).
func (s *Server) searchAll(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	q, err := readSearch(w, r)
	if err != nil {
		return err
	}

	var page []any
	var refusal error
	total := 0
	failed := 0
	rest := q
	for _, find := range []finder{s.findUsers, s.findGroups} {
		rest.start = max(q.start-total, 1)
		rest.count = q.count - len(page)
		more, n, err := find(r.Context(), client, rest)
		if p, ok := errors.AsType[*problem](err); ok && p.scimType == invalidFilter {
			failed++
			refusal = err
			continue
		}
		if err != nil {
			return err
		}
		page = append(page, more...)
		total += n
	}
	if failed == len(resourceTypes) {
		return refusal
	}

	return replyList(w, q.start, total, page)
}
