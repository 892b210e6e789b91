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

// Group is a team as its company's directory sees it.
type Group struct {
	ID         string
	Name       string
	ExternalID string
	// Members are those of the team, and those who are not active and come back
	// to it. By address.
	Members []Ref
	Created time.Time
	Updated time.Time
}

// GroupDraft is what a directory wants a group to be.
type GroupDraft struct {
	Name       string
	ExternalID string
	Members    []string // ids, each once
}

// GroupQuery chooses groups. Of ID, Name and ExternalID one at most is set; it
// goes by an index.
type GroupQuery struct {
	ID, Name, ExternalID *string
	Match                func(Group) bool // nil: all
	// Members wants the groups with them, Matching lets Match look at them.
	Members, Matching bool
	Start, Count      int // a page, from 1 on
}

// maxMembers bounds the members that a directory can give a group.
const maxMembers = 10_000

// Groups gives a page of a company's groups by name, and how many there are.
func (d *Service) ListGroups(ctx context.Context, s Client, q GroupQuery) (page []Group, total int, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		if q.Match == nil && q.ID == nil && q.Name == nil && q.ExternalID == nil {
			if total, err = company.CountGroups(ctx, tx, s.companyID); err != nil {
				return err
			}
			rows, err := company.Groups(ctx, tx, s.companyID, max(q.Start-1, 0), max(q.Count, 0))
			page = asGroups(rows)
			if err != nil || !q.Members {
				return err
			}
			return withMembers(ctx, tx, s, page, false)
		}
		rows, err := s.candidateGroups(ctx, tx, q)
		if err != nil {
			return err
		}
		all := asGroups(rows)
		if q.Matching {
			if err := withMembers(ctx, tx, s, all, true); err != nil {
				return err
			}
		}
		var fit []Group
		for _, g := range all {
			if q.Match == nil || q.Match(g) {
				fit = append(fit, g)
			}
		}
		total = len(fit)
		page = window(fit, q.Start, q.Count)
		if !q.Members || q.Matching {
			return nil
		}
		return withMembers(ctx, tx, s, page, false)
	})
	return page, total, err
}

// candidateGroups gives the rows that a query can mean.
func (s Client) candidateGroups(ctx context.Context, tx *sqldb.Tx, q GroupQuery) ([]company.Group, error) {
	switch {
	case q.ID != nil:
		g, err := company.GroupByID(ctx, tx, s.companyID, *q.ID)
		if err != nil {
			return nil, unless(err, fault.NotFound)
		}
		return []company.Group{g}, nil
	case q.Name != nil:
		return company.GroupsCalled(ctx, tx, s.companyID, *q.Name)
	case q.ExternalID != nil:
		return company.GroupsNamed(ctx, tx, s.companyID, *q.ExternalID)
	}
	rows, err := company.Groups(ctx, tx, s.companyID, 0, maxScan+1)
	if err == nil && len(rows) > maxScan {
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

// withMembers fills in the members of groups: of a page, or of every group that
// the company has.
func withMembers(ctx context.Context, tx *sqldb.Tx, s Client, groups []Group, every bool) error {
	at := map[string]int{}
	ids := make([]string, len(groups))
	for i, g := range groups {
		ids[i] = g.ID
		at[g.ID] = i
	}
	if every && len(groups) > 1 {
		ids = nil
	}
	places, err := company.PlacesIn(ctx, tx, s.companyID, ids, maxPlaces+1)
	if err == nil && len(places) > maxPlaces {
		err = errTooMany
	}
	for _, p := range places {
		if i, ok := at[p.TeamID]; ok {
			groups[i].Members = append(groups[i].Members, Ref{p.PersonID, p.Email})
		}
	}
	return err
}

// Group gives one group.
func (d *Service) GetGroup(ctx context.Context, s Client, id string) (g Group, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		g, err = s.group(ctx, tx, id)
		return err
	})
	return g, err
}

func (s Client) group(ctx context.Context, tx *sqldb.Tx, id string) (Group, error) {
	row, err := company.GroupByID(ctx, tx, s.companyID, id)
	if err != nil {
		return Group{}, err
	}
	one := asGroups([]company.Group{row})
	return one[0], withMembers(ctx, tx, s, one, false)
}

// CreateGroup makes a team with members of the company in it.
func (d *Service) CreateGroup(ctx context.Context, s Client, draft GroupDraft) (g Group, err error) {
	err = d.act(ctx, s, func(tx *sqldb.Tx) ([]audit.Entry, error) {
		if err := company.Lock(ctx, tx, s.companyID); err != nil {
			return nil, err
		}
		t, err := company.CreateTeam(ctx, tx, s.companyID, draft.Name)
		if err != nil {
			return nil, err
		}
		entries, err := s.setMembers(ctx, tx, t, nil, draft.Members)
		if err != nil {
			return nil, err
		}
		if err := company.KeepGroup(ctx, tx, company.Group{Team: t, ExternalID: draft.ExternalID}); err != nil {
			return nil, err
		}
		g, err = s.group(ctx, tx, t.ID)
		return append([]audit.Entry{{Act: audit.TeamCreated, Details: map[string]string{"team": t.ID, "name": t.Name}}}, entries...), err
	})
	return g, err
}

