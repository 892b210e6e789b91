package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/device"
	"atelier/internal/people/person"
)

// balanceRow is the balance of an account in tokens, with the field names of
// the API.
type balanceRow struct {
	Tokens            int64 `json:"tokens"`
	Held              int64 `json:"held"`
	FreeAllowanceLeft int64 `json:"free_allowance_left"`
}

func (p *program) readBalances(ctx context.Context, tx *sqldb.Tx, accountIDs ...string) (map[string]balanceRow, error) {
	all, err := ledger.Balances(ctx, tx, accountIDs, p.cfg.Tokens.MonthlyAllowance)
	rows := map[string]balanceRow{}
	for id, b := range all {
		rows[id] = balanceRow{b.Tokens, b.Held, b.FreeAllowanceLeft}
	}
	return rows, err
}

// personRow is a person as the person commands print them.
type personRow struct {
	UID           string     `json:"uid" placeholder:"UID"`
	Email         string     `json:"email" placeholder:"ADDRESS"`
	EmailVerified bool       `json:"email_verified"`
	Suspended     bool       `json:"suspended"`
	Role          string     `json:"role,omitempty"` // in the company or team that --company or --team names
	Balance       balanceRow `json:"balance"`
	Created       string     `json:"created"`

	cursor string
}

func newPersonRow(who person.Person) personRow {
	return personRow{
		UID:           who.ID,
		Email:         who.Email,
		EmailVerified: who.EmailVerified,
		Suspended:     who.Suspended,
		Created:       formatTime(who.Created),
		cursor:        who.Email,
	}
}

// stateName returns the person's state: active, unverified or suspended.
func (r personRow) stateName() string {
	switch {
	case r.Suspended:
		return "suspended"
	case !r.EmailVerified:
		return "unverified"
	}
	return "active"
}

type personListCmd struct {
	jsonFlag
	pageFlags
	Company string `help:"Only the members of a company, with their roles." xor:"group" placeholder:"ID"`
	Team    string `help:"Only the members of a team, with their roles." xor:"group" placeholder:"ID"`
}

func (c personListCmd) Run(p *program) error {
	columns := []string{"UID", "EMAIL", "STATE", "TOKENS", "CREATED"}
	grouped := c.Company != "" || c.Team != ""
	if grouped {
		columns = append(columns, "ROLE")
	}
	people := pagedList[personRow]{
		name:    "people",
		columns: columns,
		read: func(ctx context.Context, tx *sqldb.Tx, cursor string, limit int) ([]personRow, error) {
			rows, err := c.readPeople(ctx, tx, cursor, limit)
			if err != nil {
				return nil, err
			}
			ids := make([]string, len(rows))
			for i, r := range rows {
				ids[i] = r.UID
			}
			balances, err := p.readBalances(ctx, tx, ids...)
			for i := range rows {
				rows[i].Balance = balances[rows[i].UID]
			}
			return rows, err
		},
		cursorOf: func(r personRow) string { return r.cursor },
		cells: func(r personRow) []string {
			cells := []string{r.UID, r.Email, r.stateName(), strconv.FormatInt(r.Balance.Tokens, 10), dateOf(r.Created)}
			if grouped {
				cells = append(cells, r.Role)
			}
			return cells
		},
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		return people.printPages(ctx, p, db, c.JSON, c.pageFlags)
	})
}

// readPeople returns the people of the installation, a company or a team who
// come after a cursor.
func (c personListCmd) readPeople(ctx context.Context, tx *sqldb.Tx, cursor string, limit int) (rows []personRow, err error) {
	var members []company.Member
	switch {
	case c.Company != "":
		if _, err := company.ByID(ctx, tx, c.Company); err != nil {
			return nil, err
		}
		members, err = company.Members(ctx, tx, c.Company, parseMemberCursor(cursor), limit)
	case c.Team != "":
		if _, err := company.TeamByID(ctx, tx, c.Team); err != nil {
			return nil, err
		}
		var all []company.TeamMember
		all, err = company.TeamMembers(ctx, tx, c.Team, parseMemberCursor(cursor), limit)
		for _, m := range all {
			members = append(members, m.Member)
		}
	default:
		all, err := person.List(ctx, tx, "", cursor, limit)
		for _, who := range all {
			rows = append(rows, newPersonRow(who))
		}
		return rows, err
	}
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		who, err := person.ByID(ctx, tx, m.PersonID)
		if err != nil {
			return nil, err
		}
		row := newPersonRow(who)
		row.Role = m.Role
		row.cursor = writePlace(m.ListKey())
		rows = append(rows, row)
	}
	return rows, nil
}

