package provisioning

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
)

// User is a person as their company's identity provider sees them.
type User struct {
	ID         string
	Name       string // e-mail address
	ExternalID string
	Active     bool // the user is a member of the company
	// Attributes is a JSON object with further attributes that the identity
	// provider has sent. They are stored but not used. "" means none.
	Attributes string
	Groups     []Ref
	Created    time.Time
	Updated    time.Time
}

// Ref refers to a user by id and e-mail address, or to a group by id and name.
type Ref struct {
	ID   string
	Name string
}

// UserDraft contains the values of a user that an identity provider requests.
type UserDraft struct {
	Name       string
	ExternalID string
	Active     bool
	Attributes string
}

// UserQuery selects users. At most one of ID, Name and ExternalID is set; the
// database has an index for each of them.
type UserQuery struct {
	ID         *string
	Name       *string
	ExternalID *string
	Match      func(User) bool // nil selects all users
	Start      int             // number of the first user on the page, counted from 1
	Count      int             // maximum number of users on the page
}

var (
	errUserTaken = fault.New(fault.Invalid, "There is already a user with this userName.").On("userName").With("reason", "taken")
	errDomain    = fault.New(fault.Invalid, "The userName must be an e-mail address in a domain that the company has verified.").On("userName")
	errOldDomain = fault.New(fault.Invalid, "This userName is not in a domain that the company has verified, so only the person can change it.").On("userName")
)

// ListUsers returns a page of a company's users, ordered by e-mail address, and
// the number of all users that the query selects.
func (s *Service) ListUsers(ctx context.Context, client Client, q UserQuery) (page []User, total int, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		if q.Match == nil && q.ID == nil && q.Name == nil && q.ExternalID == nil {
			if total, err = company.CountProfiles(ctx, tx, client.companyID); err != nil {
				return err
			}
			rows, err := company.Profiles(ctx, tx, client.companyID, max(q.Start-1, 0), max(q.Count, 0))
			if err != nil {
				return err
			}
			page = asUsers(rows)
			return client.fillGroups(ctx, tx, page)
		}

		rows, err := client.findCandidates(ctx, tx, q)
		if err != nil {
			return err
		}
		var matches []User
		for _, u := range asUsers(rows) {
			if q.Match == nil || q.Match(u) {
				matches = append(matches, u)
			}
		}
		total = len(matches)
		page = slicePage(matches, q.Start, q.Count)
		return client.fillGroups(ctx, tx, page)
	})
	return page, total, err
}

// findCandidates returns the users with the query's ID, Name or ExternalID, or
// all users of the company if none is set.
func (c Client) findCandidates(ctx context.Context, tx *sqldb.Tx, q UserQuery) ([]company.Profile, error) {
	var id string
	switch {
	case q.ID != nil:
		id = *q.ID
	case q.Name != nil:
		p, err := person.ByEmail(ctx, tx, *q.Name)
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		id = p.ID
	case q.ExternalID != nil:
		return company.ProfilesByExternalID(ctx, tx, c.companyID, *q.ExternalID)
	default:
		rows, err := company.Profiles(ctx, tx, c.companyID, 0, maxScanned+1)
		if err == nil && len(rows) > maxScanned {
			err = errTooMany
		}
		return rows, err
	}

	p, err := company.ProfileOf(ctx, tx, c.companyID, id)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return []company.Profile{p}, nil
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

// fillGroups sets the groups of the given users.
func (c Client) fillGroups(ctx context.Context, tx *sqldb.Tx, users []User) error {
	index := map[string]int{}
	ids := make([]string, len(users))
	for i, u := range users {
		ids[i] = u.ID
		index[u.ID] = i
	}

	places, err := company.PlacesOf(ctx, tx, c.companyID, ids)
	for _, p := range places {
		u := &users[index[p.PersonID]]
		u.Groups = append(u.Groups, Ref{p.TeamID, p.Team})
	}
	return err
}

// GetUser returns a user of the client's company.
func (s *Service) GetUser(ctx context.Context, client Client, id string) (u User, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		u, err = client.readUser(ctx, tx, id)
		return err
	})
	return u, err
}

func (c Client) readUser(ctx context.Context, tx *sqldb.Tx, id string) (User, error) {
	p, err := company.ProfileOf(ctx, tx, c.companyID, id)
	if err != nil {
		return User{}, err
	}
	users := asUsers([]company.Profile{p})
	return users[0], c.fillGroups(ctx, tx, users)
}
