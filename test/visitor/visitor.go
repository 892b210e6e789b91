// Package visitor is a person with a browser that runs no scripts: enough to
// sign up, to sign in and to approve devices from a program.
package visitor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
)

// Visitor has cookies of their own.
type Visitor struct {
	base   string
	jar    http.CookieJar
	client *http.Client
}

// New gives a visitor of the service at base, who is not signed in.
func New(base string) *Visitor { return From(base, "") }

// From gives a visitor who comes through a proxy from an address of their own:
// the service counts by address.
func From(base, address string) *Visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // without options it does not fail
	}
	return &Visitor{base, jar, &http.Client{Jar: jar, Transport: proxy(address)}}
}

// As gives other the cookies of v: the same person in another place.
func (v *Visitor) As(other *Visitor) *Visitor {
	other.jar.SetCookies(other.url(), v.jar.Cookies(v.url()))
	return other
}

func (v *Visitor) url() *url.URL {
	u, err := url.Parse(v.base)
	if err != nil {
		panic(err) // the program says where it is
	}
	return u
}

// Cookies are the secrets that the visitor's browser holds.
func (v *Visitor) Cookies() (values []string) {
	for _, c := range v.jar.Cookies(v.url()) {
		values = append(values, c.Value)
	}
	return values
}

// CookieHeader returns the header Cookie of the visitor's requests, for programs
// that open pages as the visitor.
func (v *Visitor) CookieHeader() string {
	var cookies []string
	for _, c := range v.jar.Cookies(v.url()) {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	return strings.Join(cookies, "; ")
}

// proxy says where a request comes from.
type proxy string

func (p proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	if p != "" {
		r = r.Clone(r.Context())
		r.Header.Set("X-Forwarded-For", string(p))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Page is what a visitor sees.
type Page struct {
	URL    *url.URL
	Status int
	HTML   string
}

// Open opens a page by its path, or by an address of the service.
func (v *Visitor) Open(path string) (Page, error) {
	if !strings.HasPrefix(path, "http") {
		path = v.base + path
	}
	return page(v.client.Get(path))
}

func page(res *http.Response, err error) (Page, error) {
	if err != nil {
		return Page{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return Page{res.Request.URL, res.StatusCode, string(body)}, err
}

var (
	forms  = regexp.MustCompile(`(?s)<form[^>]* action="([^"]*)".*?</form>`)
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
)

// Send fills the first form of a page that goes to action, and sends it.
func (v *Visitor) Send(p Page, action string, values url.Values) (Page, error) {
	for _, form := range forms.FindAllStringSubmatch(p.HTML, -1) {
		if html.UnescapeString(form[1]) != action {
			continue
		}
		all := url.Values{}
		for _, input := range hidden.FindAllStringSubmatch(form[0], -1) {
			all.Set(input[1], html.UnescapeString(input[2]))
		}
		for name, value := range values {
			all[name] = value
		}
		return page(v.client.PostForm(v.base+action, all))
	}
	return Page{}, fmt.Errorf("%s has no form that goes to %s", p.URL, action)
}

// SignUp makes a person and signs them in.
func (v *Visitor) SignUp(email, password string) error { return v.enter("/signup", email, password) }

// SignIn signs a person in.
func (v *Visitor) SignIn(email, password string) error { return v.enter("/signin", email, password) }

func (v *Visitor) enter(path, email, password string) error {
	p, err := v.Open(path)
	if err != nil {
		return err
	}
	if p, err = v.Send(p, path, url.Values{"email": {email}, "password": {password}}); err != nil {
		return err
	}
	if p.URL.Path != "/" {
		return fmt.Errorf("%s led to %s, status %d", path, p.URL, p.Status)
	}
	return nil
}

// Decide opens the address that a device shows, and approves or refuses.
func (v *Visitor) Decide(address string, approve bool) error {
	p, err := v.Open(address)
	if err != nil {
		return err
	}
	verdict, title := "refuse", "Refused"
	if approve {
		verdict, title = "approve", "Approved"
	}
	if p, err = v.Send(p, "/device", url.Values{"verdict": {verdict}}); err != nil {
		return err
	}
	if !strings.Contains(p.HTML, "<h1>"+title+"</h1>") {
		return fmt.Errorf("the decision was answered with %d %s", p.Status, p.HTML)
	}
	return nil
}

// Codes are how a device begins.
type Codes struct {
	DeviceCode      string `json:"device_code"`
	UserCode        string `json:"user_code"`
	VerificationURL string `json:"verification_url"`
	Interval        int    `json:"interval"`
}

// Tokens are what a device speaks with.
type Tokens struct {
	IDToken      string `json:"id_token"`
	RefreshToken string `json:"refresh_token"`
	ExpiresAt    int64  `json:"expires_at"`
}

// SignedIn is what a device was given.
type SignedIn struct {
	Tokens   Tokens `json:"tokens"`
	DeviceID string `json:"device_id"`
}

// Start begins the sign-in of a device that is where the visitor is.
func (v *Visitor) Start(kind string) (c Codes, err error) {
	about := map[string]string{}
	if kind != "" {
		about["plugin_kind"] = kind
	}
	body, err := json.Marshal(about)
	if err != nil {
		return c, err
	}
	return c, answer(&c)(v.client.Post(v.base+"/api/v2/auth/device/start", "application/json", bytes.NewReader(body)))
}

// Poll fetches the tokens of a device that was approved.
func (v *Visitor) Poll(deviceCode string) (in SignedIn, err error) {
	return in, answer(&in)(v.client.Get(v.base + "/api/v2/auth/device/poll?device_code=" + url.QueryEscape(deviceCode)))
}

// Device signs a device in for a visitor who is signed in.
func (v *Visitor) Device(kind string) (SignedIn, error) {
	c, err := v.Start(kind)
	if err != nil {
		return SignedIn{}, err
	}
	if err := v.Decide(c.VerificationURL, true); err != nil {
		return SignedIn{}, err
	}
	return v.Poll(c.DeviceCode)
}

// answer reads a success into v.
func answer(v any) func(*http.Response, error) error {
	return func(res *http.Response, err error) error {
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s was answered with %d %s", res.Request.URL.Path, res.StatusCode, body)
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(body, v)
	}
}
