package invitations

import (
	"errors"
	"slices"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/fault"
	"atelier/internal/people/company"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// asInvitation converts an invitation to its API representation. link is ""
// unless the invitation was just created.
func asInvitation(i company.Invitation, link string) wire.Invitation {
	return wire.Invitation{
		ID:          i.ID,
		CompanyID:   i.CompanyID,
		CompanyRole: i.CompanyRole,
		TeamID:      rest.TextOrNull(i.TeamID),
		TeamRole:    rest.TextOrNull(i.TeamRole),
		Email:       rest.TextOrNull(i.Email),
		UsesLeft:    i.UsesLeft,
		InvitedBy:   rest.TextOrNull(i.InvitedBy),
		Created:     rest.Moment(i.Created),
		Expires:     rest.Moment(i.Expires),
		URL:         rest.TextOrNull(link),
	}
}

func asReceivedInvitation(o companyadmin.Offer) wire.ReceivedInvitation {
	return wire.ReceivedInvitation{
		ID:          o.ID,
		CompanyID:   o.CompanyID,
		CompanyName: o.Company,
		TeamID:      rest.TextOrNull(o.TeamID),
		TeamName:    rest.TextOrNull(o.Team),
		Created:     rest.Moment(o.Created),
		Expires:     rest.Moment(o.Expires),
	}
}

// renameField replaces the path of an invalid field in an error with its name
// in the API.
func renameField(err error, path, name string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	c := *f
	c.Fields = slices.Clone(f.Fields)
	for i := range c.Fields {
		if c.Fields[i].Path == path {
			c.Fields[i].Path = name
		}
	}
	return &c
}