// writePlace converts the sort key of a member to a cursor. parseMemberCursor
// is its inverse.
func writePlace(k company.Key) string { return k.Text + " " + k.ID }

func parseMemberCursor(cursor string) company.Key {
	text, id, _ := strings.Cut(cursor, " ") // e-mail addresses contain no space
	return company.Key{Text: text, ID: id}
}

// dateOf returns the date part of a time that formatTime formatted.
func dateOf(stamp string) string {
	date, _, _ := strings.Cut(stamp, "T")
	return date
}

type personShowCmd struct {
	jsonFlag
	Email string `help:"The person's e-mail address." xor:"who" required:"" placeholder:"ADDRESS"`
	UID   string `name:"uid" help:"The person's uid." xor:"who" required:"" placeholder:"UID"`
}

// groupRow is a company or team that a person is a member of.
type groupRow struct {
	ID        string      `json:"id"`
	Name      string      `json:"name" placeholder:"NAME"`
	CompanyID string      `json:"company_id,omitempty"` // set for teams only
	Role      string      `json:"role"`
	Balance   *balanceRow `json:"balance,omitempty"` // set for teams only
}

func (c personShowCmd) Run(p *program) error {
	type shown struct {
		personRow
		Provider  string     `json:"sign_in_provider"`
		Companies []groupRow `json:"companies"`
		Teams     []groupRow `json:"teams"`
		Devices   int        `json:"devices"`
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		var out shown
		err := db.Read(ctx, func(tx *sqldb.Tx) error {
			find := func() (person.Person, error) { return person.ByID(ctx, tx, c.UID) }
			if c.Email != "" {
				find = func() (person.Person, error) { return person.ByEmail(ctx, tx, c.Email) }
			}
			who, err := find()
			if err != nil {
				return err
			}
			out = shown{personRow: newPersonRow(who), Provider: who.Provider, Companies: []groupRow{}, Teams: []groupRow{}}

			companies, err := company.CompanyMemberships(ctx, tx, who.ID)
			if err != nil {
				return err
			}
			for _, m := range companies {
				out.Companies = append(out.Companies, groupRow{ID: m.Company.ID, Name: m.Company.Name, Role: m.Role.Name})
			}

			teams, err := company.TeamMemberships(ctx, tx, who.ID)
			if err != nil {
				return err
			}
			ids := []string{who.ID}
			for _, a := range teams {
				ids = append(ids, a.Team.ID)
			}
			balances, err := p.readBalances(ctx, tx, ids...)
			if err != nil {
				return err
			}
			out.Balance = balances[who.ID]
			for _, a := range teams {
				balance := balances[a.Team.ID]
				out.Teams = append(out.Teams, groupRow{a.Team.ID, a.Team.Name, a.Team.CompanyID, a.Role.Name, &balance})
			}

			devices, err := device.ListAll(ctx, tx, who.ID)
			for _, d := range devices {
				if d.Revoked == nil {
					out.Devices++
				}
			}
			return err
		})
		if err != nil || c.JSON {
			return orPrint(p, err, out)
		}
		rows := [][]string{
			{"uid", out.UID},
			{"email", out.Email},
			{"state", out.stateName()},
			{"signs in with", out.Provider},
			{"tokens", describeBalance(out.Balance)},
			{"devices", strconv.Itoa(out.Devices)},
			{"created", out.Created},
		}
		for _, g := range out.Companies {
			rows = append(rows, []string{"company", g.ID + "  " + g.Name + ", " + g.Role})
		}
		for _, g := range out.Teams {
			rows = append(rows, []string{"team", g.ID + "  " + g.Name + ", " + g.Role + ", " + describeBalance(*g.Balance) + " tokens"})
		}
		return p.printTable(rows)
	})
}

