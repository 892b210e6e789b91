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
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/web/httpd"
)

//go:embed pages/*.html
var files embed.FS

// file is served as it is.
type file struct {
	mediaType string
	content   []byte
}

var (
	//go:embed files/style.css
	styleText []byte
	//go:embed files/page.js
	scriptText []byte
	//go:embed files/favicon.svg
	iconText []byte
)

var (
	styleFile  = file{"text/css; charset=utf-8", styleText}
	scriptFile = file{"text/javascript; charset=utf-8", scriptText}
	iconFile   = file{"image/svg+xml", iconText}
)

// scripted are the pages that have something for page.js to do: times to show
// by the clock of the browser, or a secret to copy. The others run no script.
var scripted = map[string]bool{"account": true, "device": true, "devices": true, "token": true, "tokens": true}

// pages are the templates by name, each in the frame of layout.html.
var pages = parse()

func parse() map[string]*template.Template {
	frame := template.Must(template.New("layout").Funcs(template.FuncMap{
		"stamp": stamp, "iso": iso, "amount": amount, "browser": browser,
	}).ParseFS(files, "pages/layout.html"))
	names, err := fs.Glob(files, "pages/*.html")
	if err != nil {
		panic(err) // the pattern is a good one
	}
	all := map[string]*template.Template{}
	for _, name := range names {
		base := strings.TrimSuffix(path.Base(name), ".html")
		all[base] = template.Must(template.Must(frame.Clone()).ParseFS(files, name))
	}
	return all
}

// serve answers with the file.
func (f file) serve(v *visit) error {
	h := v.w.Header()
	h.Set("Content-Type", f.mediaType)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", httpd.ETag(f.content))
	httpd.ServeBytes(v.w, v.r, f.content)
	return nil
}

// page is what a template is rendered with.
type page struct {
	v       *visit
	focused bool

	// Script is whether the page has page.js.
	Script bool
	// Data is what the page is about.
	Data any
	// Alert is what went wrong, "" for nothing.
	Alert string
	// Problems are what is wrong with single fields.
	Problems map[string]string
}

// show answers with a page.
func (v *visit) show(name string, data any) error {
	return v.answer(http.StatusOK, name, data, nil)
}

