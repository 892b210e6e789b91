package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
)

// companyRow is a company as the company commands print it.
type companyRow struct {
	ID       string `json:"id"`
	Name     string `json:"name" placeholder:"NAME"`
	Plan     string `json:"plan" placeholder:"PLAN"`
	TimeZone string `json:"time_zone"`
	Created  string `json:"created"`
}

func newCompanyRow(c company.Company) companyRow {
	return companyRow{c.ID, c.Name, string(c.Plan), c.Zone, formatTime(c.Created)}
}

type companyListCmd struct {
	jsonFlag
	pageFlags
}

func (c companyListCmd) Run(p *program) error {
	companies := pagedList[companyRow]{
		name:    "companies",
		columns: []string{"ID", "NAME", "PLAN", "CREATED"},
		read: func(ctx context.Context, tx *sqldb.Tx, cursor string, limit int) (rows []companyRow, err error) {
			all, err := company.List(ctx, tx, "", cursor, limit)
			for _, one := range all {
				rows = append(rows, newCompanyRow(one))
			}
			return rows, err
		},
		cursorOf: func(r companyRow) string { return r.ID },
		cells:    func(r companyRow) []string { return []string{r.ID, r.Name, r.Plan, dateOf(r.Created)} },
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		return companies.printPages(ctx, p, db, c.JSON, c.pageFlags)
	})
}

type companyShowCmd struct {
	jsonFlag
	Company string `required:"" help:"The company's id." placeholder:"ID"`
}

func (c companyShowCmd) Run(p *program) error {
	type shown struct {
		companyRow
		Members int       `json:"members"`
		Teams   int       `json:"teams"`
		Roles   []roleRow `json:"roles"`
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		var out shown
		err := db.Read(ctx, func(tx *sqldb.Tx) error {
			one, err := company.ByID(ctx, tx, c.Company)
			if err != nil {
				return err
			}
			out = shown{companyRow: newCompanyRow(one)}
			if out.Members, out.Teams, err = company.Count(ctx, tx, one.ID); err != nil {
				return err
			}
			out.Roles, err = readRoles(ctx, tx, one.ID, "")
			return err
		})
		if err != nil || c.JSON {
			return orPrint(p, err, out)
		}
		rows := [][]string{
			{"id", out.ID},
			{"name", out.Name},
			{"plan", out.Plan},
			{"time zone", out.TimeZone},
			{"members", strconv.Itoa(out.Members)},
			{"teams", strconv.Itoa(out.Teams)},
			{"created", out.Created},
		}
		return p.printTable(append(rows, describeRoles(out.Roles)...))
	})
}

// teamRow is a team as the team commands print it.
type teamRow struct {
	ID        string     `json:"id"`
	CompanyID string     `json:"company_id"`
	Name      string     `json:"name" placeholder:"NAME"`
	Balance   balanceRow `json:"balance"`
	Created   string     `json:"created"`
}

func newTeamRow(t company.Team) teamRow {
	return teamRow{ID: t.ID, CompanyID: t.CompanyID, Name: t.Name, Created: formatTime(t.Created)}
}

type teamListCmd struct {
	jsonFlag
	pageFlags
	Company string `help:"Only the teams of a company." placeholder:"ID"`
}

func (c teamListCmd) Run(p *program) error {
	teams := pagedList[teamRow]{
		name:    "teams",
		columns: []string{"ID", "NAME", "TOKENS", "COMPANY", "CREATED"},
		read: func(ctx context.Context, tx *sqldb.Tx, cursor string, limit int) (rows []teamRow, err error) {
			if c.Company != "" {
				if _, err := company.ByID(ctx, tx, c.Company); err != nil {
					return nil, err
				}
			}
			all, err := company.ListTeams(ctx, tx, c.Company, cursor, limit)
			if err != nil {
				return nil, err
			}
			var ids []string
			for _, t := range all {
				ids = append(ids, t.ID)
				rows = append(rows, newTeamRow(t))
			}
			balances, err := p.readBalances(ctx, tx, ids...)
			for i := range rows {
				rows[i].Balance = balances[rows[i].ID]
			}
			return rows, err
		},
		cursorOf: func(r teamRow) string { return r.ID },
		cells: func(r teamRow) []string {
			return []string{r.ID, r.Name, strconv.FormatInt(r.Balance.Tokens, 10), r.CompanyID, dateOf(r.Created)}
		},
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		return teams.printPages(ctx, p, db, c.JSON, c.pageFlags)
	})
}

type teamShowCmd struct {
	jsonFlag
	Team string `required:"" help:"The team's id." placeholder:"ID"`
}

func (c teamShowCmd) Run(p *program) error {
	type shown struct {
		teamRow
		Company string    `json:"company"`
		Members int       `json:"members"`
		Roles   []roleRow `json:"roles"`
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		var out shown
		err := db.Read(ctx, func(tx *sqldb.Tx) error {
			t, err := company.TeamByID(ctx, tx, c.Team)
			if err != nil {
				return err
			}
			out = shown{teamRow: newTeamRow(t)}
			of, err := company.ByID(ctx, tx, t.CompanyID)
			if err != nil {
				return err
			}
			out.Company = of.Name
			if out.Members, err = company.CountTeamMembers(ctx, tx, t.ID); err != nil {
				return err
			}
			if out.Roles, err = readRoles(ctx, tx, "", t.ID); err != nil {
				return err
			}
			balances, err := p.readBalances(ctx, tx, t.ID)
			out.Balance = balances[t.ID]
			return err
		})
		if err != nil || c.JSON {
			return orPrint(p, err, out)
		}
		rows := [][]string{
			{"id", out.ID},
			{"name", out.Name},
			{"company", out.CompanyID + "  " + out.Company},
			{"tokens", describeBalance(out.Balance)},
			{"members", strconv.Itoa(out.Members)},
			{"created", out.Created},
		}
		return p.printTable(append(rows, describeRoles(out.Roles)...))
	})
}

