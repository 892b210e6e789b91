package provisioning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mail"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
)

// User is a person as their company's directory sees them.
type User struct {
	ID         string
	Name       string // their mail address
	ExternalID string
	Active     bool // a member of the company
	// Attributes are what the directory said and nobody here uses, as JSON; ""
	// where it said nothing.
	Attributes string
	Groups     []Ref
	Created    time.Time
	Updated    time.Time
}

// Ref names a user by id and address, or a group by id and name.
type Ref struct{ ID, Name string }

// UserDraft is what a directory wants a user to be.
type UserDraft struct {
	Name       string
	ExternalID string
	Active     bool
	Attributes string
}

// UserQuery chooses users. Of ID, Name and ExternalID one at most is set; it
// goes by an index.
type UserQuery struct {
	ID, Name, ExternalID *string
	Match                func(User) bool // nil: all
	Start, Count         int             // a page, from 1 on
}

var (
	errUserTaken = fault.New(fault.Invalid, "Somebody with this userName is here already.").On("userName").With("reason", "taken")
	errDomain    = fault.New(fault.Invalid, "The userName must be a mail address in a domain that the company has verified.").On("userName")
	errOldDomain = fault.New(fault.Invalid, "This userName is not in a domain that the company has verified, so only the person can change it.").On("userName")
)

// Users gives a page of a company's users by address, and how many there are.
func (d *Service) ListUsers(ctx context.Context, s Client, q UserQuery) (page []User, total int, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		if q.Match == nil && q.ID == nil && q.Name == nil && q.ExternalID == nil {
			if total, err = company.CountProfiles(ctx, tx, s.companyID); err != nil {
				return err
			}
			rows, err := company.Profiles(ctx, tx, s.companyID, max(q.Start-1, 0), max(q.Count, 0))
			page = asUsers(rows)
			return orElse(err, withGroups(ctx, tx, s, page))
		}
		rows, err := s.candidates(ctx, tx, q)
		if err != nil {
			return err
		}
		var fit []User
		for _, u := range asUsers(rows) {
			if q.Match == nil || q.Match(u) {
				fit = append(fit, u)
			}
		}
		total = len(fit)
		page = window(fit, q.Start, q.Count)
		return withGroups(ctx, tx, s, page)
	})
	return page, total, err
}

// candidates gives the rows that a query can mean.
func (s Client) candidates(ctx context.Context, tx *sqldb.Tx, q UserQuery) ([]company.Profile, error) {
	var id string
	switch {
	case q.ID != nil:
		id = *q.ID
	case q.Name != nil:
		p, err := person.ByEmail(ctx, tx, *q.Name)
		if err != nil {
			return nil, unless(err, fault.NotFound)
		}
		id = p.ID
	case q.ExternalID != nil:
		return company.ProfilesNamed(ctx, tx, s.companyID, *q.ExternalID)
	default:
		rows, err := company.Profiles(ctx, tx, s.companyID, 0, maxScan+1)
		if err == nil && len(rows) > maxScan {
			err = errTooMany
		}
		return rows, err
	}
	p, err := company.ProfileOf(ctx, tx, s.companyID, id)
	if err != nil {
		return nil, unless(err, fault.NotFound)
	}
	return []company.Profile{p}, nil
}

// unless gives the error where it has another code.
func unless(err error, code fault.Code) error {
	if fault.Is(err, code) {
		return nil
	}
	return err
}

func asUsers(rows []company.Profile) []User {
	all := make([]User, len(rows))
	for i, p := range rows {
		all[i] = User{
			ID:         p.PersonID,
			Name:       p.Email,
			ExternalID: p.ExternalID,
			Active:     p.Active,
			Attributes: p.Attributes,
			Created:    p.Created,
			Updated:    p.Updated,
		}
	}
	return all
}

