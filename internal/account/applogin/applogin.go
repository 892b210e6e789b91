// Package applogin signs people in to apps of third parties with the
// authorization code flow of OAuth 2.1: it registers apps, lets people allow or
// refuse them, exchanges codes for tokens, and revokes tokens. An app that is
// signed in is a device of the person: it is in their list of devices, and its
// tokens end with it.
package applogin

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"atelier/internal/account/devicelogin"
	"atelier/internal/account/flow"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/oauthclient"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// Service signs people in to apps. It is safe for concurrent use.
type Service struct {
	DB      *sqldb.DB
	Devices *device.Devices
	Logins  *devicelogin.Service
	Tokens  *idtoken.Issuer
	BaseURL string // of the API
}

// registrationsOfNetwork limits the apps that can be registered from one network.
var registrationsOfNetwork = ratelimit.Backoff{Free: 20, Span: time.Hour, First: time.Second, MaxWait: 5 * time.Minute}

// Register registers an app (RFC 7591).
func (s *Service) Register(ctx context.Context, r oauthclient.Registration, c session.Client) (app oauthclient.Client, err error) {
	r.Network = c.Network()
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := flow.LimitNetwork(ctx, tx, "register", r.Network, registrationsOfNetwork); err != nil {
			return err
		}
		app, err = oauthclient.Register(ctx, tx, r)
		return err
	})
	return app, err
}

// Request is the request of an app to act for a person, as the browser brings it.
type Request struct {
	ClientID        string
	RedirectURI     string
	ResponseType    string
	Challenge       string
	ChallengeMethod string
	State           string
	Resources       []string // RFC 8707
}

// Scope is the only scope: everything that an app can do. Requests for others get
// it, too.
const Scope = "api"

// maxState is the maximum length in bytes of the state of a request.
const maxState = 2000

// HasResource reports whether apps can request tokens for an address (RFC 8707):
// that of the service, or of one of its interfaces. A token is valid for all of
// them.
func (s *Service) HasResource(address string) bool {
	path, ok := strings.CutPrefix(strings.TrimSuffix(address, "/"), s.BaseURL)
	return ok && slices.Contains([]string{"", "/api/v2", "/mcp", "/v1"}, path)
}

// OpenRequest checks a request and returns the app that it comes from. Errors are
// shown to the person: a browser must not be sent to an address that anyone can
// have registered before the person has agreed.
func (s *Service) OpenRequest(ctx context.Context, r Request) (app oauthclient.Client, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		app, err = oauthclient.ByID(ctx, tx, r.ClientID)
		return err
	})
	if err != nil {
		return oauthclient.Client{}, err
	}
	switch {
	case !app.Allows(r.RedirectURI):
		err = fault.New(fault.Invalid, "The app wants to send you to an address that it has not registered. Do not use it.").On("redirect_uri")
	case r.ResponseType != "code":
		err = fault.New(fault.Invalid, "The app sent a request that this service does not support: response_type must be code.").On("response_type")
	case r.ChallengeMethod != "S256" || !device.IsChallenge(r.Challenge):
		err = fault.New(fault.Invalid, "The app sent a request that this service does not support: it needs a code_challenge with the method S256.").On("code_challenge")
	case len(r.State) > maxState:
		err = fault.New(fault.Invalid, "The app sent a state that is too long.").On("state")
	}
	for _, resource := range r.Resources {
		if !s.HasResource(resource) {
			err = fault.New(fault.Invalid, "The app wants to use another service than this one.").On("resource")
		}
	}
	if err != nil {
		return oauthclient.Client{}, err
	}
	return app, nil
}

// Approve lets an app act for a person, and returns the code with which the app
// gets its tokens.
func (s *Service) Approve(ctx context.Context, p principal.Principal, app oauthclient.Client, r Request) (code string, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if _, err := flow.LockActivePerson(ctx, tx, p.PersonID); err != nil {
			return err
		}
		if err := flow.RequireSession(ctx, tx, p.Credential.ID); err != nil {
			return err
		}
		if err := oauthclient.MarkApproved(ctx, tx, app.ID); err != nil {
			return err
		}
		code, err = s.Devices.CreateCode(ctx, tx, device.Authorization{
			PersonID:    p.PersonID,
			Provider:    p.Credential.Provider,
			ClientID:    app.ID,
			RedirectURI: r.RedirectURI,
			Challenge:   r.Challenge,
			PluginKind:  pluginKind(app.Name),
			Agent:       app.Name,
			Address:     p.Address,
			Network:     session.NetworkOf(p.Address),
		})
		if err != nil {
			return err
		}
		return flow.RecordOwnAct(ctx, tx, audit.DeviceApproved, p.PersonID, p.Address, describe(app))
	})
	return code, err
}

// Refuse records that a person does not let an app act for them.
func (s *Service) Refuse(ctx context.Context, p principal.Principal, app oauthclient.Client) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		return flow.RecordOwnAct(ctx, tx, audit.DeviceRefused, p.PersonID, p.Address, describe(app))
	})
}

func describe(app oauthclient.Client) map[string]string {
	return map[string]string{"client": app.ID, "name": app.Name}
}

var notInKind = regexp.MustCompile(`[^a-z0-9]+`)

// pluginKind returns the kind of plugin of an app: its name with the characters
// that kinds have.
func pluginKind(name string) string {
	kind := strings.Trim(notInKind.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return strings.Trim(kind[:min(len(kind), 32)], "-")
}

// RedirectURL returns the address at which an app gets the answer to its request.
func (r Request) RedirectURL(answer url.Values) (string, error) {
	u, err := url.Parse(r.RedirectURI)
	if err != nil {
		return "", err
	}
	query := u.Query()
	for name, values := range answer {
		query[name] = values
	}
	if r.State != "" {
		query.Set("state", r.State)
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// Refresh returns new tokens of an app in exchange for its refresh token.
func (s *Service) Refresh(ctx context.Context, clientID, refreshToken string, c session.Client) (devicelogin.Tokens, error) {
	dev, ok, err := s.Devices.ByRefresh(ctx, s.DB, refreshToken)
	if err != nil {
		return devicelogin.Tokens{}, err
	}
	if !ok || dev.ClientID == "" || dev.ClientID != clientID {
		return devicelogin.Tokens{}, device.ErrTokenInvalid
	}
	return s.Logins.RefreshTokens(ctx, refreshToken, c)
}

// Revoke signs an app out, with either of its tokens (RFC 7009). Nothing happens
// if the token is not valid or belongs to another app.
func (s *Service) Revoke(ctx context.Context, clientID, token string, c session.Client) error {
	dev, ok, err := s.Devices.ByRefresh(ctx, s.DB, token)
	if err != nil {
		return err
	}
	if !ok {
		claims, err := s.Tokens.VerifyToken(ctx, token)
		if fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.TokenInvalid) || err == nil && claims.DeviceID == "" {
			return nil
		}
		if err != nil {
			return err
		}
		err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
			dev, err = device.ByID(ctx, tx, claims.DeviceID)
			return err
		})
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if dev.ClientID == "" || dev.ClientID != clientID {
		return nil
	}
	err = s.Logins.RevokeDevice(ctx, principal.Principal{PersonID: dev.PersonID, Address: c.Address}, dev.PersonID, dev.ID)
	if fault.Is(err, fault.NotFound) { // it was signed out before
		return nil
	}
	return err
}

// IsRefused reports whether an error means that a code or token is not valid.
func IsRefused(err error) bool {
	return errors.Is(err, device.ErrCodeInvalid) || fault.Is(err, fault.TokenInvalid) || fault.Is(err, fault.Unauthenticated)
}
