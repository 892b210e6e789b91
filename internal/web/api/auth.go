package api

import (
	"errors"
	"net/http"

	"atelier/internal/account/devicelogin"
	"atelier/internal/base/fault"
	"atelier/internal/people/device"
	"atelier/internal/people/session"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// guessesPerMinute bounds how often an address may present device codes that
// are not known.
const guessesPerMinute = 60

// maxStart bounds the body of a start, which strangers send.
const maxStart = 1 << 10

// clientOf returns where a request comes from.
func clientOf(r *http.Request) session.Client {
	return session.Client{UserAgent: r.UserAgent(), Address: httpd.RecordOf(r.Context()).Addr.String()}
}

func (s *Server) startDevice(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.DeviceStart](w, r, Limits{JSONBytes: maxStart, JSONDepth: s.Limits.JSONDepth})
	if err != nil {
		return err
	}
	kind := ""
	if req.PluginKind != nil {
		if kind = *req.PluginKind; kind == "" {
			return fault.New(fault.Invalid, "Some fields are not valid.").Field("plugin_kind", "Must be 1 to 32 of a-z, 0-9, _ and -.")
		}
	}
	codes, err := s.Accounts.Devices.Start(r.Context(), kind, clientOf(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, wire.DeviceCodes{
		DeviceCode:      codes.DeviceCode,
		UserCode:        codes.UserCode,
		VerificationURL: s.Accounts.Devices.VerificationURL(codes.UserCode),
		ExpiresIn:       int(codes.ExpiresIn.Seconds()),
		Interval:        int(codes.Interval.Seconds()),
	})
}

func (s *Server) pollDevice(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	code := p.one("device_code")
	if code == "" {
		p.problem("device_code", "Give the device code of the start.")
	}
	if err := p.failed(); err != nil {
		return err
	}
	return s.poll(w, r, code)
}

func (s *Server) pollDeviceByBody(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.DevicePoll](w, r, s.Limits)
	if err != nil {
		return err
	}
	if req.DeviceCode == "" {
		return missing("device_code")
	}
	return s.poll(w, r, req.DeviceCode)
}

func (s *Server) poll(w http.ResponseWriter, r *http.Request, code string) error {
	in, err := s.Accounts.Devices.Poll(r.Context(), code, clientOf(r))
	if errors.Is(err, device.ErrUnknownCode) {
		if limited := takeRequest(s.guesses, httpd.AddressKey(httpd.RecordOf(r.Context()).Addr)); limited != nil {
			return limited
		}
	}
	if err != nil {
		return err
	}
	who := asIdentity(in.Profile)
	return reply(w, http.StatusOK, wire.SignedIn{
		Tokens:           asTokens(in.Tokens),
		DeviceID:         in.DeviceID,
		User:             who.User,
		Accounts:         who.Accounts,
		NewlyJoinedTeams: who.NewlyJoinedTeams,
	})
}

func (s *Server) refreshToken(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.RefreshRequest](w, r, s.Limits)
	if err != nil {
		return err
	}
	if req.RefreshToken == "" {
		return missing("refresh_token")
	}
	tokens, err := s.Accounts.Devices.RefreshTokens(r.Context(), req.RefreshToken, clientOf(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asTokens(tokens))
}

func (s *Server) revokeDevice(w http.ResponseWriter, r *http.Request) error {
	id := callOf(r).caller.DeviceID()
	if named := r.Header["X-Device-Id"]; len(named) > 0 {
		id = named[0]
		if len(named) > 1 {
			id = "" // nobody could say which one is meant
		}
	}
	a := principalOf(r)
	if err := s.Accounts.Devices.RevokeDevice(r.Context(), a, a.PersonID, id); err != nil {
		return err
	}
	return done(w)
}

func (s *Server) signOutEverywhere(w http.ResponseWriter, r *http.Request) error {
	a := principalOf(r)
	if err := s.Accounts.SignIn.SignOutEverywhere(r.Context(), a, a.PersonID); err != nil {
		return err
	}
	return done(w)
}

func (s *Server) getKeys(w http.ResponseWriter, r *http.Request) error {
	body, err := s.Accounts.Devices.Tokens.JWKS(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	send(w, http.StatusOK, body)
	return nil
}

func asTokens(t devicelogin.Tokens) wire.Tokens {
	return wire.Tokens{IDToken: t.ID, RefreshToken: t.Refresh, ExpiresAt: t.Expires.Unix()}
}

// missing refuses a body without a field that it needs.
func missing(field string) error {
	return fault.New(fault.Invalid, "Some fields are not valid.").Field(field, "This field is required.")
}
