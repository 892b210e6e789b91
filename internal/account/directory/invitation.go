package directory

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mail"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
)

// lifetime is how long an invitation lasts that does not say it.
const lifetime = 7 * 24 * time.Hour

// Limits on mail to people who did not ask for it. The operator has none.
var (
	mailsPerPerson = ratelimit.Window{Most: 200, Span: time.Hour}
	mailsToAddress = ratelimit.Window{Most: 5, Span: time.Hour} // from one company
)

// Invite makes an invitation, for a week unless the draft says how long. One
// for an address goes there by mail, and nowhere else: whoever has its link
// counts as the address's owner. Of any other the actor gets the link, this
// once.
func (d *Directory) Invite(ctx context.Context, a Actor, draft company.Draft) (inv company.Invitation, link string, err error) {
	draft.InvitedBy = a.PersonID
	if draft.Lifetime == 0 {
		draft.Lifetime = lifetime
	}
	err = d.change(ctx, a, draft.CompanyID, managesMembers, func(tx *sqldb.Tx, s standing) (e audit.Entry, err error) {
		if err := s.mayInvite(ctx, tx, draft); err != nil {
			return e, err
		}
		var secret string
		if inv, secret, err = company.Invite(ctx, tx, draft); err != nil {
			return e, err
		}
		link = d.AppURL + "/invitation?" + url.Values{"token": {secret}}.Encode()
		if inv.Email != "" {
			err = d.mailInvitation(ctx, tx, s, inv, link)
			link = ""
		}
		return audit.Entry{Act: audit.InvitationCreated, Details: map[string]string{
			"invitation": inv.ID, "email": person.Hint(inv.Email), "role": inv.CompanyRole, "team": inv.TeamID, "team_role": inv.TeamRole,
			"uses": strconv.FormatInt(inv.UsesLeft, 10),
		}}, err
	})
	return inv, link, err
}

// mayInvite refuses roles that the actor could not give.
func (s standing) mayInvite(ctx context.Context, tx *sqldb.Tx, draft company.Draft) error {
	if err := s.coversRole(ctx, tx, orMember(draft.CompanyRole)); err != nil {
		return err
	}
	return s.mayLeadTo(ctx, tx, draft.TeamID, orMember(draft.TeamRole))
}

// orMember is the role of people who bring no other.
func orMember(role string) string {
	if role == "" {
		return company.RoleMember
	}
	return role
}

func (d *Directory) mailInvitation(ctx context.Context, tx *sqldb.Tx, s standing, inv company.Invitation, link string) error {
	by := "You are invited"
	if !s.actor.operator() {
		if err := countMail(ctx, tx, inv); err != nil {
			return err
		}
		p, err := person.ByID(ctx, tx, inv.InvitedBy)
		if err != nil {
			return err
		}
		by = printable(p.Email) + " invites you"
	}
	m := mail.Message{To: inv.Email, Subject: "You are invited to join a company", Text: fmt.Sprintf(
		"%s to join the company “%s”.\n\nAccept the invitation: %s\n\nThe link works once, until %s. If you do not know what this is about, leave it be.\n",
		by, printable(s.Company.Name), link, inv.Expires.Format("2006-01-02 15:04 UTC"))}
	if err := m.Check(); err != nil {
		return fault.New(fault.Invalid, "This address can't be written to.").On("email").Because(err)
	}
	return d.Post.Send(ctx, tx, m)
}

// countMail holds a mail against the limits.
func countMail(ctx context.Context, tx *sqldb.Tx, inv company.Invitation) error {
	email := strings.ToLower(inv.Email)
	for _, l := range []struct {
		key    ratelimit.Key
		window ratelimit.Window
	}{
		{ratelimit.Key{Name: "invitation/person/" + inv.InvitedBy, Subject: inv.InvitedBy}, mailsPerPerson},
		{ratelimit.Key{Name: "invitation/email/" + inv.CompanyID + "/" + email, Subject: email}, mailsToAddress},
	} {
		_, full, err := ratelimit.Take(ctx, tx, l.key, l.window)
		if err != nil {
			return err
		}
		if full.Wait > 0 {
			return full.Fault("Too many invitations by mail. Wait a little.")
		}
	}
	return nil
}

// printable keeps what a line of a mail can show: names may have characters in
// them that break lines or turn the direction of what follows.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// Invitations gives a company's live invitations, newest first, from after on.
func (d *Directory) Invitations(ctx context.Context, a Actor, companyID string, after *company.After, limit int) (all []company.Invitation, err error) {
	err = d.look(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, _ standing) error {
		all, err = company.Invitations(ctx, tx, companyID, after, limit)
		return err
	})
	return all, err
}

// RevokeInvitation ends a live invitation.
func (d *Directory) RevokeInvitation(ctx context.Context, a Actor, id string) error {
	var companyID string
	err := d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		inv, err := company.InvitationByID(ctx, tx, id)
		companyID = inv.CompanyID
		return err
	})
	if err == nil {
		err = d.change(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, _ standing) (audit.Entry, error) {
			return audit.Entry{Act: audit.InvitationRevoked, Details: map[string]string{"invitation": id}}, company.Revoke(ctx, tx, companyID, id)
		})
	}
	if fault.Is(err, fault.NotFound) {
		return errNoInvitation
	}
	return err
}

// Offer is an invitation as the person sees it whom it is for.
type Offer struct {
	company.Invitation
	Company string // its name
	Team    string // its name, "" for the company only
}

// Offers gives the live invitations for the actor's address, newest first.
// There are none for one that is not verified: it may be somebody else's.
func (d *Directory) Offers(ctx context.Context, a Actor) (all []Offer, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all = nil
		p, err := person.ByID(ctx, tx, a.PersonID)
		if err != nil || !p.EmailVerified {
			return err
		}
		invitations, err := company.InvitationsFor(ctx, tx, p.Email)
		if err != nil {
			return err
		}
		for _, inv := range invitations {
			o := Offer{Invitation: inv}
			c, err := company.ByID(ctx, tx, inv.CompanyID)
			if err != nil {
				return err
			}
			o.Company = c.Name
			if inv.TeamID != "" {
				t, err := company.TeamByID(ctx, tx, inv.TeamID)
				if err != nil {
					return err
				}
				o.Team = t.Name
			}
			all = append(all, o)
		}
		return nil
	})
	return all, err
}