// orPrint returns err if it is not nil, and prints v as JSON otherwise.
func orPrint(p *program, err error, v any) error {
	if err != nil {
		return err
	}
	return p.printResult(true, v, "")
}

// describeBalance formats a balance on one line.
func describeBalance(b balanceRow) string {
	text := strconv.FormatInt(b.Tokens, 10)
	if b.Held > 0 {
		text += ", and " + strconv.FormatInt(b.Held, 10) + " held for runs"
	}
	if b.FreeAllowanceLeft > 0 {
		text += ", and " + strconv.FormatInt(b.FreeAllowanceLeft, 10) + " free this month"
	}
	return text
}

// deviceRow is a signed-in device as the device commands print it.
type deviceRow struct {
	ID         string  `json:"id"`
	UID        string  `json:"uid" placeholder:"UID"`
	PluginKind string  `json:"plugin_kind"`
	Agent      string  `json:"agent"`
	Address    string  `json:"address"`
	Created    string  `json:"created"`
	LastUsed   string  `json:"last_used"`
	Revoked    *string `json:"revoked,omitempty"`
}

func newDeviceRow(d device.Device) deviceRow {
	row := deviceRow{
		ID:         d.ID,
		UID:        d.PersonID,
		PluginKind: d.PluginKind,
		Agent:      d.Agent,
		Address:    d.Address,
		Created:    formatTime(d.Created),
		LastUsed:   formatTime(d.LastUsed),
	}
	if d.Revoked != nil {
		at := formatTime(*d.Revoked)
		row.Revoked = &at
	}
	return row
}

type deviceListCmd struct {
	jsonFlag
	pageFlags
	Email string `help:"Only the devices of a person." placeholder:"ADDRESS"`
}

func (c deviceListCmd) Run(p *program) error {
	devices := pagedList[deviceRow]{
		name:    "devices",
		columns: []string{"ID", "KIND", "UID", "LAST USED", "ADDRESS", "AGENT"},
		read: func(ctx context.Context, tx *sqldb.Tx, cursor string, limit int) ([]deviceRow, error) {
			uid := ""
			if c.Email != "" {
				who, err := person.ByEmail(ctx, tx, c.Email)
				if err != nil {
					return nil, err
				}
				uid = who.ID
			}
			all, err := device.ListLive(ctx, tx, uid, cursor, limit)
			var rows []deviceRow
			for _, d := range all {
				rows = append(rows, newDeviceRow(d))
			}
			return rows, err
		},
		cursorOf: func(r deviceRow) string { return r.ID },
		cells: func(r deviceRow) []string {
			return []string{r.ID, r.PluginKind, r.UID, r.LastUsed, r.Address, r.Agent}
		},
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		return devices.printPages(ctx, p, db, c.JSON, c.pageFlags)
	})
}

type deviceShowCmd struct {
	jsonFlag
	Device string `required:"" help:"The device's id." placeholder:"ID"`
}

func (c deviceShowCmd) Run(p *program) error {
	type shown struct {
		deviceRow
		Email    string `json:"email" placeholder:"ADDRESS"`
		Provider string `json:"sign_in_provider"`
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		var out shown
		err := db.Read(ctx, func(tx *sqldb.Tx) error {
			d, err := device.ByID(ctx, tx, c.Device)
			if err != nil {
				return err
			}
			who, err := person.ByID(ctx, tx, d.PersonID)
			out = shown{newDeviceRow(d), who.Email, d.Provider}
			return err
		})
		if err != nil || c.JSON {
			return orPrint(p, err, out)
		}
		state := "signed in"
		if out.Revoked != nil {
			state = "signed out at " + *out.Revoked
		}
		return p.printTable([][]string{
			{"id", out.ID},
			{"person", out.UID + "  " + out.Email},
			{"state", state},
			{"kind", out.PluginKind},
			{"agent", out.Agent},
			{"address", out.Address},
			{"signed in with", out.Provider},
			{"created", out.Created},
			{"last used", out.LastUsed},
		})
	})
}

// formatTime formats a time as the API does: RFC 3339, in UTC and whole
// seconds.
func formatTime(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }
