package company

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"time"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Invitation is a link with which people join a company, and a team if TeamID
// is set. It is live until it expires or its uses are used up.
type Invitation struct {
	ID          string
	CompanyID   string
	CompanyRole string
	TeamID      string // "" if the invitation is for the company only
	TeamRole    string
	Email       string // "" if everybody with the link can use it
	UsesLeft    int64
	InvitedBy   string // id of a person, "" for the operator
	Created     time.Time
	Expires     time.Time
}

// Draft contains the values of a new invitation.
type Draft struct {
	CompanyID   string
	CompanyRole string // "" means the role member
	TeamID      string // "" if the invitation is for the company only
	TeamRole    string // "" means the role "member" if TeamID is set
	Email       string // "" if everybody with the link can use it
	Uses        int64  // 0 means 1
	InvitedBy   string
	Lifetime    time.Duration
}

// Limits on invitations, and the length of their secrets.
const (
	secretChars = 40 // about 238 random bits
	maxUses     = 1000
	maxLifetime = 366 * 24 * time.Hour
	maxEmail    = 254 // maximum length of an e-mail address in bytes (RFC 5321 section 4.5.3.1.3)
)

// errNoInvitation is returned for every invitation that cannot be used:
// expired, used up, revoked, for another e-mail address, or unknown.
var errNoInvitation = fault.New(fault.NotFound, "This invitation does not exist or is no longer valid.")

// Invite creates an invitation. The second result is the secret of its link,
// which is not stored. If the invitation is for one e-mail address, the secret
// must be sent only to that address, because a person who presents the secret
// counts as the owner of the address.
func Invite(ctx context.Context, tx *sqldb.Tx, d Draft) (Invitation, string, error) {
	if d.CompanyRole == "" {
		d.CompanyRole = RoleMember
	}
	if d.TeamID != "" && d.TeamRole == "" {
		d.TeamRole = RoleMember
	}
	if d.Uses == 0 {
		d.Uses = 1
	}
	if err := d.validate(); err != nil {
		return Invitation{}, "", err
	}
	if err := Lock(ctx, tx, d.CompanyID); err != nil {
		return Invitation{}, "", err
	}
	if err := needRole(ctx, tx, d.CompanyID, d.CompanyRole, "company_role"); err != nil {
		return Invitation{}, "", err
	}
	if err := needTeam(ctx, tx, d.CompanyID, d.TeamID, d.TeamRole); err != nil {
		return Invitation{}, "", err
	}
	inv := Invitation{
		ID:          ids.New(),
		CompanyID:   d.CompanyID,
		CompanyRole: d.CompanyRole,
		TeamID:      d.TeamID,
		TeamRole:    d.TeamRole,
		Email:       d.Email,
		UsesLeft:    d.Uses,
		InvitedBy:   d.InvitedBy,
		Created:     tx.Now,
		Expires:     tx.Now.Add(d.Lifetime),
	}
	secret := ids.Text(secretChars)
	return inv, secret, insertInvitation(ctx, tx, inv, ids.Hash(secret))
}

func (d Draft) validate() error {
	problems := fault.New(fault.Invalid, "The invitation is invalid.")
	most := int64(maxUses)
	if d.Email != "" {
		most = 1
		a, err := mail.ParseAddress(d.Email)
		if err != nil || a.Address != d.Email || len(d.Email) > maxEmail || !utf8.ValidString(d.Email) {
			problems = problems.Field("email", "This is not an e-mail address.")
		}
	}
	if d.Uses < 1 || d.Uses > most {
		problems = problems.Field("uses", fmt.Sprintf("An invitation for one e-mail address can be used once; any other invitation 1 to %d times.", maxUses))
	}
	if d.Lifetime < time.Second || d.Lifetime > maxLifetime {
		problems = problems.Field("lifetime", "Must be from one second to 366 days.")
	}
	if len(problems.Fields) > 0 {
		return problems
	}
	return nil
}

// needTeam returns an error if the team does not belong to the company or does
// not have the role. The caller has locked the company's row.
func needTeam(ctx context.Context, tx *sqldb.Tx, companyID, teamID, role string) error {
	if teamID == "" {
		if role != "" {
			return fault.New(fault.Invalid, "A role in a team requires the team.").On("team_role")
		}
		return nil
	}
	t, err := TeamByID(ctx, tx, teamID)
	if errors.Is(err, errNoTeam) || err == nil && t.CompanyID != companyID {
		return fault.New(fault.Invalid, "The company has no such team.").On("team_id")
	}
	if err != nil {
		return err
	}
	return needTeamRole(ctx, tx, teamID, role, "team_role")
}

// After is the position after which a page of invitations begins: the last
// invitation of the previous page.
type After struct {
	Created time.Time
	ID      string
}

