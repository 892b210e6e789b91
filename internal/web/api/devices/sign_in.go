package devices

import (
	"errors"
	"net/http"

	"atelier/internal/account/devicelogin"
	"atelier/internal/people/device"
	"atelier/internal/web/api/me"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// GuessesPerMinute is the number of unknown device codes per minute that an IP
// address may present.
const GuessesPerMinute = 60

// maxStartBytes is the maximum size in bytes of the request body that starts a
// sign-in. It is small because the request needs no authentication.
const maxStartBytes = 1 << 10

// startSignIn serves POST /api/v2/auth/device/start: it begins the sign-in of
// a device.
func (h *Handler) startSignIn(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.DeviceStart](w, r, rest.JSONLimits{Bytes: maxStartBytes, Depth: h.JSON.Depth})
	if err != nil {
		return err
	}
	kind := rest.ValueOrZero(req.PluginKind)
	if req.PluginKind != nil && kind == "" {
		return rest.InvalidFields().Field("plugin_kind", "Must have 1 to 32 of the characters a-z, 0-9, _ and -.")
	}

	codes, err := h.Logins.Start(r.Context(), kind, rest.ClientOf(r))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.DeviceCodes{
		DeviceCode:      codes.DeviceCode,
		UserCode:        codes.UserCode,
		VerificationURL: h.Logins.VerificationURL(codes.UserCode),
		ExpiresIn:       int(codes.ExpiresIn.Seconds()),
		Interval:        int(codes.Interval.Seconds()),
	})
}

// pollByQuery serves GET /api/v2/auth/device/poll: it returns the tokens of a
// device once its sign-in has been approved.
func (h *Handler) pollByQuery(w http.ResponseWriter, r *http.Request) error {
	p := rest.ParamsOf(r)
	code := p.ReadText("device_code")
	if code == "" {
		p.AddProblem("device_code", "Must be the device_code from the response that started the sign-in.")
	}
	if err := p.Err(); err != nil {
		return err
	}
	return h.pollSignIn(w, r, code)
}

// pollByBody serves POST /api/v2/auth/device/poll. It is like pollByQuery,
// with the device code in the request body.
func (h *Handler) pollByBody(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.DevicePoll](w, r, h.JSON)
	if err != nil {
		return err
	}
	if req.DeviceCode == "" {
		return rest.RequiredField("device_code")
	}
	return h.pollSignIn(w, r, req.DeviceCode)
}

func (h *Handler) pollSignIn(w http.ResponseWriter, r *http.Request, code string) error {
	login, err := h.Logins.Poll(r.Context(), code, rest.ClientOf(r))
	if errors.Is(err, device.ErrUnknownCode) {
		if limited := rest.CheckRate(h.Guesses, httpd.AddressKey(httpd.RecordOf(r.Context()).Addr)); limited != nil {
			return limited
		}
	}
	if err != nil {
		return err
	}

	person := me.AsIdentity(login.Profile)
	return rest.Reply(w, http.StatusOK, wire.SignInResult{
		Tokens:           asTokens(login.Tokens),
		DeviceID:         login.DeviceID,
		User:             person.User,
		Accounts:         person.Accounts,
		NewlyJoinedTeams: person.NewlyJoinedTeams,
	})
}

// refreshTokens serves POST /api/v2/auth/token/refresh: it exchanges a refresh
// token for new tokens.
func (h *Handler) refreshTokens(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.RefreshRequest](w, r, h.JSON)
	if err != nil {
		return err
	}
	if req.RefreshToken == "" {
		return rest.RequiredField("refresh_token")
	}
	tokens, err := h.Logins.RefreshTokens(r.Context(), req.RefreshToken, rest.ClientOf(r))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asTokens(tokens))
}

// getKeys serves GET /.well-known/jwks.json: it returns the public keys that
// verify ID tokens.
func (h *Handler) getKeys(w http.ResponseWriter, r *http.Request) error {
	body, err := h.Logins.Tokens.MarshalJWKS(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	rest.Send(w, http.StatusOK, body)
	return nil
}

func asTokens(t devicelogin.Tokens) wire.Tokens {
	return wire.Tokens{IDToken: t.ID, RefreshToken: t.Refresh, ExpiresAt: t.Expires.Unix()}
}
