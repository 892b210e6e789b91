package pages

import (
	"net/url"
	"strings"

	"atelier/internal/account/applogin"
	"atelier/internal/base/fault"
	"atelier/internal/people/oauthclient"
)

// authorizePath is the URL path of the page on which a person allows or refuses
// an app.
const authorizePath = "/oauth/authorize"

// appPage is the template data of the page on which a person allows or refuses an
// app.
type appPage struct {
	App         oauthclient.Client
	Destination string // where the person is sent back
	Query       string // of the request
}

// appForm handles GET /oauth/authorize: it shows the app that wants to act for
// the person. Opening the URL never allows the app.
func (s accountPages) appForm(v *pageRequest) error {
	request := readAppRequest(v.r.URL.Query())
	app, err := s.openAppRequest(v, request)
	if err != nil {
		return err
	}
	return v.showAppPage(app, request, v.r.URL.Query())
}

// readAppRequest reads the parameters of a request. A parameter that is repeated
// counts as missing, because it is unclear which value applies.
func readAppRequest(query url.Values) applogin.Request {
	value := func(name string) string {
		if len(query[name]) != 1 {
			return ""
		}
		return query[name][0]
	}
	return applogin.Request{
		ClientID:        value("client_id"),
		RedirectURI:     value("redirect_uri"),
		ResponseType:    value("response_type"),
		Challenge:       value("code_challenge"),
		ChallengeMethod: value("code_challenge_method"),
		State:           value("state"),
		Resources:       query["resource"],
	}
}

func (s accountPages) openAppRequest(v *pageRequest, request applogin.Request) (oauthclient.Client, error) {
	if !s.HasOAuth {
		return oauthclient.Client{}, fault.New(fault.NotFound, "This page does not exist. Check the address.")
	}
	return s.Accounts.Apps.OpenRequest(v.r.Context(), request)
}

// showAppPage shows the page. Browsers apply the form-action of the page to the
// redirect that follows the form, so it names the address of the app.
func (v *pageRequest) showAppPage(app oauthclient.Client, request applogin.Request, query url.Values) error {
	destination, source := describeRedirect(request.RedirectURI)
	v.w.Header().Set("Content-Security-Policy", strings.Replace(contentPolicy, "form-action 'self'", "form-action 'self' "+source, 1))
	return v.showPage("app", appPage{app, destination, query.Encode()})
}

// describeRedirect returns the part of an address that tells a person where it
// leads, and its source expression for a Content-Security-Policy.
func describeRedirect(address string) (shown, source string) {
	u, err := url.Parse(address)
	if err != nil { // it was checked when the app was registered
		return "", ""
	}
	switch u.Scheme {
	case "https":
		return u.Host, "https://" + u.Host
	case "http": // only of the person's own machine
		return "a program on this computer (" + u.Host + ")", "http://" + u.Host
	}
	return "an app on this computer (" + u.Scheme + ":)", u.Scheme + ":"
}

// decideApp handles POST /oauth/authorize: it allows or refuses an app, and sends
// the browser back to it.
func (s accountPages) decideApp(v *pageRequest) error {
	query, err := url.ParseQuery(v.form.Get("request"))
	if err != nil {
		return fault.New(fault.Invalid, "The form cannot be read. Start again in the app.")
	}
	request := readAppRequest(query)
	app, err := s.openAppRequest(v, request)
	if err != nil {
		return err
	}
	answer := url.Values{"iss": {s.BaseURL}}
	if v.form.Get("verdict") == approveVerdict {
		code, err := s.Accounts.Apps.Approve(v.r.Context(), v.currentPrincipal(), app, request)
		if err != nil {
			return err
		}
		answer.Set("code", code)
	} else {
		if err := s.Accounts.Apps.Refuse(v.r.Context(), v.currentPrincipal(), app); err != nil {
			return err
		}
		answer.Set("error", "access_denied")
	}
	address, err := request.RedirectURL(answer)
	if err != nil {
		return err
	}
	return v.redirectTo(address)
}
