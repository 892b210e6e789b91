// Package teams serves /api/v2/teams: teams with their members, roles and budgets.
package teams

import (
	"net/http"

	"atelier/internal/account/companyadmin"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for teams.
type Handler struct {
	Companies *companyadmin.Services
	Pages     rest.Pager
	JSON      rest.JSONLimits
}

// Routes returns the routes of the operations on teams.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/companies/{company_id}/teams", access.SignedIn, h.listTeams),
		rest.NewRoute("POST /api/v2/companies/{company_id}/teams", access.SignedIn, h.createTeam),
		rest.NewRoute("GET /api/v2/teams/{team_id}", access.SignedIn, h.getTeam),
		rest.NewRoute("PATCH /api/v2/teams/{team_id}", access.SignedIn, h.renameTeam),
		rest.NewRoute("DELETE /api/v2/teams/{team_id}", access.SignedIn, h.removeTeam),

		rest.NewRoute("GET /api/v2/teams/{team_id}/members", access.SignedIn, h.listTeamMembers),
		rest.NewRoute("PUT /api/v2/teams/{team_id}/members/{uid}", access.SignedIn, h.setTeamMember),
		rest.NewRoute("DELETE /api/v2/teams/{team_id}/members/{uid}", access.SignedIn, h.removeTeamMember),

		rest.NewRoute("GET /api/v2/teams/{team_id}/roles", access.SignedIn, h.listTeamRoles),
		rest.NewRoute("PUT /api/v2/teams/{team_id}/roles/{role}", access.SignedIn, h.setTeamRole),
		rest.NewRoute("DELETE /api/v2/teams/{team_id}/roles/{role}", access.SignedIn, h.deleteTeamRole),

		rest.NewRoute("GET /api/v2/teams/{team_id}/budget", access.SignedIn, h.getBudget),
		rest.NewRoute("PUT /api/v2/teams/{team_id}/budget", access.SignedIn, h.setBudget),
		rest.NewRoute("DELETE /api/v2/teams/{team_id}/budget", access.SignedIn, h.deleteBudget),
	}
}

// listTeams serves GET /api/v2/companies/{company_id}/teams: it lists the
// teams of a company.
func (h *Handler) listTeams(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("company_id")
	page, after, err := rest.ReadNamedPage(h.Pages, r, "teams", id)
	if err != nil {
		return err
	}
	all, err := h.Companies.Teams.ListTeams(r.Context(), rest.PrincipalOf(r), id, after, page.Limit+1)
	if err != nil {
		return err
	}
	all, hasMore, next := rest.Cut(page, all, rest.NameKey)
	return rest.ReplyCompressed(w, r, wire.TeamList{Data: rest.Convert(all, asTeam), HasMore: hasMore, NextCursor: next})
}

// createTeam serves POST /api/v2/companies/{company_id}/teams: it creates a
// team.
func (h *Handler) createTeam(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.TeamDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	t, err := h.Companies.Teams.CreateTeam(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), req.Name)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusCreated, asTeam(t))
}

// getTeam serves GET /api/v2/teams/{team_id}: it returns a team.
func (h *Handler) getTeam(w http.ResponseWriter, r *http.Request) error {
	t, err := h.Companies.Teams.GetTeam(r.Context(), rest.PrincipalOf(r), r.PathValue("team_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asTeam(t))
}

// renameTeam serves PATCH /api/v2/teams/{team_id}: it renames a team.
func (h *Handler) renameTeam(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.TeamDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	t, err := h.Companies.Teams.RenameTeam(r.Context(), rest.PrincipalOf(r), r.PathValue("team_id"), req.Name)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asTeam(t))
}

// removeTeam serves DELETE /api/v2/teams/{team_id}: it deletes a team.
func (h *Handler) removeTeam(w http.ResponseWriter, r *http.Request) error {
	if err := h.Companies.Teams.RemoveTeam(r.Context(), rest.PrincipalOf(r), r.PathValue("team_id")); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// listTeamMembers serves GET /api/v2/teams/{team_id}/members: it lists the
// members of a team.
func (h *Handler) listTeamMembers(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("team_id")
	page, after, err := rest.ReadNamedPage(h.Pages, r, "team-members", id)
	if err != nil {
		return err
	}
	all, err := h.Companies.TeamMembers.ListTeamMembers(r.Context(), rest.PrincipalOf(r), id, after, page.Limit+1)
	if err != nil {
		return err
	}
	all, hasMore, next := rest.Cut(page, all, rest.NameKey)
	return rest.ReplyCompressed(w, r, wire.TeamMemberList{Data: rest.Convert(all, asTeamMember), HasMore: hasMore, NextCursor: next})
}

// setTeamMember serves PUT /api/v2/teams/{team_id}/members/{uid}: it adds a
// member to a team or changes their role.
func (h *Handler) setTeamMember(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.RoleAssignment](w, r, h.JSON)
	if err != nil {
		return err
	}
	m, err := h.Companies.TeamMembers.SetTeamMember(r.Context(), rest.PrincipalOf(r), r.PathValue("team_id"), r.PathValue("uid"), req.Role)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asTeamMember(m))
}

// removeTeamMember serves DELETE /api/v2/teams/{team_id}/members/{uid}: it
// removes a member from a team.
func (h *Handler) removeTeamMember(w http.ResponseWriter, r *http.Request) error {
	if err := h.Companies.TeamMembers.RemoveTeamMember(r.Context(), rest.PrincipalOf(r), r.PathValue("team_id"), r.PathValue("uid")); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// listTeamRoles serves GET /api/v2/teams/{team_id}/roles: it lists the roles
// of a team.
func (h *Handler) listTeamRoles(w http.ResponseWriter, r *http.Request) error {
	all, err := h.Companies.TeamRoles.ListTeamRoles(r.Context(), rest.PrincipalOf(r), r.PathValue("team_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.TeamRoleList{Data: rest.Convert(all, asTeamRole)})
}

// setTeamRole serves PUT /api/v2/teams/{team_id}/roles/{role}: it creates or
// replaces a role of a team.
func (h *Handler) setTeamRole(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.TeamRoleDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	if req.Permissions == nil {
		return rest.RequiredField("permissions")
	}
	role, err := h.Companies.TeamRoles.SetTeamRole(r.Context(), rest.PrincipalOf(r), r.PathValue("team_id"), teamRoleOf(r.PathValue("role"), req))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asTeamRole(role))
}

// deleteTeamRole serves DELETE /api/v2/teams/{team_id}/roles/{role}: it
// deletes a role of a team.
func (h *Handler) deleteTeamRole(w http.ResponseWriter, r *http.Request) error {
	if err := h.Companies.TeamRoles.DeleteTeamRole(r.Context(), rest.PrincipalOf(r), r.PathValue("team_id"), r.PathValue("role")); err != nil {
		return err
	}
	return rest.NoContent(w)
}