// withGroups fills in the groups of users.
func withGroups(ctx context.Context, tx *sqldb.Tx, s Client, users []User) error {
	at := map[string]int{}
	ids := make([]string, len(users))
	for i, u := range users {
		ids[i] = u.ID
		at[u.ID] = i
	}
	places, err := company.PlacesOf(ctx, tx, s.companyID, ids)
	for _, p := range places {
		u := &users[at[p.PersonID]]
		u.Groups = append(u.Groups, Ref{p.TeamID, p.Team})
	}
	return err
}

// User gives one user. People whom the company does not know do not exist for
// its directory.
func (d *Service) GetUser(ctx context.Context, s Client, id string) (u User, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		u, err = s.user(ctx, tx, id)
		return err
	})
	return u, err
}

func (s Client) user(ctx context.Context, tx *sqldb.Tx, id string) (User, error) {
	p, err := company.ProfileOf(ctx, tx, s.companyID, id)
	if err != nil {
		return User{}, err
	}
	one := asUsers([]company.Profile{p})
	return one[0], withGroups(ctx, tx, s, one)
}

// CreateUser takes somebody into the company whose address is in one of its
// domains, and makes them an account where nobody has that address.
func (d *Service) CreateUser(ctx context.Context, s Client, draft UserDraft) (u User, err error) {
	if person.CheckEmail(draft.Name) != nil {
		return u, errDomain
	}
	err = d.act(ctx, s, func(tx *sqldb.Tx) ([]audit.Entry, error) {
		if err := s.owns(ctx, tx, draft.Name, errDomain); err != nil {
			return nil, err
		}
		// The person before the company: everybody locks in this order.
		p, fresh, entries, err := d.Vouch(ctx, tx, draft.Name)
		if errors.Is(err, person.ErrTaken) {
			return nil, errUserTaken
		}
		if err != nil {
			return nil, err
		}
		if err := company.Lock(ctx, tx, s.companyID); err != nil {
			return nil, err
		}
		if err := s.owns(ctx, tx, draft.Name, errDomain); err != nil { // still
			return nil, err
		}
		_, err = company.ProfileOf(ctx, tx, s.companyID, p.ID)
		if !fault.Is(err, fault.NotFound) {
			return nil, orElse(err, errUserTaken)
		}
		if err := company.KeepProfile(ctx, tx, s.companyID, profile(p.ID, tx.Now, draft)); err != nil {
			return nil, err
		}
		entries = append(entries, audit.Entry{Act: audit.ScimUserMade, PersonID: p.ID})
		if draft.Active {
			more, err := d.activate(ctx, tx, s, p.ID)
			if err != nil {
				return nil, err
			}
			entries = append(entries, more...)
			if err := d.tellJoined(ctx, tx, s, p, fresh); err != nil {
				return nil, err
			}
		}
		u, err = s.user(ctx, tx, p.ID)
		return entries, err
	})
	return u, err
}

func profile(id string, created time.Time, draft UserDraft) company.Profile {
	return company.Profile{PersonID: id, ExternalID: draft.ExternalID, Attributes: draft.Attributes, Created: created}
}

// owns refuses an address in a domain that the company has not proven.
func (s Client) owns(ctx context.Context, tx *sqldb.Tx, email string, refusal error) error {
	owns, err := company.OwnsDomain(ctx, tx, s.companyID, email)
	if err == nil && !owns {
		err = refusal
	}
	return err
}

