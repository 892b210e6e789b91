// Package oauth serves the endpoints of OAuth 2.1 that apps call themselves: the
// metadata of the service (RFC 9728, RFC 8414), registration (RFC 7591), tokens
// and their revocation (RFC 7009). Errors have the form of OAuth. The page on
// which a person allows an app is in package pages.
package oauth

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"atelier/internal/account/applogin"
	"atelier/internal/account/devicelogin"
	"atelier/internal/base/fault"
	"atelier/internal/people/device"
	"atelier/internal/people/oauthclient"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

// Handler serves the endpoints.
type Handler struct {
	Apps *applogin.Service
	// BaseURL is the address of the service, and AppURL is that of its pages.
	BaseURL, AppURL string
	// Registers says that apps can register themselves.
	Registers bool
	Depth     int // the maximum depth of JSON
	Now       func() time.Time
}

// The paths of the endpoints.
const (
	authorizePath = "/oauth/authorize"
	tokenPath     = "/oauth/token" //nolint:gosec // a path
	registerPath  = "/oauth/register"
	revokePath    = "/oauth/revoke"
)

// maxBody is the maximum size of a request in bytes.
const maxBody = 32 << 10

// Routes returns the routes of the endpoints.
func (h *Handler) Routes() []rest.Route {
	all := []rest.Route{
		rest.NewRoute("GET /.well-known/oauth-authorization-server", access.Open, h.getServer),
		rest.NewRoute("GET /.well-known/oauth-protected-resource", access.Open, h.getResource),
		rest.NewRoute("GET /.well-known/oauth-protected-resource/{path...}", access.Open, h.getResource),
		rest.NewRoute("POST "+tokenPath, access.Open, h.issueTokens),
		rest.NewRoute("POST "+revokePath, access.Open, h.revokeToken),
	}
	if h.Registers {
		all = append(all, rest.NewRoute("POST "+registerPath, access.Open, h.registerApp))
	}
	for i := range all {
		all[i].WriteError = writeError
	}
	return all
}

// serverMetadata describes the authorization server (RFC 8414).
type serverMetadata struct {
	Issuer               string   `json:"issuer"`
	Authorization        string   `json:"authorization_endpoint"`
	Token                string   `json:"token_endpoint"`
	Registration         string   `json:"registration_endpoint,omitempty"`
	Revocation           string   `json:"revocation_endpoint"`
	Keys                 string   `json:"jwks_uri"`
	Scopes               []string `json:"scopes_supported"`
	ResponseTypes        []string `json:"response_types_supported"`
	ResponseModes        []string `json:"response_modes_supported"`
	GrantTypes           []string `json:"grant_types_supported"`
	TokenAuthMethods     []string `json:"token_endpoint_auth_methods_supported"`
	RevocationMethods    []string `json:"revocation_endpoint_auth_methods_supported"`
	ChallengeMethods     []string `json:"code_challenge_methods_supported"`
	HasIssuerInResponses bool     `json:"authorization_response_iss_parameter_supported"`
	Documentation        string   `json:"service_documentation"`
}

var noClientSecret = []string{"none"}

// getServer serves GET /.well-known/oauth-authorization-server.
func (h *Handler) getServer(w http.ResponseWriter, _ *http.Request) error {
	m := serverMetadata{
		Issuer:               h.BaseURL,
		Authorization:        h.AppURL + authorizePath,
		Token:                h.BaseURL + tokenPath,
		Revocation:           h.BaseURL + revokePath,
		Keys:                 h.BaseURL + "/.well-known/jwks.json",
		Scopes:               []string{applogin.Scope},
		ResponseTypes:        []string{"code"},
		ResponseModes:        []string{"query"},
		GrantTypes:           []string{"authorization_code", "refresh_token"},
		TokenAuthMethods:     noClientSecret,
		RevocationMethods:    noClientSecret,
		ChallengeMethods:     []string{"S256"},
		HasIssuerInResponses: true,
		Documentation:        h.BaseURL + "/docs/oauth",
	}
	if h.Registers {
		m.Registration = h.BaseURL + registerPath
	}
	return replyPublic(w, m)
}

// resourceMetadata describes what the tokens are for (RFC 9728).
type resourceMetadata struct {
	Resource      string   `json:"resource"`
	Servers       []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported"`
	Methods       []string `json:"bearer_methods_supported"`
	Name          string   `json:"resource_name"`
	Documentation string   `json:"resource_documentation"`
}

// getResource serves GET /.well-known/oauth-protected-resource for the service
// and for its parts, such as /mcp.
func (h *Handler) getResource(w http.ResponseWriter, r *http.Request) error {
	resource := h.BaseURL
	if path := r.PathValue("path"); path != "" {
		resource += "/" + path
	}
	if !h.Apps.HasResource(resource) {
		return fault.New(fault.NotFound, "This address does not exist.")
	}
	return replyPublic(w, resourceMetadata{
		Resource:      resource,
		Servers:       []string{h.BaseURL},
		Scopes:        []string{applogin.Scope},
		Methods:       []string{"header"},
		Name:          "Atelier",
		Documentation: h.BaseURL + "/docs/oauth",
	})
}

// replyPublic responds with metadata, which are the same for everyone.
func replyPublic(w http.ResponseWriter, v any) error {
	w.Header().Set("Cache-Control", "public, max-age=300")
	return rest.Reply(w, http.StatusOK, v)
}

