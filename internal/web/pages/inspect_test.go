package pages_test

import (
	"strings"

	"golang.org/x/net/html"
)

// headers are on every page and every redirect.
var headers = map[string]string{
	"X-Frame-Options":              "DENY",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
}

// The policies of pages without and with a script.
const (
	plainPolicy  = "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	scriptPolicy = plainPolicy + "; script-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"
)

// inspectScripts checks that a page includes its script exactly if it needs
// one, that the script is page.js, and that the policy allows it.
func (a *answer) inspectScripts(path string) {
	a.t.Helper()
	var wants bool
	var scripts int
	for n := range a.doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		wants = wants || n.Data == "time" || has(n, "data-copy")
		if n.Data == "script" {
			scripts++
			if attr(n, "src") != "/page.js" || n.FirstChild != nil {
				a.t.Errorf("%s: a script that is not ours: %v", path, n.Attr)
			}
		}
	}
	policy := plainPolicy
	if scripts > 0 {
		policy = scriptPolicy
	}
	if wants && scripts == 0 || scripts > 1 {
		a.t.Errorf("%s: %d scripts", path, scripts)
	}
	if strings.HasPrefix(path, "/oauth/authorize") && a.status == 200 { // the form leads to the app
		policy = strings.Replace(policy, "form-action 'self'", "form-action 'self' https://app.example", 1)
	}
	if got := a.header.Values("Content-Security-Policy"); len(got) != 1 || got[0] != policy {
		a.t.Errorf("%s: policy = %q, want %q", path, got, policy)
	}
}

// inspect checks the requirements of every page in every test: the headers, and
// that people with a screen reader or without scripts can use the page.
func (a *answer) inspect(path string) {
	a.t.Helper()
	for name, want := range headers {
		if got := a.header.Values(name); len(got) != 1 || got[0] != want {
			a.t.Errorf("%s: %s = %q, want %q", path, name, got, want)
		}
	}
	if a.body == "" {
		return
	}
	a.inspectScripts(path)
	if got := a.header.Get("Content-Type"); got != "text/html; charset=utf-8" {
		a.t.Errorf("%s: type = %q", path, got)
	}
	ids, labels := map[string]bool{}, map[string]bool{}
	tags := map[string]int{}
	level := 0
	for n := range a.doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		tags[n.Data]++
		if id := attr(n, "id"); id != "" && ids[id] {
			a.t.Errorf("%s: two elements have the id %s", path, id)
		} else if id != "" {
			ids[id] = true
		}
		if n.Data == "label" {
			labels[attr(n, "for")] = true
		}
		if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
			if next := int(n.Data[1] - '0'); next > level+1 {
				a.t.Errorf("%s: h%d after h%d", path, next, level)
			} else {
				level = next
			}
		}
		for _, at := range n.Attr {
			address := at.Key == "href" || at.Key == "src" || at.Key == "action" || at.Key == "formaction"
			if strings.HasPrefix(at.Key, "on") || at.Key == "style" || address && (at.Val == "" || at.Val[0] != '/' || strings.HasPrefix(at.Val, "//")) {
				a.t.Errorf("%s: <%s %s=%q>", path, n.Data, at.Key, at.Val)
			}
		}
	}
	for n := range a.doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		for id := range strings.FieldsSeq(attr(n, "aria-describedby")) {
			if !ids[id] {
				a.t.Errorf("%s: nothing has the id %s", path, id)
			}
		}
		visible := n.Data == "select" || n.Data == "input" && attr(n, "type") != "hidden"
		if visible && (!labels[attr(n, "id")] || !has(n, "autocomplete") && n.Data == "input") {
			a.t.Errorf("%s: %s has no label or does not say what it is for", path, attr(n, "name"))
		}
		if attr(n, "type") == "password" && attr(n, "value") != "" {
			a.t.Errorf("%s: the page has a password", path)
		}
		if n.Data == "form" && attr(n, "method") == "post" && a.form(attr(n, "action")).Get("form_token") == "" {
			a.t.Errorf("%s: the form to %s has no token", path, attr(n, "action"))
		}
		if n.Data == "html" && attr(n, "lang") != "en" {
			a.t.Errorf("%s: the page has no language", path)
		}
	}
	if tags["h1"] != 1 || tags["main"] != 1 || tags["title"] != 1 || tags["style"] != 0 || tags["iframe"] != 0 || tags["base"] != 0 || tags["img"] != 0 || tags["meta"] != 4 {
		a.t.Errorf("%s: elements = %v", path, tags)
	}
}
