package provisioning

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
)

// Group is a team as its company's identity provider sees it.
type Group struct {
	ID         string
	Name       string
	ExternalID string
	// Members are the members of the team and the inactive users who will
	// rejoin it when they are activated, ordered by e-mail address.
	Members []Ref
	Created time.Time
	Updated time.Time
}

// GroupDraft contains the values of a group that an identity provider requests.
type GroupDraft struct {
	Name       string
	ExternalID string
	Members    []string // ids of users, without duplicates
}

// GroupQuery selects groups. At most one of ID, Name and ExternalID is set; the
// database has an index for each of them.
type GroupQuery struct {
	ID           *string
	Name         *string
	ExternalID   *string
	Match        func(Group) bool // nil selects all groups
	WithMembers  bool             // include the members in the result
	MatchMembers bool             // Match needs the members of the groups
	Start        int              // number of the first group on the page, counted from 1
	Count        int              // maximum number of groups on the page
}

// maxGroupMembers is the maximum number of members that an identity provider
// can assign to a group.
const maxGroupMembers = 10_000

// ListGroups returns a page of a company's groups, ordered by name, and the
// number of all groups that the query selects.
func (s *Service) ListGroups(ctx context.Context, client Client, q GroupQuery) (page []Group, total int, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		if q.Match == nil && q.ID == nil && q.Name == nil && q.ExternalID == nil {
			if total, err = company.CountGroups(ctx, tx, client.companyID); err != nil {
				return err
			}
			rows, err := company.Groups(ctx, tx, client.companyID, max(q.Start-1, 0), max(q.Count, 0))
			page = asGroups(rows)
			if err != nil || !q.WithMembers {
				return err
			}
			return client.fillMembers(ctx, tx, page, false)
		}

		rows, err := client.findCandidateGroups(ctx, tx, q)
		if err != nil {
			return err
		}
		all := asGroups(rows)
		if q.MatchMembers {
			if err := client.fillMembers(ctx, tx, all, true); err != nil {
				return err
			}
		}

		var matches []Group
		for _, g := range all {
			if q.Match == nil || q.Match(g) {
				matches = append(matches, g)
			}
		}
		total = len(matches)
		page = slicePage(matches, q.Start, q.Count)
		if !q.WithMembers || q.MatchMembers {
			return nil
		}
		return client.fillMembers(ctx, tx, page, false)
	})
	return page, total, err
}

// findCandidateGroups returns the groups with the query's ID, Name or
// ExternalID, or all groups of the company if none is set.
func (c Client) findCandidateGroups(ctx context.Context, tx *sqldb.Tx, q GroupQuery) ([]company.Group, error) {
	switch {
	case q.ID != nil:
		g, err := company.GroupByID(ctx, tx, c.companyID, *q.ID)
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		return []company.Group{g}, nil
	case q.Name != nil:
		return company.GroupsByName(ctx, tx, c.companyID, *q.Name)
	case q.ExternalID != nil:
		return company.GroupsByExternalID(ctx, tx, c.companyID, *q.ExternalID)
	}

	rows, err := company.Groups(ctx, tx, c.companyID, 0, maxScanned+1)
	if err == nil && len(rows) > maxScanned {
		err = errTooMany
	}
	return rows, err
}

func asGroups(rows []company.Group) []Group {
	all := make([]Group, len(rows))
	for i, g := range rows {
		all[i] = Group{
			ID:         g.ID,
			Name:       g.Name,
			ExternalID: g.ExternalID,
			Created:    g.Created,
			Updated:    g.Updated,
		}
	}
	return all
}

// fillMembers sets the members of the given groups. The caller sets every to
// true if these are all groups of the company.
func (c Client) fillMembers(ctx context.Context, tx *sqldb.Tx, groups []Group, every bool) error {
	index := map[string]int{}
	ids := make([]string, len(groups))
	for i, g := range groups {
		ids[i] = g.ID
		index[g.ID] = i
	}
	if every && len(groups) > 1 {
		ids = nil
	}

	places, err := company.PlacesIn(ctx, tx, c.companyID, ids, maxScannedMembership+1)
	if err == nil && len(places) > maxScannedMembership {
		err = errTooMany
	}
	for _, p := range places {
		if i, ok := index[p.TeamID]; ok {
			groups[i].Members = append(groups[i].Members, Ref{p.PersonID, p.Email})
		}
	}
	return err
}

// GetGroup returns a group of the client's company.
func (s *Service) GetGroup(ctx context.Context, client Client, id string) (g Group, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		g, err = client.readGroup(ctx, tx, id)
		return err
	})
	return g, err
}

func (c Client) readGroup(ctx context.Context, tx *sqldb.Tx, id string) (Group, error) {
	row, err := company.GroupByID(ctx, tx, c.companyID, id)
	if err != nil {
		return Group{}, err
	}
	groups := asGroups([]company.Group{row})
	return groups[0], c.fillMembers(ctx, tx, groups, false)
}

// CreateGroup creates a team with the draft's users as members.
func (s *Service) CreateGroup(ctx context.Context, client Client, draft GroupDraft) (g Group, err error) {
	err = s.runChange(ctx, client, func(tx *sqldb.Tx) ([]audit.Entry, error) {
		if err := company.Lock(ctx, tx, client.companyID); err != nil {
			return nil, err
		}

		t, err := company.CreateTeam(ctx, tx, client.companyID, draft.Name)
		if err != nil {
			return nil, err
		}
		entries := []audit.Entry{{Act: audit.TeamCreated, Details: map[string]string{"team": t.ID, "name": t.Name}}}
		added, err := client.setGroupMembers(ctx, tx, t, nil, draft.Members)
		if err != nil {
			return nil, err
		}
		if err := company.StoreGroup(ctx, tx, company.Group{Team: t, ExternalID: draft.ExternalID}); err != nil {
			return nil, err
		}

		g, err = client.readGroup(ctx, tx, t.ID)
		return append(entries, added...), err
	})
	return g, err
}