// answer renders a page whole before any of it is sent.
func (v *visit) answer(status int, name string, data any, f *fault.Error) error {
	p := &page{v: v, Script: scripted[name], Data: data, Problems: map[string]string{}}
	if f != nil {
		p.Alert = f.Message
		for _, field := range f.Fields {
			p.Problems[field.Path] = field.Message
		}
	}
	var b bytes.Buffer
	if err := pages[name].ExecuteTemplate(&b, "layout", p); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	h := v.w.Header()
	if f != nil {
		retryAfter(h, f)
	}
	if p.Script {
		h.Set("Content-Security-Policy", scriptPolicy)
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	v.w.Write(b.Bytes())
	return nil
}

// Email is the address of whoever is signed in, "" for nobody.
func (p *page) Email() string { return p.v.session.Person.Email }

// Token is what a form to path carries.
func (p *page) Token(path string) string { return p.v.token(path) }

// tab is a link of the navigation.
type tab struct {
	Href, Label string
	Here        bool
}

// Tab makes a link of the navigation.
func (p *page) Tab(href, label string) tab { return tab{href, label, p.v.r.URL.Path == href} }

// Done is what was just done, where the address says so.
func (p *page) Done() string {
	what := p.v.query("done")
	if what == "sent" && p.v.Accounts.Settings.NoMail {
		return "The link was made, but this installation sends no mail: it is printed where the service logs. Ask whoever runs it for the link."
	}
	return done[what]
}

// NoMail is whether the installation has no mail server.
func (p *page) NoMail() bool { return p.v.Accounts.Settings.NoMail }

// done are the words for what was done before a page is shown. The address
// names one of them, so that nobody can put words of their own on a page.
var done = map[string]string{
	"signed-out": "You are signed out.",
	"farewell":   "Your account is deleted. What it held is being erased. Goodbye.",
	"everywhere": "You are signed out everywhere. Access tokens go on working.",
	"reset":      "Your password was changed. Sign in with the new one.",
	"password":   "Your password was changed. You are signed out everywhere else.",
	"sent":       "The link is on its way to you.",
	"revoked":    "The device is signed out.",
	"ended":      "The browser is signed out.",
	"deleted":    "The token is deleted. Whoever has it can't use it any more.",
	"joined":     "Welcome. You are in.",
}

// field is one input of a form.
type field struct {
	Name, Label, Kind, Autocomplete string
	Value, Hint, Problem            string
	Focus                           bool
	Fixed                           bool // the value can't be changed
}

// DescribedBy names what a screen reader reads along with the input.
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

// Field makes an input. What was typed is kept unless it is a password. The
// first one on a page that has a problem gets the focus.
func (p *page) Field(name, label, kind, autocomplete string) field {
	f := field{
		Name:         name,
		Label:        label,
		Kind:         kind,
		Autocomplete: autocomplete,
		Problem:      p.Problems[name],
	}
	if kind != "password" {
		f.Value = p.Typed(name)
	}
	if autocomplete == "new-password" && f.Problem == "" {
		f.Hint = "At least 8 characters. A few words make a good one."
	}
	if f.Problem != "" && !p.focused {
		p.focused = true
		f.Focus = true
	}
	return f
}

// First is Field for the input that people begin with: it gets the focus unless
// another has a problem.
func (p *page) First(name, label, kind, autocomplete string) field {
	f := p.Field(name, label, kind, autocomplete)
	if len(p.Problems) == 0 && !p.focused {
		p.focused = true
		f.Focus = true
	}
	return f
}

// Address is First for a mail address that is known already, "" for one that
// is not. It can't be changed: an invitation is good for its own address only.
func (p *page) Address(known string) field {
	if known == "" {
		return p.First("email", "Mail address", "email", "username")
	}
	f := p.Field("email", "Mail address", "email", "username")
	f.Value = known
	f.Fixed = true
	if f.Problem == "" {
		f.Hint = "The invitation is for this address."
	}
	return f
}

// Typed is what was typed into a field.
func (p *page) Typed(name string) string { return p.v.form.Get(name) }

// Problem is what is wrong with a field.
func (p *page) Problem(name string) string { return p.Problems[name] }

// past is a time with how long ago that was, in words.
type past struct {
	At  time.Time
	Ago string
}

// Ago says how long ago something was.
func (p *page) Ago(t time.Time) past {
	d := p.v.Now().Sub(t)
	if d < 5*time.Second {
		return past{t, "just now"}
	}
	return past{t, words(d) + " ago"}
}

// stamp is how people read a time.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// iso is how programs do.
func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// waitFor says how long to wait in words, rather too long than too short.
func waitFor(d time.Duration) string {
	unit := time.Second
	if d >= 2*time.Minute {
		unit = time.Minute
	}
	return words((d + unit - 1).Truncate(unit))
}

// words says a span in its largest unit.
func words(d time.Duration) string {
	n := int64(d / time.Second)
	unit := "second"
	for _, next := range []struct {
		size int64
		unit string
	}{{60, "minute"}, {60, "hour"}, {24, "day"}} {
		if n < 2*next.size {
			break
		}
		n = n / next.size
		unit = next.unit
	}
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// amount writes a number with a mark at every thousand.
func amount(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// browser makes a short name of what a browser says of itself. All of them
// claim to be several others, so the order counts.
func browser(agent string) string {
	name := firstOf(agent, [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"},
		{"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}})
	system := firstOf(agent, [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"CrOS", "ChromeOS"},
		{"Windows", "Windows"}, {"Mac OS X", "Mac"}, {"Linux", "Linux"}})
	switch {
	case agent == "":
		return "Unknown browser"
	case name == "":
		return agent
	case system == "":
		return name
	}
	return name + " on " + system
}

func firstOf(text string, marks [][2]string) string {
	for _, m := range marks {
		if strings.Contains(text, m[0]) {
			return m[1]
		}
	}
	return ""
}