// ChangeUser makes a user into what change wants of them. It may be asked more
// than once.
func (d *Service) ChangeUser(ctx context.Context, s Client, id string, change func(User) (UserDraft, error)) (u User, err error) {
	ended := false
	err = d.act(ctx, s, func(tx *sqldb.Tx) ([]audit.Entry, error) {
		was, err := s.held(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		draft, err := change(was)
		if err != nil {
			return nil, err
		}
		var entries []audit.Entry
		if draft.Name != was.Name {
			e, err := d.rename(ctx, tx, s, was, draft.Name)
			if err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}
		if ended = was.Active && !draft.Active; draft != (UserDraft{was.Name, was.ExternalID, was.Active, was.Attributes}) {
			if err := company.KeepProfile(ctx, tx, s.companyID, profile(id, was.Created, draft)); err != nil {
				return nil, err
			}
			e := audit.Entry{Act: audit.ScimUserChanged, PersonID: id}
			entries = append(entries, e.Changing(describeUser(was.Active), describeUser(draft.Active)))
			vouched, err := d.vouch(ctx, tx, s, draft.Name)
			if err != nil {
				return nil, err
			}
			entries = append(entries, vouched...)
		}
		var more []audit.Entry
		switch {
		case ended:
			more, err = s.end(ctx, tx, id, company.Deactivate)
		case draft.Active && !was.Active:
			if more, err = d.activate(ctx, tx, s, id); err == nil {
				err = d.tellAgain(ctx, tx, s, id)
			}
		}
		if err != nil {
			return nil, err
		}
		u, err = s.user(ctx, tx, id)
		return append(entries, more...), err
	})
	if err == nil && ended {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return u, err
}

// vouch has the account be whose the address is, where the company owns its
// domain: who signed up with it and was let in may be a stranger, and is about to
// get what the directory gives.
func (d *Service) vouch(ctx context.Context, tx *sqldb.Tx, s Client, email string) ([]audit.Entry, error) {
	owns, err := company.OwnsDomain(ctx, tx, s.companyID, email)
	if err != nil || !owns {
		return nil, err
	}
	_, _, entries, err := d.Vouch(ctx, tx, email)
	return entries, err
}

// held gives a user whose person and company are locked, in this order.
func (s Client) held(ctx context.Context, tx *sqldb.Tx, id string) (User, error) {
	if _, err := company.ProfileOf(ctx, tx, s.companyID, id); err != nil { // before others can be kept waiting
		return User{}, err
	}
	// Who was deleted meanwhile is not found below, like everybody else who is not there.
	if err := person.Lock(ctx, tx, id); err != nil && !errors.Is(err, person.ErrDeleted) {
		return User{}, err
	}
	if err := company.Lock(ctx, tx, s.companyID); err != nil {
		return User{}, err
	}
	return s.user(ctx, tx, id)
}

// rename gives somebody another address. Both must be the company's to give:
// whoever reads the mail there can have the account.
func (d *Service) rename(ctx context.Context, tx *sqldb.Tx, s Client, was User, email string) (e audit.Entry, err error) {
	if person.CheckEmail(email) != nil {
		return e, errDomain
	}
	if err := s.owns(ctx, tx, was.Name, errOldDomain); err != nil {
		return e, err
	}
	if err := s.owns(ctx, tx, email, errDomain); err != nil {
		return e, err
	}
	err = person.SetEmail(ctx, tx, was.ID, email)
	if errors.Is(err, person.ErrTaken) {
		return e, errUserTaken
	}
	if err != nil {
		return e, err
	}
	text := "Your company's directory has changed the address of your account from " + companyadmin.PrintableText(was.Name) + " to " + companyadmin.PrintableText(email) + "."
	if err := person.Notify(ctx, tx, was.ID, "email", text); err != nil {
		return e, err
	}
	for _, to := range []string{was.Name, email} {
		if err := d.send(ctx, tx, mail.Message{To: to, Subject: "Your address was changed", Text: text + "\n\nIf you did not expect this, ask the admins of your company.\n"}); err != nil {
			return e, err
		}
	}
	e = audit.Entry{Act: audit.PersonEmailChanged, PersonID: was.ID, Details: map[string]string{"email": person.Hint(email), "before": person.Hint(was.Name)}}
	return e.Changing(person.Hint(was.Name), person.Hint(email)), nil
}

// DeleteUser takes somebody out of the company and forgets what its directory
// said about them. Their account stays theirs.
func (d *Service) DeleteUser(ctx context.Context, s Client, id string) error {
	err := d.act(ctx, s, func(tx *sqldb.Tx) (entries []audit.Entry, err error) {
		was, err := s.held(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		if was.Active {
			if entries, err = s.end(ctx, tx, id, company.RemoveMember); err != nil {
				return nil, err
			}
		}
		return append(entries, audit.Entry{Act: audit.ScimUserDeleted, PersonID: id}), company.DropProfile(ctx, tx, s.companyID, id)
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

// end takes a member out of the company and its teams in the way that leave
// does. The access tokens that the company made for them die with it.
func (s Client) end(ctx context.Context, tx *sqldb.Tx, id string, leave func(context.Context, *sqldb.Tx, string, string) ([]string, error)) (entries []audit.Entry, err error) {
	was, err := companyadmin.FindMembership(ctx, tx, id, s.companyID)
	if err != nil {
		return nil, err
	}
	teams, err := leave(ctx, tx, s.companyID, id)
	if err != nil {
		return nil, err
	}
	tokens, err := credential.DeleteOf(ctx, tx, id, s.companyID)
	if err != nil {
		return nil, err
	}
	if was != nil && was.Role.May(company.ManageMembers) {
		if left, err := company.HasAdmin(ctx, tx, s.companyID); err != nil || !left {
			return nil, orElse(err, companyadmin.ErrLastAdmin)
		}
	}
	for _, t := range tokens {
		entries = append(entries, audit.Entry{Act: audit.TokenDeleted, PersonID: id, Details: map[string]string{"token": t.ID, "name": t.Name}})
	}
	from := ""
	if was != nil {
		from = was.Role.Name
	}
	e := audit.Entry{Act: audit.CompanyMemberRemoved, PersonID: id, Details: map[string]string{"teams": strings.Join(teams, " ")}}
	return append(entries, e.Changing(from, "")), nil
}

// activate brings somebody into the company, with the roles that they had.
func (d *Service) activate(ctx context.Context, tx *sqldb.Tx, s Client, id string) ([]audit.Entry, error) {
	role, teams, err := company.Activate(ctx, tx, s.companyID, id)
	e := audit.Entry{Act: audit.CompanyMemberSet, PersonID: id, Details: map[string]string{"role": role, "teams": strings.Join(teams, " ")}}
	return []audit.Entry{e.Changing("", role)}, err
}

// tellAgain is tellJoined for somebody who has an account.
func (d *Service) tellAgain(ctx context.Context, tx *sqldb.Tx, s Client, id string) error {
	p, err := person.ByID(ctx, tx, id)
	if err != nil {
		return err
	}
	return d.tellJoined(ctx, tx, s, p, false)
}

// tellJoined tells somebody that they are in the company now, and how to get
// into an account that was made for them.
func (d *Service) tellJoined(ctx context.Context, tx *sqldb.Tx, s Client, p person.Person, fresh bool) error {
	c, err := company.ByID(ctx, tx, s.companyID)
	if err != nil {
		return err
	}
	m := mail.Message{To: p.Email, Subject: "You are a member of a company", Text: fmt.Sprintf(
		"You are a member of the company “%s” now.\n\nSign in at %s/signin\n", companyadmin.PrintableText(c.Name), d.AppURL)}
	if fresh {
		m.Subject = "You have an account"
		m.Text = fmt.Sprintf(
			"The company “%s” has made an account for you.\n\nSign in with your company at %s/signin or choose a password at %s/forgot\n", companyadmin.PrintableText(c.Name), d.AppURL, d.AppURL)
	}
	return d.send(ctx, tx, m)
}

// send queues a mail, and refuses addresses that cannot be written to.
func (d *Service) send(ctx context.Context, tx *sqldb.Tx, m mail.Message) error {
	if err := m.Check(); err != nil {
		return fault.New(fault.Invalid, "This address can't be written to.").On("userName").Because(err)
	}
	return d.Mail.Send(ctx, tx, m)
}
