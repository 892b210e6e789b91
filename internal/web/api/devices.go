package api

import (
	"cmp"
	"net/http"

	"atelier/internal/base/cursor"
	"atelier/internal/people/device"
	"atelier/internal/web/api/wire"
)

// listDevices answers GET /devices.
func (s *Server) listDevices(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	pg, err := s.page(c.params, cursor.Scope("devices", c.caller.PersonID))
	if err != nil {
		return err
	}
	var after *device.After
	if pg.after != nil {
		at, err := pg.time()
		if err != nil {
			return err
		}
		after = &device.After{Created: at, ID: pg.after[1]}
	}

	devices, err := s.Accounts.Devices.ListDevices(r.Context(), c.caller.PersonID, after, pg.limit+1)
	if err != nil {
		return err
	}
	answer := wire.DeviceList{Data: []wire.Device{}}
	devices, answer.HasMore, answer.NextCursor = cut(s, pg, devices, func(d device.Device) (string, string) { return micros(d.Created), d.ID })
	for _, d := range devices {
		answer.Data = append(answer.Data, asDevice(d, c.caller.DeviceID()))
	}
	return reply(w, http.StatusOK, answer)
}

// kindDevice is the kind of what signed in with the device flow.
const kindDevice = "DEVICE"

// asDevice shows a device to somebody who asks from the device here.
func asDevice(d device.Device, here string) wire.Device {
	return wire.Device{
		ID:             d.ID,
		Kind:           kindDevice,
		Name:           cmp.Or(d.Agent, "Unknown app"),
		PluginKind:     orNull(d.PluginKind),
		Address:        d.Address,
		SignInProvider: d.Provider,
		Created:        moment(d.Created),
		LastUsed:       moment(d.LastUsed),
		Current:        d.ID == here,
	}
}