// ChangeGroup makes a group into what change wants of it. It may be asked more
// than once.
func (d *Service) ChangeGroup(ctx context.Context, s Client, id string, change func(Group) (GroupDraft, error)) (g Group, err error) {
	err = d.act(ctx, s, func(tx *sqldb.Tx) ([]audit.Entry, error) {
		if err := company.Lock(ctx, tx, s.companyID); err != nil {
			return nil, err
		}
		was, err := s.group(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		draft, err := change(was)
		if err != nil {
			return nil, err
		}
		t := company.Team{ID: id, CompanyID: s.companyID, Name: draft.Name}
		entries, err := s.setMembers(ctx, tx, t, was.Members, draft.Members)
		if err != nil {
			return nil, err
		}
		if draft.Name != was.Name {
			if err := company.RenameTeam(ctx, tx, id, draft.Name); err != nil {
				return nil, err
			}
		}
		if draft.Name != was.Name || draft.ExternalID != was.ExternalID {
			e := audit.Entry{Act: audit.TeamChanged, Details: map[string]string{
				"team": id, "name": draft.Name, "before": was.Name, "external_id": draft.ExternalID,
			}}
			entries = append(entries, e.Changing(
				companyadmin.FormatValues(map[string]string{"name": was.Name, "external_id": was.ExternalID}),
				companyadmin.FormatValues(map[string]string{"name": draft.Name, "external_id": draft.ExternalID})))
		}
		if len(entries) > 0 {
			if err := company.KeepGroup(ctx, tx, company.Group{Team: t, ExternalID: draft.ExternalID}); err != nil {
				return nil, err
			}
		}
		g, err = s.group(ctx, tx, id)
		return entries, err
	})
	return g, err
}

// setMembers has exactly these people in a team. Who is in it already keeps
// their role.
func (s Client) setMembers(ctx context.Context, tx *sqldb.Tx, t company.Team, was []Ref, want []string) (entries []audit.Entry, err error) {
	stays := map[string]bool{}
	in := map[string]bool{}
	for _, id := range want {
		stays[id] = true
	}
	if len(want) > maxMembers && len(want) > len(was) {
		return nil, fault.New(fault.Invalid, fmt.Sprintf("A group has %d members at most.", maxMembers)).On("members")
	}
	for _, m := range was {
		if in[m.ID] = true; stays[m.ID] {
			continue
		}
		in, err := companyadmin.FindTeamAccount(ctx, tx, m.ID, t.ID)
		if err == nil {
			err = company.DropSeat(ctx, tx, t.ID, m.ID)
		}
		if err == nil {
			err = unless(company.RemoveTeamMember(ctx, tx, t.ID, m.ID), fault.NotFound) // who has a seat is no member
		}
		if err != nil {
			return nil, err
		}
		from := "" // a seat
		if in != nil {
			from = in.Role.Name
		}
		e := audit.Entry{Act: audit.TeamMemberRemoved, PersonID: m.ID, Details: map[string]string{"team": t.ID}}
		entries = append(entries, e.Changing(from, ""))
	}
	for _, id := range want {
		if in[id] {
			continue
		}
		p, err := company.ProfileOf(ctx, tx, s.companyID, id)
		if err == nil && p.Active {
			_, err = company.SetTeamMember(ctx, tx, t.ID, id, company.RoleMember, company.Added)
		} else if err == nil {
			_, err = company.KeepSeat(ctx, tx, t, id)
		}
		if fault.Is(err, fault.NotFound) { // or deleted meanwhile
			return nil, fault.New(fault.Invalid, "There is no user with the id of one of the members.").On("members")
		}
		if err != nil {
			return nil, err
		}
		e := audit.Entry{Act: audit.TeamMemberSet, PersonID: id, Details: map[string]string{"team": t.ID, "role": company.RoleMember}}
		entries = append(entries, e.Changing("", company.RoleMember))
	}
	return entries, nil
}

// DeleteGroup ends a team.
func (d *Service) DeleteGroup(ctx context.Context, s Client, id string) error {
	return d.act(ctx, s, func(tx *sqldb.Tx) ([]audit.Entry, error) {
		if err := company.Lock(ctx, tx, s.companyID); err != nil {
			return nil, err
		}
		g, err := company.GroupByID(ctx, tx, s.companyID, id)
		if err != nil {
			return nil, err
		}
		return []audit.Entry{{Act: audit.TeamRemoved, Details: map[string]string{"team": id, "name": g.Name}}}, company.RemoveTeam(ctx, tx, id)
	})
}
