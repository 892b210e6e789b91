package main

import (
	"strings"

	"atelier/client"
)

type devicesCmd struct {
	List   devicesListCmd   `cmd:"" default:"withargs" help:"List your devices and browsers that are signed in."`
	Revoke devicesRevokeCmd `cmd:"" help:"Sign a device or browser out."`
}

type devicesListCmd struct {
	jsonFlag
	serviceFlags
	pageFlags
}

func (c devicesListCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	return remoteList[client.Device]{
		columns: []string{"DEVICE", "KIND", "ADDRESS", "CREATED", "LAST USED", "ID"},
		read: func(cursor string, limit int64) ([]client.Device, *string, error) {
			page, err := service.Devices.List(p.ctx, client.DevicesListParams{Cursor: cursor, Limit: limit})
			if err != nil {
				return nil, nil, err
			}
			return page.Data, page.NextCursor, nil
		},
		cells: func(d client.Device) []string {
			name := d.Name
			if d.Current {
				name += " (this one)"
			}
			return []string{name, strings.ToLower(d.Kind), d.Address, showTime(d.Created), showTime(d.LastUsed), d.ID}
		},
	}.printPages(p, c.JSON, c.pageFlags)
}

type devicesRevokeCmd struct {
	jsonFlag
	serviceFlags
	ID string `arg:"" help:"Id of the device or browser." complete:"devices"`
}

func (c devicesRevokeCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	err = service.Devices.Revoke(p.ctx, client.DevicesRevokeParams{XDeviceID: c.ID})
	if e := client.HasCode(err, client.CodeNotFound); e { // browsers have a call of their own
		err = service.SignIn.EndSession(p.ctx, c.ID)
	}
	if err != nil {
		return err
	}
	return p.printResult(c.JSON, map[string]string{"id": c.ID}, "signed out "+c.ID)
}
