package teams

import (
	"slices"
	"time"

	"atelier/internal/money/budget"
	"atelier/internal/people/company"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

func asTeam(t company.Team) wire.Team {
	return wire.Team{ID: t.ID, CompanyID: t.CompanyID, Name: t.Name, Created: rest.Moment(t.Created)}
}

func asTeamMember(m company.TeamMember) wire.TeamMember {
	return wire.TeamMember{
		UID:    m.PersonID,
		Email:  m.Email,
		Role:   m.Role,
		Joined: rest.Moment(m.Joined),
		How:    string(m.How),
	}
}

func asTeamRole(r company.TeamRole) wire.TeamRole {
	out := wire.TeamRole{
		Name:         r.Name,
		Permissions:  rest.PermissionFlags(company.TeamPermissions, r.Permissions),
		ToolsAllowed: rest.ListOrEmpty(r.ToolsAllowed),
		ToolsBlocked: rest.ListOrEmpty(r.ToolsBlocked),
		PluginKinds:  rest.ListOrEmpty(r.PluginKinds),
	}
	if r.Spend != nil {
		out.Spend = &wire.SpendLimit{Tokens: r.Spend.Tokens, WindowSeconds: int64(r.Spend.Window / time.Second)}
	}
	return out
}

// teamRoleOf converts the role in a request to a team role. Absent fields
// allow all tools and all plugins, and set no spending limit.
func teamRoleOf(name string, d wire.TeamRoleDraft) company.TeamRole {
	r := company.TeamRole{Name: name, PluginKinds: []string{company.AnyKind}}
	for perm, on := range d.Permissions {
		if p := company.Permission(perm); on || !slices.Contains(company.TeamPermissions, p) { // an unknown permission is kept, so that validation refuses it
			r.Permissions = append(r.Permissions, p)
		}
	}
	if d.ToolsAllowed != nil {
		r.ToolsAllowed = *d.ToolsAllowed
	}
	if d.ToolsBlocked != nil {
		r.ToolsBlocked = *d.ToolsBlocked
	}
	if d.PluginKinds != nil {
		r.PluginKinds = *d.PluginKinds
	}
	if d.Spend != nil {
		r.Spend = &company.Spend{Tokens: d.Spend.Tokens, Window: rest.ClampedSeconds(d.Spend.WindowSeconds)}
	}
	return r
}

func asBudget(b budget.Budget) wire.Budget {
	return wire.Budget{
		TeamID:      b.TeamID,
		Tokens:      b.Tokens,
		Hard:        b.Hard,
		Month:       b.Month,
		Spent:       b.Spent,
		Percent:     b.Percent,
		ToldPercent: b.Alerted,
		Created:     rest.Moment(b.Created),
		Updated:     rest.Moment(b.Updated),
		WebhookURL:  rest.TextOrNull(b.WebhookURL),
	}
}
