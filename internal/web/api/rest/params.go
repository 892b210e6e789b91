package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
)

// params reads query parameters and collects every problem.
type params struct {
	values url.Values
	err    *fault.Error
}

func paramsOf(r *http.Request) *params {
	v, err := url.ParseQuery(r.URL.RawQuery)
	for name, all := range v {
		// A parameter given twice with the same value counts once.
		if !slices.ContainsFunc(all, func(value string) bool { return value != all[0] }) {
			v[name] = all[:1]
		}
	}

	p := &params{values: v}
	if err != nil {
		p.problem("query", "The query is not well encoded.")
	}
	return p
}

func (p *params) problem(path, message string) {
	if p.err == nil {
		p.err = fault.New(fault.Invalid, "Some parameters are not valid.")
	}
	p.err = p.err.Field(path, message)
}

// failed gives the problems as one error.
func (p *params) failed() error {
	if p.err == nil {
		return nil
	}
	return p.err
}

// one gives a parameter that may be given once; "" is as good as absent.
func (p *params) one(name string) string {
	switch all := p.values[name]; len(all) {
	case 0:
		return ""
	case 1:
		return all[0]
	default:
		p.problem(name, "Give this parameter once.")
		return ""
	}
}

// limit reads the size of a page.
func (p *params) limit(def, most int) int {
	text := p.one("limit")
	if text == "" && !p.values.Has("limit") {
		return def
	}
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text || n < 1 || n > most {
		p.problem("limit", fmt.Sprintf("Must be a whole number from 1 to %d.", most))
		return def
	}
	return n
}

// id reads a parameter that is an id, "" for none.
func (p *params) id(name string) string {
	s := p.one(name)
	if s != "" && !ids.Valid(s) {
		p.problem(name, "This is not an id.")
		return ""
	}
	return s
}
