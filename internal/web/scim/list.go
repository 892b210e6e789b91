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

// query is what a list is asked for (RFC 7644 section 3.4.2).
type query struct {
	filter               string
	start, count         int
	attributes, excluded []string
}

// readQuery reads the parameters of a list.
func readQuery(r *http.Request) (q query, err error) {
	v := r.URL.Query()
	q.filter = v.Get("filter")
	q.attributes = split(v.Get("attributes"))
	q.excluded = split(v.Get("excludedAttributes"))
	if q.start, err = number(v.Get("startIndex"), 1); err != nil {
		return q, err
	}
	q.count, err = number(v.Get("count"), defCount)
	return q.bounded(), err
}

// number reads a parameter that is a whole number.
func number(text string, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, refuse(invalidValue, "startIndex and count must be whole numbers.")
	}
	return int(n), nil
}

// bounded keeps a page within what there can be. Numbers below count as the
// least (RFC 7644 section 3.4.2.4).
func (q query) bounded() query {
	q.start = max(q.start, 1)
	q.count = min(max(q.count, 0), maxCount)
	return q
}

// selectsBy reads the parameters that choose attributes.
func (k *kind) selectsBy(r *http.Request) (selection, error) {
	v := r.URL.Query()
	return k.selects(split(v.Get("attributes")), split(v.Get("excludedAttributes")))
}

func split(list string) (all []string) {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// readSearch reads the body of a search (RFC 7644 section 3.4.3).
func readSearch(w http.ResponseWriter, r *http.Request) (q query, err error) {
	sent, err := body(w, r)
	if err != nil {
		return q, err
	}
	if sent, err = folded(sent); err != nil {
		return q, err
	}
	if err := message(sent, searchRequest); err != nil {
		return q, err
	}
	q = query{start: 1, count: defCount, attributes: texts(sent["attributes"]), excluded: texts(sent["excludedattributes"])}
	for name, into := range map[string]*int{"startindex": &q.start, "count": &q.count} {
		if v := sent[name]; v != nil {
			n, ok := v.(float64)
			if !ok || n != math.Trunc(n) || math.Abs(n) > math.MaxInt32 {
				return q, refuse(invalidValue, "startIndex and count must be whole numbers.")
			}
			*into = int(n)
		}
	}
	var ok bool
	if q.filter, ok = sent["filter"].(string); !ok && sent["filter"] != nil {
		return q, refuse(invalidFilter, "A filter must be a text.")
	}
	return q.bounded(), nil
}

func texts(v any) (all []string) {
	list, _ := v.([]any)
	for _, one := range list {
		if s, ok := one.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// finder gives a page of resources, and how many there are.
type finder func(context.Context, provisioning.Client, query) ([]any, int, error)

// list writes the page that was asked for.
func (s *Server) list(w http.ResponseWriter, r *http.Request, from provisioning.Client, q query, find finder) error {
	page, total, err := find(r.Context(), from, q)
	if err != nil {
		return err
	}
	return replyList(w, q.start, total, page)
}

func replyList(w http.ResponseWriter, start, total int, page []any) error {
	if page == nil {
		page = []any{}
	}
	return reply(w, http.StatusOK, object{
		"schemas": []string{listResponse}, "totalResults": total, "startIndex": start, "itemsPerPage": len(page), "Resources": page,
	})
}

// searchAll looks through users and then groups. Of a kind that has not what the
// filter asks for nothing is meant (RFC 7644 section 3.4.2.1).
func (s *Server) searchAll(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
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
		more, n, err := find(r.Context(), from, rest)
		if p, ok := errors.AsType[*problem](err); ok && p.scimType == invalidFilter {
			failed = failed + 1
			refusal = err
			continue
		}
		if err != nil {
			return err
		}
		page = append(page, more...)
		total = total + n
	}
	if failed == len(kinds) {
		return refusal
	}
	return replyList(w, q.start, total, page)
}
