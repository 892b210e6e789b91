package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"atelier/internal/base/fault"
)

//go:embed templates/*.html
var templateFiles embed.FS

var (
	//go:embed static/style.css
	styleText []byte
	//go:embed static/page.js
	scriptText []byte
	//go:embed static/wall.jpg
	wallPicture []byte
)

// scriptedPages are the names of the pages that use page.js: they show times
// in the browser's time zone, or a secret to copy. The other pages run no
// script.
var scriptedPages = map[string]bool{"account": true, "device": true, "devices": true, "token": true, "tokens": true}

// pages returns the parsed templates by name, each combined with layout.html.
// They are parsed when they are first needed, because every command of the
// program has this package.
var pages = sync.OnceValue(parseTemplates)

func parseTemplates() map[string]*template.Template {
	frame := template.Must(template.New("layout").Funcs(template.FuncMap{
		"stamp": formatTime, "iso": formatISOTime, "amount": formatAmount, "browser": browserName,
	}).ParseFS(templateFiles, "templates/layout.html"))
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is a valid constant
	}
	all := map[string]*template.Template{}
	for _, name := range names {
		base := strings.TrimSuffix(path.Base(name), ".html")
		all[base] = template.Must(template.Must(frame.Clone()).ParseFS(templateFiles, name))
	}
	return all
}

// page is the data of layout.html and of the page's template.
type page struct {
	v       *pageRequest
	focused bool

	// Script reports whether the page includes page.js.
	Script bool
	// Data is the data of the page's own template.
	Data any
	// Alert is an error message above the form, or "".
	Alert string
	// Problems are the error messages of form fields, by field name.
	Problems map[string]string
}

// showPage responds with a page and status 200.
func (v *pageRequest) showPage(name string, data any) error {
	return v.renderPage(http.StatusOK, name, data, nil)
}

// renderPage responds with a page and the error messages of f, which may be
// nil. The page is rendered completely before the response begins.
func (v *pageRequest) renderPage(status int, name string, data any, f *fault.Error) error {
	p := &page{v: v, Script: scriptedPages[name], Data: data, Problems: map[string]string{}}
	if f != nil {
		p.Alert = f.Message
		for _, field := range f.Fields {
			p.Problems[field.Path] = field.Message
		}
	}
	var b bytes.Buffer
	if err := pages()[name].ExecuteTemplate(&b, "layout", p); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	h := v.w.Header()
	if f != nil {
		setRetryAfter(h, f)
	}
	if p.Script {
		h.Set("Content-Security-Policy", scriptPolicy)
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	v.w.Write(b.Bytes())
	return nil
}

// SignedInEmail returns the e-mail address of the signed-in person, or "".
func (p *page) SignedInEmail() string { return p.v.session.Person.Email }

// FormToken returns the CSRF token for forms that are submitted to path.
func (p *page) FormToken(path string) string { return p.v.csrfToken(path) }

// tab is a link in the page navigation.
type tab struct {
	Href, Label string
	Here        bool
}

// NavigationTab returns a link in the page navigation, marked if it is the
// current page.
func (p *page) NavigationTab(href, label string) tab { return tab{href, label, p.v.r.URL.Path == href} }

// DoneMessage returns the message about the action that led to this page,
// which the query parameter done names.
func (p *page) DoneMessage() string {
	what := p.v.queryValue("done")
	if what == "sent" && p.v.Accounts.Settings.NoMail {
		return "The link has been created, but this installation sends no mail: it is written to the service's log. Ask the operator of the service for it."
	}
	return doneMessages[what]
}

// NoMail reports whether the installation sends no e-mail.
func (p *page) NoMail() bool { return p.v.Accounts.Settings.NoMail }

// doneMessages are the messages about finished actions. The query parameter
// done contains only the key, so that a link cannot show arbitrary text on a
// page.
var doneMessages = map[string]string{
	"signed-out": "You are signed out.",
	"farewell":   "Your account is deleted. Its data is being erased.",
	"everywhere": "You are signed out everywhere. Access tokens keep working.",
	"reset":      "Your password was changed. Sign in with the new one.",
	"password":   "Your password was changed. You are signed out everywhere else.",
	"sent":       "The link has been sent to you.",
	"revoked":    "The device is signed out.",
	"ended":      "The browser is signed out.",
	"deleted":    "The token is deleted. It can no longer be used.",
	"joined":     "You have joined.",
}

// field is an input field of a form.
type field struct {
	Name, Label, Kind, Autocomplete string
	Value, Hint, Problem            string
	Focus                           bool
	Fixed                           bool // read-only
}

// DescribedBy returns the HTML ids of the elements that describe the field,
// for screen readers.
func (f field) DescribedBy() string {
	var ids []string
	if f.Problem != "" {
		ids = append(ids, f.Name+"-problem")
	}
	if f.Hint != "" {
		ids = append(ids, f.Name+"-hint")
	}
	return strings.Join(ids, " ")
}

// InputField returns an input field with the submitted value, except for
// passwords. The first field with a problem gets the focus.
func (p *page) InputField(name, label, kind, autocomplete string) field {
	f := field{
		Name:         name,
		Label:        label,
		Kind:         kind,
		Autocomplete: autocomplete,
		Problem:      p.Problems[name],
	}
	if kind != "password" {
		f.Value = p.SubmittedValue(name)
	}
	if autocomplete == "new-password" && f.Problem == "" {
		f.Hint = "At least 8 characters. Several words make a strong password."
	}
	if f.Problem != "" && !p.focused {
		p.focused = true
		f.Focus = true
	}
	return f
}

// FirstField returns the first input field of a form. It gets the focus unless
// another field has a problem.
func (p *page) FirstField(name, label, kind, autocomplete string) field {
	f := p.InputField(name, label, kind, autocomplete)
	if len(p.Problems) == 0 && !p.focused {
		p.focused = true
		f.Focus = true
	}
	return f
}

// EmailField returns the input field for the e-mail address. If the address is
// known from an invitation, the field is read-only, because the invitation is
// for that address only.
func (p *page) EmailField(known string) field {
	if known == "" {
		return p.FirstField("email", "E-mail address", "email", "username")
	}
	f := p.InputField("email", "E-mail address", "email", "username")
	f.Value = known
	f.Fixed = true
	if f.Problem == "" {
		f.Hint = "The invitation is for this address."
	}
	return f
}

// SubmittedValue returns the submitted value of a form field.
func (p *page) SubmittedValue(name string) string { return p.v.form.Get(name) }

// FieldProblem returns the error message of a form field, or "".
func (p *page) FieldProblem(name string) string { return p.Problems[name] }

// timeAgo is a time and how long ago it was, in words.
type timeAgo struct {
	At  time.Time
	Ago string
}

// TimeAgo returns a time and how long ago it was, such as "3 minutes ago".
func (p *page) TimeAgo(t time.Time) timeAgo {
	d := p.v.Now().Sub(t)
	if d < 5*time.Second {
		return timeAgo{t, "just now"}
	}
	return timeAgo{t, formatDuration(d) + " ago"}
}