// InvitationsFor returns the live invitations for an e-mail address, newest first.
// Only a person who has verified the address may see them.
func InvitationsFor(ctx context.Context, tx *sqldb.Tx, email string) ([]Invitation, error) {
	return invitationsFor(ctx, tx, emailKey(email))
}

// InvitationBySecret returns the live invitation whose link has the given
// secret.
func InvitationBySecret(ctx context.Context, tx *sqldb.Tx, secret string) (Invitation, error) {
	return invitationByHash(ctx, tx, ids.Hash(secret))
}

// InvitationByID returns the live invitation with the given id.
func InvitationByID(ctx context.Context, tx *sqldb.Tx, id string) (Invitation, error) {
	if !ids.Valid(id) {
		return Invitation{}, errNoInvitation
	}
	return invitationByID(ctx, tx, id)
}

// MayJoin returns the live invitation with the given secret, and whether a
// person with the given e-mail address can use it.
func MayJoin(ctx context.Context, tx *sqldb.Tx, secret, email string) (Invitation, bool, error) {
	inv, err := InvitationBySecret(ctx, tx, secret)
	if errors.Is(err, errNoInvitation) {
		return Invitation{}, false, nil
	}
	if err != nil || !inv.matchesEmail(email) {
		return Invitation{}, false, err
	}
	return inv, true, nil
}

// matchesEmail reports whether the invitation is for the given e-mail address or
// for any address.
func (inv Invitation) matchesEmail(email string) bool {
	return inv.Email == "" || emailKey(inv.Email) == emailKey(email)
}

// AcceptSecret adds a person to the company and the team of the invitation with
// the given secret. If the person is already a member, their roles do not
// change, the invitation is not used up, and fresh is false.
func AcceptSecret(ctx context.Context, tx *sqldb.Tx, secret, personID, email string) (inv Invitation, fresh bool, err error) {
	inv, err = InvitationBySecret(ctx, tx, secret)
	if err != nil {
		return Invitation{}, false, err
	}
	if !inv.matchesEmail(email) {
		return Invitation{}, false, errNoInvitation
	}
	return acceptInvitation(ctx, tx, inv, personID)
}

// AcceptByID is AcceptSecret for a person who has verified the e-mail address to
// which the invitation was sent, and therefore needs no secret. An invitation
// without an e-mail address cannot be accepted by id.
func AcceptByID(ctx context.Context, tx *sqldb.Tx, id, personID, email string, verified bool) (inv Invitation, fresh bool, err error) {
	inv, err = InvitationByID(ctx, tx, id)
	if err != nil {
		return Invitation{}, false, err
	}
	if inv.Email == "" || !inv.matchesEmail(email) || !verified {
		return Invitation{}, false, errNoInvitation
	}
	return acceptInvitation(ctx, tx, inv, personID)
}

func acceptInvitation(ctx context.Context, tx *sqldb.Tx, inv Invitation, personID string) (Invitation, bool, error) {
	if err := Lock(ctx, tx, inv.CompanyID); err != nil {
		return Invitation{}, false, err
	}
	in, err := isIn(ctx, tx, inv, personID)
	if err != nil || in {
		return inv, false, err
	}
	off, err := isDeactivated(ctx, tx, inv.CompanyID, personID)
	if err != nil {
		return Invitation{}, false, err
	}
	if off {
		return Invitation{}, false, errBarred
	}
	// The invitation may have been used up or revoked, or its team removed,
	// since it was read.
	if inv.UsesLeft, err = useInvitation(ctx, tx, inv.ID); err != nil {
		return Invitation{}, false, err
	}
	if _, err := addMember(ctx, tx, inv.CompanyID, personID, inv.CompanyRole); err != nil {
		return Invitation{}, false, err
	}
	if inv.TeamID != "" {
		if _, err := addTeamMember(ctx, tx, inv.TeamID, personID, inv.TeamRole, Invited); err != nil {
			return Invitation{}, false, err
		}
	}
	return inv, true, nil
}

// isIn reports whether a person is already a member of the invitation's team,
// or of the company if the invitation has no team.
func isIn(ctx context.Context, tx *sqldb.Tx, inv Invitation, personID string) (bool, error) {
	if inv.TeamID != "" {
		return isTeamMember(ctx, tx, inv.TeamID, personID)
	}
	return isMember(ctx, tx, inv.CompanyID, personID)
}

// Revoke deletes an invitation of the company, even if it has expired or is
// used up.
func Revoke(ctx context.Context, tx *sqldb.Tx, companyID, id string) error {
	if !ids.Valid(id) {
		return errNoInvitation
	}
	found, err := deleteInvitation(ctx, tx, companyID, id)
	if err != nil {
		return err
	}
	if !found {
		return errNoInvitation
	}
	return nil
}