// roleRow is a role of a company or a team as the role commands print it.
type roleRow struct {
	Name         string               `json:"name" placeholder:"NAME"`
	Permissions  []company.Permission `json:"permissions"`
	PluginKinds  []string             `json:"plugin_kinds,omitempty"` // this and the following fields are set for team roles only
	ToolsAllowed []string             `json:"tools_allowed,omitempty"`
	ToolsBlocked []string             `json:"tools_blocked,omitempty"`
	Spend        *spendRow            `json:"spend,omitempty"`
}

// spendRow is a role's spending limit: tokens per person within a time window
// in seconds.
type spendRow struct {
	Tokens  int64 `json:"tokens"`
	Seconds int64 `json:"seconds"`
}

// readRoles returns the roles of a company or team. It reads them without
// pagination, because there are at most a hundred.
func readRoles(ctx context.Context, tx *sqldb.Tx, companyID, teamID string) ([]roleRow, error) {
	rows := []roleRow{}
	if companyID != "" {
		if _, err := company.ByID(ctx, tx, companyID); err != nil {
			return nil, err
		}
		all, err := company.Roles(ctx, tx, companyID)
		for _, r := range all {
			rows = append(rows, roleRow{Name: r.Name, Permissions: orNone(r.Permissions)})
		}
		return rows, err
	}
	if _, err := company.TeamByID(ctx, tx, teamID); err != nil {
		return nil, err
	}
	all, err := company.TeamRoles(ctx, tx, teamID)
	for _, r := range all {
		row := roleRow{
			Name:         r.Name,
			Permissions:  orNone(r.Permissions),
			PluginKinds:  r.PluginKinds,
			ToolsAllowed: r.ToolsAllowed,
			ToolsBlocked: r.ToolsBlocked,
		}
		if r.Spend != nil {
			row.Spend = &spendRow{r.Spend.Tokens, int64(r.Spend.Window.Seconds())}
		}
		rows = append(rows, row)
	}
	return rows, err
}

// orNone returns all, or an empty list if all is nil, so that JSON shows []
// instead of null.
func orNone(all []company.Permission) []company.Permission {
	if all == nil {
		return []company.Permission{}
	}
	return all
}

func (r roleRow) listPermissions() string {
	var words []string
	for _, p := range r.Permissions {
		words = append(words, string(p))
	}
	if len(words) == 0 {
		return "no permissions"
	}
	return strings.Join(words, " ")
}

// describeRoles returns a table row for each role, with its permissions.
func describeRoles(all []roleRow) (rows [][]string) {
	for _, r := range all {
		rows = append(rows, []string{"role " + r.Name, r.listPermissions()})
	}
	return rows
}

type roleListCmd struct {
	jsonFlag
	Company string `help:"Whose roles: a company." xor:"of" required:"" placeholder:"ID"`
	Team    string `help:"Whose roles: a team." xor:"of" required:"" placeholder:"ID"`
}

func (c roleListCmd) Run(p *program) error {
	return p.withRoles(c.Company, c.Team, func(roles []roleRow) error {
		if c.JSON {
			return p.printResult(true, map[string]any{"roles": roles}, "")
		}
		rows := [][]string{{"NAME", "PERMISSIONS"}}
		for _, r := range roles {
			rows = append(rows, []string{r.Name, r.listPermissions()})
		}
		return p.printTable(rows)
	})
}

func (p *program) withRoles(companyID, teamID string, do func([]roleRow) error) error {
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		var roles []roleRow
		err := db.Read(ctx, func(tx *sqldb.Tx) (err error) {
			roles, err = readRoles(ctx, tx, companyID, teamID)
			return err
		})
		if err != nil {
			return err
		}
		return do(roles)
	})
}

type roleShowCmd struct {
	jsonFlag
	Company string `help:"Whose role: a company." xor:"of" required:"" placeholder:"ID"`
	Team    string `help:"Whose role: a team." xor:"of" required:"" placeholder:"ID"`
	Name    string `required:"" help:"The role's name." placeholder:"NAME"`
}

func (c roleShowCmd) Run(p *program) error {
	return p.withRoles(c.Company, c.Team, func(roles []roleRow) error {
		i := slices.IndexFunc(roles, func(r roleRow) bool { return r.Name == c.Name })
		if i < 0 {
			var names []string
			for _, r := range roles {
				names = append(names, r.Name)
			}
			return fault.New(fault.NotFound, fmt.Sprintf("There is no role %q. The roles are %s.", c.Name, strings.Join(names, ", ")))
		}
		role := roles[i]
		if c.JSON {
			return p.printResult(true, role, "")
		}
		rows := [][]string{{"name", role.Name}, {"permissions", role.listPermissions()}}
		if c.Team != "" {
			rows = append(rows,
				[]string{"plugin kinds", strings.Join(role.PluginKinds, ", ")},
				[]string{"tools", describeTools(role)},
				[]string{"spends at most", describeSpend(role.Spend)})
		}
		return p.printTable(rows)
	})
}

func describeTools(r roleRow) string {
	text := "all"
	if len(r.ToolsAllowed) > 0 {
		text = "only " + strings.Join(r.ToolsAllowed, ", ")
	}
	if len(r.ToolsBlocked) > 0 {
		text += ", but not " + strings.Join(r.ToolsBlocked, ", ")
	}
	return text
}

func describeSpend(s *spendRow) string {
	if s == nil {
		return "any amount"
	}
	return fmt.Sprintf("%d tokens in %d seconds", s.Tokens, s.Seconds)
}