// ChangeGroup calls change with the current group and stores the draft that
// change returns. The function may be called more than once.
func (s *Service) ChangeGroup(ctx context.Context, client Client, id string, change func(Group) (GroupDraft, error)) (g Group, err error) {
	err = s.runChange(ctx, client, func(tx *sqldb.Tx) ([]audit.Entry, error) {
		if err := company.Lock(ctx, tx, client.companyID); err != nil {
			return nil, err
		}
		before, err := client.readGroup(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		draft, err := change(before)
		if err != nil {
			return nil, err
		}

		t := company.Team{ID: id, CompanyID: client.companyID, Name: draft.Name}
		entries, err := client.setGroupMembers(ctx, tx, t, before.Members, draft.Members)
		if err != nil {
			return nil, err
		}
		if draft.Name != before.Name {
			if err := company.RenameTeam(ctx, tx, id, draft.Name); err != nil {
				return nil, err
			}
		}
		if draft.Name != before.Name || draft.ExternalID != before.ExternalID {
			entries = append(entries, newGroupChange(before, draft))
		}
		if len(entries) > 0 {
			if err := company.StoreGroup(ctx, tx, company.Group{Team: t, ExternalID: draft.ExternalID}); err != nil {
				return nil, err
			}
		}

		g, err = client.readGroup(ctx, tx, id)
		return entries, err
	})
	return g, err
}

// newGroupChange returns the audit log entry about a change of a group's name
// or external id.
func newGroupChange(before Group, draft GroupDraft) audit.Entry {
	e := audit.Entry{Act: audit.TeamChanged, Details: map[string]string{
		"team": before.ID, "name": draft.Name, "before": before.Name, "external_id": draft.ExternalID,
	}}
	return e.WithChange(
		companyadmin.FormatValues(map[string]string{"name": before.Name, "external_id": before.ExternalID}),
		companyadmin.FormatValues(map[string]string{"name": draft.Name, "external_id": draft.ExternalID}))
}

// setGroupMembers makes the users with the ids in after the only members of a
// team. Members who stay in the team keep their roles.
func (c Client) setGroupMembers(ctx context.Context, tx *sqldb.Tx, t company.Team, before []Ref, after []string) (entries []audit.Entry, err error) {
	if len(after) > maxGroupMembers && len(after) > len(before) {
		return nil, fault.New(fault.Invalid, fmt.Sprintf("A group can have at most %d members.", maxGroupMembers)).On("members")
	}

	stays := map[string]bool{}
	for _, id := range after {
		stays[id] = true
	}
	present := map[string]bool{}
	for _, m := range before {
		present[m.ID] = true
		if stays[m.ID] {
			continue
		}
		e, err := removeGroupMember(ctx, tx, t.ID, m.ID)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}

	for _, id := range after {
		if present[id] {
			continue
		}
		e, err := c.addGroupMember(ctx, tx, t, id)
		if fault.Is(err, fault.NotFound) { // unknown, or deleted by a concurrent request
			return nil, fault.New(fault.Invalid, "There is no user with the id of one of the members.").On("members")
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// removeGroupMember removes a user from a team. For an inactive user, it
// deletes the SCIM seat (the stored team membership that the user would
// regain).
func removeGroupMember(ctx context.Context, tx *sqldb.Tx, teamID, personID string) (e audit.Entry, err error) {
	account, err := companyadmin.FindTeamAccount(ctx, tx, personID, teamID)
	if err != nil {
		return e, err
	}
	if err := company.DeleteSeat(ctx, tx, teamID, personID); err != nil {
		return e, err
	}
	if err := ignoreNotFound(company.RemoveTeamMember(ctx, tx, teamID, personID)); err != nil {
		return e, err
	}

	role := ""
	if account != nil {
		role = account.Role.Name
	}
	e = audit.Entry{Act: audit.TeamMemberRemoved, PersonID: personID, Details: map[string]string{"team": teamID}}
	return e.WithChange(role, ""), nil
}

// addGroupMember adds a user to a team with the role "member". For an inactive
// user, it stores a SCIM seat instead, so that the user joins the team when
// they are activated.
func (c Client) addGroupMember(ctx context.Context, tx *sqldb.Tx, t company.Team, personID string) (e audit.Entry, err error) {
	p, err := company.ProfileOf(ctx, tx, c.companyID, personID)
	if err != nil {
		return e, err
	}
	if p.Active {
		_, err = company.SetTeamMember(ctx, tx, t.ID, personID, company.RoleMember, company.Added)
	} else {
		_, err = company.KeepSeat(ctx, tx, t, personID)
	}

	e = audit.Entry{Act: audit.TeamMemberSet, PersonID: personID, Details: map[string]string{"team": t.ID, "role": company.RoleMember}}
	return e.WithChange("", company.RoleMember), err
}

// DeleteGroup removes a group, which is a team of the company.
func (s *Service) DeleteGroup(ctx context.Context, client Client, id string) error {
	return s.runChange(ctx, client, func(tx *sqldb.Tx) ([]audit.Entry, error) {
		if err := company.Lock(ctx, tx, client.companyID); err != nil {
			return nil, err
		}
		g, err := company.GroupByID(ctx, tx, client.companyID, id)
		if err != nil {
			return nil, err
		}
		return []audit.Entry{{Act: audit.TeamRemoved, Details: map[string]string{"team": id, "name": g.Name}}}, company.RemoveTeam(ctx, tx, id)
	})
}