// registration is the request to register an app, and the response to it.
// Members that are not listed are ignored, as the specification demands.
type registration struct {
	ID            string   `json:"client_id,omitempty"`
	Issued        int64    `json:"client_id_issued_at,omitempty"`
	Name          string   `json:"client_name,omitempty"`
	URI           string   `json:"client_uri,omitempty"`
	RedirectURIs  []string `json:"redirect_uris"`
	GrantTypes    []string `json:"grant_types,omitempty"`
	ResponseTypes []string `json:"response_types,omitempty"`
	AuthMethod    string   `json:"token_endpoint_auth_method,omitempty"`
	Scope         string   `json:"scope,omitempty"`
}

// registerApp serves POST /oauth/register.
func (h *Handler) registerApp(w http.ResponseWriter, r *http.Request) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &oauthError{code: "invalid_client_metadata", text: "Send the body as application/json."}
	}
	body, err := httpd.ReadBody(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return err
	}
	var wanted registration
	if err := errors.Join(httpd.CheckJSON(body, h.Depth), json.Unmarshal(body, &wanted)); err != nil {
		return &oauthError{code: "invalid_client_metadata", text: "The body is not valid JSON of client metadata."}
	}
	if len(wanted.GrantTypes) > 0 && !slices.Contains(wanted.GrantTypes, "authorization_code") {
		return &oauthError{code: "invalid_client_metadata", text: "grant_types must contain authorization_code."}
	}
	app, err := h.Apps.Register(r.Context(), oauthclient.Registration{Name: wanted.Name, URI: wanted.URI, RedirectURIs: wanted.RedirectURIs}, rest.ClientOf(r))
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.Invalid {
		code := "invalid_client_metadata"
		if f.Fields[0].Path == "redirect_uris" {
			code = "invalid_redirect_uri"
		}
		return &oauthError{code: code, text: f.Message}
	}
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return rest.Reply(w, http.StatusCreated, registration{
		ID:            app.ID,
		Issued:        app.Created.Unix(),
		Name:          app.Name,
		URI:           app.URI,
		RedirectURIs:  app.RedirectURIs,
		GrantTypes:    []string{"authorization_code", "refresh_token"},
		ResponseTypes: []string{"code"},
		AuthMethod:    "none",
		Scope:         applogin.Scope,
	})
}

// tokens is the response with tokens.
type tokens struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int64  `json:"expires_in"`
	Refresh   string `json:"refresh_token"`
	Scope     string `json:"scope"`
}

// issueTokens serves POST /oauth/token: it exchanges an authorization code or a
// refresh token for tokens.
func (h *Handler) issueTokens(w http.ResponseWriter, r *http.Request) error {
	form, err := readForm(w, r)
	if err != nil {
		return err
	}
	for _, resource := range form["resource"] {
		if !h.Apps.HasResource(resource) {
			return &oauthError{code: "invalid_target", text: "resource must be an address of this service."}
		}
	}
	var issued devicelogin.Tokens
	switch form.Get("grant_type") {
	case "authorization_code":
		issued, err = h.Apps.Logins.ExchangeCode(r.Context(), device.CodeClaim{
			Code:        form.Get("code"),
			ClientID:    form.Get("client_id"),
			RedirectURI: form.Get("redirect_uri"),
			Verifier:    form.Get("code_verifier"),
		}, rest.ClientOf(r))
	case "refresh_token":
		issued, err = h.Apps.Refresh(r.Context(), form.Get("client_id"), form.Get("refresh_token"), rest.ClientOf(r))
	case "":
		return &oauthError{code: "invalid_request", text: "grant_type is missing."}
	default:
		return &oauthError{code: "unsupported_grant_type", text: "grant_type must be authorization_code or refresh_token."}
	}
	if applogin.IsRefused(err) {
		return &oauthError{code: "invalid_grant", text: rest.FaultOf(err).Message}
	}
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return rest.Reply(w, http.StatusOK, tokens{
		Access:    issued.ID,
		Type:      "Bearer",
		ExpiresIn: int64(issued.Expires.Sub(h.Now()).Seconds()),
		Refresh:   issued.Refresh,
		Scope:     applogin.Scope,
	})
}

// revokeToken serves POST /oauth/revoke: it signs an app out. A token that is not
// valid gets the same response.
func (h *Handler) revokeToken(w http.ResponseWriter, r *http.Request) error {
	form, err := readForm(w, r)
	if err != nil {
		return err
	}
	if form.Get("token") == "" {
		return &oauthError{code: "invalid_request", text: "token is missing."}
	}
	if err := h.Apps.Revoke(r.Context(), form.Get("client_id"), form.Get("token"), rest.ClientOf(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// readForm reads a form. Parameters other than resource must not be repeated.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, &oauthError{code: "invalid_request", text: "Send the body as application/x-www-form-urlencoded."}
	}
	body, err := httpd.ReadBody(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, &oauthError{code: "invalid_request", text: "The form cannot be read."}
	}
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return nil, &oauthError{code: "invalid_request", text: "Parameters must not be repeated."}
		}
	}
	return form, nil
}

// oauthError is an error with a code of OAuth.
type oauthError struct {
	code string
	text string
}

func (e *oauthError) Error() string { return e.code + ": " + e.text }

// writeError responds with an error in the form of OAuth (RFC 6749 section 5.2).
func writeError(w http.ResponseWriter, traceID string, err error) {
	w.Header().Set("Cache-Control", "no-store")
	if own, ok := errors.AsType[*oauthError](err); ok {
		send(w, http.StatusBadRequest, own.code, own.text)
		return
	}
	f := rest.FaultOf(err)
	status := httpd.Status[f.Code]
	rest.SetErrorHeaders(w.Header(), status, f)
	code := "invalid_request"
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		code = "temporarily_unavailable"
	case status >= http.StatusInternalServerError:
		code = "server_error"
	}
	send(w, status, code, f.Message)
}

func send(w http.ResponseWriter, status int, code, text string) {
	rest.SendError(w, status, struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}{code, text})
}
