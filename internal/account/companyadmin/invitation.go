package companyadmin

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
	"atelier/internal/notify/mailqueue"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// Invitations manages invitations to companies and teams.
type Invitations struct {
	db     auditedDB
	mail   mailqueue.Outbox
	appURL string
}

// defaultLifetime is the lifetime of invitations whose draft sets none.
const defaultLifetime = 7 * 24 * time.Hour

// Rate limits for invitation mails, because these mails reach people who did
// not request them. The limits do not apply to the operator.
var (
	mailsPerPerson  = ratelimit.Window{Max: 200, Span: time.Hour}
	mailsPerAddress = ratelimit.Window{Max: 5, Span: time.Hour} // from one company to one e-mail address
)

// CreateInvitation creates an invitation, valid for a week if the draft has no
// lifetime. If the invitation is for one e-mail address, its link is only sent to
// that address, because opening the link proves ownership of the address.
// Otherwise the link is returned; it cannot be retrieved later.
func (s *Invitations) CreateInvitation(ctx context.Context, caller principal.Principal, draft company.Draft) (inv company.Invitation, link string, err error) {
	draft.InvitedBy = caller.PersonID
	if draft.Lifetime == 0 {
		draft.Lifetime = defaultLifetime
	}

	err = s.db.changeCompany(ctx, caller, draft.CompanyID, requireManageMembers, func(tx *sqldb.Tx, c companyAccess) (e audit.Entry, err error) {
		if err := c.authorizeInvitation(ctx, tx, draft); err != nil {
			return e, err
		}
		var secret string
		if inv, secret, err = company.Invite(ctx, tx, draft); err != nil {
			return e, err
		}

		link = s.appURL + "/invitation?" + url.Values{"token": {secret}}.Encode()
		if inv.Email != "" {
			err = s.mailInvitation(ctx, tx, c, inv, link)
			link = ""
		}
		return audit.Entry{Act: audit.InvitationCreated, Details: map[string]string{
			"invitation": inv.ID,
			"email":      person.MaskEmail(inv.Email),
			"role":       inv.CompanyRole,
			"team":       inv.TeamID,
			"team_role":  inv.TeamRole,
			"uses":       strconv.FormatInt(inv.UsesLeft, 10),
		}}, err
	})
	return inv, link, err
}

// authorizeInvitation refuses an invitation with roles that the caller is not
// allowed to grant.
func (c companyAccess) authorizeInvitation(ctx context.Context, tx *sqldb.Tx, draft company.Draft) error {
	if err := c.requireRole(ctx, tx, roleOrMember(draft.CompanyRole)); err != nil {
		return err
	}
	return c.authorizeTeamEntry(ctx, tx, draft.TeamID, roleOrMember(draft.TeamRole))
}

func (s *Invitations) mailInvitation(ctx context.Context, tx *sqldb.Tx, c companyAccess, inv company.Invitation, link string) error {
	opening := "You are invited"
	if !c.caller.Operator {
		if err := countInvitationMail(ctx, tx, inv); err != nil {
			return err
		}
		p, err := person.ByID(ctx, tx, inv.InvitedBy)
		if err != nil {
			return err
		}
		opening = PrintableText(p.Email) + " invites you"
	}

	m := mail.Message{To: inv.Email, Subject: "You are invited to join a company", Text: fmt.Sprintf(
		"%s to join the company “%s”.\n\nAccept the invitation: %s\n\nThe link works once, until %s. If you did not expect this invitation, ignore this mail.\n",
		opening, PrintableText(c.Company.Name), link, inv.Expires.Format("2006-01-02 15:04 UTC"))}
	if err := m.CheckMessage(); err != nil {
		return fault.New(fault.Invalid, "Mail cannot be sent to this address.").On("email").Because(err)
	}
	return s.mail.QueueMessage(ctx, tx, m)
}

// countInvitationMail counts an invitation mail against the rate limits, and
// refuses it if a limit is reached.
func countInvitationMail(ctx context.Context, tx *sqldb.Tx, inv company.Invitation) error {
	email := strings.ToLower(inv.Email)
	for _, limit := range []struct {
		key    ratelimit.Key
		window ratelimit.Window
	}{
		{ratelimit.Key{Name: "invitation/person/" + inv.InvitedBy, Subject: inv.InvitedBy}, mailsPerPerson},
		{ratelimit.Key{Name: "invitation/email/" + inv.CompanyID + "/" + email, Subject: email}, mailsPerAddress},
	} {
		_, full, err := ratelimit.Take(ctx, tx, limit.key, limit.window)
		if err != nil {
			return err
		}
		if full.Wait > 0 {
			return full.Fault("Too many invitations were sent by mail. Try again later.")
		}
	}
	return nil
}

// PrintableText replaces characters that would break a line of a mail, or
// change the direction of the text after them, with spaces. Company names and
// e-mail addresses can contain such characters.
func PrintableText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// ListInvitations returns at most limit live invitations of a company, newest
// first, starting after the given position.
func (s *Invitations) ListInvitations(ctx context.Context, caller principal.Principal, companyID string, after *company.After, limit int) (all []company.Invitation, err error) {
	err = s.db.readCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, _ companyAccess) error {
		all, err = company.Invitations(ctx, tx, companyID, after, limit)
		return err
	})
	return all, err
}

// RevokeInvitation revokes a live invitation.
func (s *Invitations) RevokeInvitation(ctx context.Context, caller principal.Principal, id string) error {
	var companyID string
	err := s.db.Read(ctx, func(tx *sqldb.Tx) error {
		inv, err := company.InvitationByID(ctx, tx, id)
		companyID = inv.CompanyID
		return err
	})
	if err == nil {
		err = s.db.changeCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, _ companyAccess) (audit.Entry, error) {
			return audit.Entry{Act: audit.InvitationRevoked, Details: map[string]string{"invitation": id}}, company.Revoke(ctx, tx, companyID, id)
		})
	}
	if fault.Is(err, fault.NotFound) {
		return errNoInvitation
	}
	return err
}

// Offer is an invitation as the invited person sees it.
type Offer struct {
	company.Invitation
	Company string // name of the company
	Team    string // name of the team, "" for an invitation to the company only
}

// ListOffers returns the live invitations for the caller's e-mail address, newest
// first. It returns none for an unverified address, because that address may
// belong to another person.
func (s *Invitations) ListOffers(ctx context.Context, caller principal.Principal) (all []Offer, err error) {
	err = s.db.Read(ctx, func(tx *sqldb.Tx) error {
		all = nil
		p, err := person.ByID(ctx, tx, caller.PersonID)
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
