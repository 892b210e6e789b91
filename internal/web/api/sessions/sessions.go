// Package sessions serves the API endpoints for browser sessions: the token
// that the pages of the studio use, and signing a browser out.
package sessions

import (
	"net/http"
	"time"

	"atelier/internal/account/signin"
	"atelier/internal/base/fault"
	"atelier/internal/base/throttle"
	"atelier/internal/people/session"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// TokensPerMinute is the number of web tokens per minute that a session may
// request.
const TokensPerMinute = 30

// Handler serves the API endpoints for browser sessions.
type Handler struct {
	SignIn *signin.Service
	// Cookie is the name of the session cookie.
	Cookie string
	// Issued limits how many web tokens a session may request.
	Issued *throttle.Buckets
	Now    func() time.Time

	origins http.CrossOriginProtection
}

// Routes returns the routes of the operations on browser sessions.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("POST /api/v2/auth/session/token", access.Open, h.issueToken),
		rest.NewRoute("DELETE /api/v2/sessions/{session_id}", access.Leaving, h.endSession),
	}
}

// issueToken serves POST /api/v2/auth/session/token: it returns a short-lived
// ID token for the session of the browser. It is the only operation of the API
// that reads a cookie.
func (h *Handler) issueToken(w http.ResponseWriter, r *http.Request) error {
	if err := h.origins.Check(r); err != nil {
		return fault.New(fault.Forbidden, "Only pages of this service can request this token.").With("reason", "origin")
	}
	if r.Header.Get(session.StudioHeader) == "" {
		return fault.New(fault.Forbidden, "Send the header "+session.StudioHeader+": 1.").With("reason", "header")
	}
	cookie, err := r.Cookie(h.Cookie)
	if err != nil {
		return session.ErrSignedOut
	}

	token, err := h.SignIn.IssueWebToken(r.Context(), cookie.Value, func(sessionID string) error {
		return rest.CheckRate(h.Issued, sessionID)
	})
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.WebToken{
		IDToken:   token.ID,
		ExpiresAt: token.Expires.Unix(),
		ExpiresIn: int(token.Expires.Sub(h.Now()).Seconds()),
		UID:       token.PersonID,
	})
}

// endSession serves DELETE /api/v2/sessions/{session_id}: it signs one browser
// of the caller out.
func (h *Handler) endSession(w http.ResponseWriter, r *http.Request) error {
	if err := h.SignIn.EndSession(r.Context(), rest.PrincipalOf(r), r.PathValue("session_id")); err != nil {
		return err
	}
	return rest.NoContent(w)
}
