// Package devices serves the API endpoints by which devices sign in (RFC 8628)
// and refresh their tokens, and the list of signed-in devices.
package devices

import (
	"cmp"
	"net/http"

	"atelier/internal/account/devicelogin"
	"atelier/internal/account/signin"
	"atelier/internal/base/cursor"
	"atelier/internal/base/throttle"
	"atelier/internal/people/device"
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

// listDevices serves GET /api/v2/devices: it lists the devices of the caller,
// newest first.
func (h *Handler) listDevices(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("devices", call.Principal.PersonID))
	if err != nil {
		return err
	}
	var after *device.After
	if page.After != nil {
		at, err := page.AfterTime()
		if err != nil {
			return err
		}
		after = &device.After{Created: at, ID: page.After[1]}
	}

	devices, err := h.Logins.ListDevices(r.Context(), call.Principal.PersonID, after, page.Limit+1)
	if err != nil {
		return err
	}
	devices, hasMore, next := rest.Cut(page, devices, func(d device.Device) (string, string) { return rest.Micros(d.Created), d.ID })
	return rest.Reply(w, http.StatusOK, wire.DeviceList{
		Data:       rest.Convert(devices, func(d device.Device) wire.Device { return asDevice(d, call.Principal.DeviceID()) }),
		HasMore:    hasMore,
		NextCursor: next,
	})
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

// kindDevice is the kind of all devices, because all devices sign in with the
// device flow.
const kindDevice = "DEVICE"

// asDevice converts a device to its API representation. currentID is the id of
// the caller's device.
func asDevice(d device.Device, currentID string) wire.Device {
	return wire.Device{
		ID:             d.ID,
		Kind:           kindDevice,
		Name:           cmp.Or(d.Agent, "Unknown app"),
		PluginKind:     rest.TextOrNull(d.PluginKind),
		Address:        d.Address,
		SignInProvider: d.Provider,
		Created:        rest.Moment(d.Created),
		LastUsed:       rest.Moment(d.LastUsed),
		Current:        d.ID == currentID,
	}
}
