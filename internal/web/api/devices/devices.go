// Package devices serves the API endpoints by which devices sign in (RFC 8628)
// and refresh their tokens, and the list of signed-in devices.
package devices

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"atelier/internal/account/devicelogin"
	"atelier/internal/account/signin"
	"atelier/internal/base/cursor"
	"atelier/internal/base/throttle"
	"atelier/internal/people/device"
	"atelier/internal/people/session"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for devices.
type Handler struct {
	Logins *devicelogin.Service
	SignIn *signin.Service
	Pages  rest.Pager
	JSON   rest.JSONLimits
	// Guesses limits how often an IP address may present unknown device codes.
	Guesses *throttle.Buckets
}

// Routes returns the routes of the operations on devices.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("POST /api/v2/auth/device/start", access.Open, h.startSignIn),
		rest.NewRoute("GET /api/v2/auth/device/poll", access.Open, h.pollByQuery),
		rest.NewRoute("POST /api/v2/auth/device/poll", access.Open, h.pollByBody),
		rest.NewRoute("POST /api/v2/auth/token/refresh", access.Open, h.refreshTokens),
		rest.NewRoute("POST /api/v2/auth/device/revoke", access.LeavingDevice, h.revokeDevice),
		rest.NewRoute("POST /api/v2/auth/sign-out-everywhere", access.Leaving, h.signOutEverywhere),
		rest.NewRoute("GET /api/v2/devices", access.SignedIn, h.listDevices),
		rest.NewRoute("GET /.well-known/jwks.json", access.Open, h.getKeys),
	}
}

// listDevices serves GET /api/v2/devices: it lists the devices and browsers of
// the caller, newest first.
func (h *Handler) listDevices(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("devices", call.Principal.PersonID))
	if err != nil {
		return err
	}
	var afterDevice *device.After
	var afterSession *session.After
	if page.After != nil {
		at, err := page.AfterTime()
		if err != nil {
			return err
		}
		afterDevice = &device.After{Created: at, ID: page.After[1]}
		afterSession = &session.After{Created: at, ID: page.After[1]}
	}

	devices, err := h.Logins.ListDevices(r.Context(), call.Principal.PersonID, afterDevice, page.Limit+1)
	if err != nil {
		return err
	}
	browsers, err := h.SignIn.ListSessions(r.Context(), call.Principal.PersonID, afterSession, page.Limit+1)
	if err != nil {
		return err
	}

	all := rest.Convert(devices, func(d device.Device) signedIn { return deviceSignedIn(d, call.Principal.DeviceID()) })
	all = append(all, rest.Convert(browsers, func(s session.Session) signedIn { return browserSignedIn(s, call.Principal.SessionID()) })...)
	slices.SortFunc(all, func(a, b signedIn) int {
		return cmp.Or(b.created.Compare(a.created), cmp.Compare(b.ID, a.ID))
	})
	all, hasMore, next := rest.Cut(page, all, func(s signedIn) (string, string) { return rest.Micros(s.created), s.ID })
	return rest.Reply(w, http.StatusOK, wire.DeviceList{
		Data:       rest.Convert(all, func(s signedIn) wire.Device { return s.Device }),
		HasMore:    hasMore,
		NextCursor: next,
	})
}

// signedIn is a device or browser in the list, with the time that it is sorted
// by.
type signedIn struct {
	wire.Device
	created time.Time
}

// revokeDevice serves POST /api/v2/auth/device/revoke: it signs out the device
// that X-Device-Id names, or the device of the caller.
func (h *Handler) revokeDevice(w http.ResponseWriter, r *http.Request) error {
	id := rest.PrincipalOf(r).DeviceID()
	if named := r.Header["X-Device-Id"]; len(named) > 0 {
		id = named[0]
		if len(named) > 1 {
			id = "" // ambiguous, so no device matches
		}
	}
	p := rest.PrincipalOf(r)
	if err := h.Logins.RevokeDevice(r.Context(), p, p.PersonID, id); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// signOutEverywhere serves POST /api/v2/auth/sign-out-everywhere: it ends all
// sessions of the caller and signs out all devices.
func (h *Handler) signOutEverywhere(w http.ResponseWriter, r *http.Request) error {
	p := rest.PrincipalOf(r)
	if err := h.SignIn.SignOutEverywhere(r.Context(), p, p.PersonID); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// The kinds in the list: devices, which signed in with the device flow, and
// browsers.
const (
	kindDevice  = "DEVICE"
	kindBrowser = "BROWSER"
)

// deviceSignedIn converts a device to its entry in the list. currentID is the
// id of the caller's device.
func deviceSignedIn(d device.Device, currentID string) signedIn {
	return signedIn{created: d.Created, Device: wire.Device{
		ID:             d.ID,
		Kind:           kindDevice,
		Name:           cmp.Or(d.Agent, "Unknown app"),
		PluginKind:     rest.TextOrNull(d.PluginKind),
		Address:        d.Address,
		SignInProvider: d.Provider,
		Created:        rest.Moment(d.Created),
		LastUsed:       rest.Moment(d.LastUsed),
		Current:        d.ID == currentID,
	}}
}

// browserSignedIn converts a browser session to its entry in the list.
// currentID is the id of the caller's session.
func browserSignedIn(s session.Session, currentID string) signedIn {
	return signedIn{created: s.Created, Device: wire.Device{
		ID:             s.ID,
		Kind:           kindBrowser,
		Name:           cmp.Or(s.Agent, "Unknown browser"),
		Address:        s.Address,
		SignInProvider: s.Provider,
		Created:        rest.Moment(s.Created),
		LastUsed:       rest.Moment(s.LastUsed),
		Current:        s.ID == currentID,
	}}
}
