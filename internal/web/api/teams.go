package api

import (
	"net/http"

	"atelier/internal/web/api/wire"
)

func (s *Server) listTeams(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("company_id")
	pg, after, err := s.named(r, "teams", id)
	if err != nil {
		return err
	}
	all, err := s.Directory.Teams(r.Context(), principalOf(r), id, after, pg.limit+1)
	if err != nil {
		return err
	}
	var answer wire.TeamList
	all, answer.HasMore, answer.NextCursor = cut(s, pg, all, key)
	answer.Data = every(all, asTeam)
	return replyCompressed(w, r, answer)
}

func (s *Server) createTeam(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.TeamDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	t, err := s.Directory.CreateTeam(r.Context(), principalOf(r), r.PathValue("company_id"), req.Name)
	if err != nil {
		return err
	}
	return reply(w, http.StatusCreated, asTeam(t))
}

func (s *Server) getTeam(w http.ResponseWriter, r *http.Request) error {
	t, err := s.Directory.Team(r.Context(), principalOf(r), r.PathValue("team_id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asTeam(t))
}

func (s *Server) renameTeam(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.TeamDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	t, err := s.Directory.RenameTeam(r.Context(), principalOf(r), r.PathValue("team_id"), req.Name)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asTeam(t))
}

func (s *Server) removeTeam(w http.ResponseWriter, r *http.Request) error {
	if err := s.Directory.RemoveTeam(r.Context(), principalOf(r), r.PathValue("team_id")); err != nil {
		return err
	}
	return done(w)
}

func (s *Server) listTeamMembers(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("team_id")
	pg, after, err := s.named(r, "team-members", id)
	if err != nil {
		return err
	}
	all, err := s.Directory.TeamMembers(r.Context(), principalOf(r), id, after, pg.limit+1)
	if err != nil {
		return err
	}
	var answer wire.TeamMemberList
	all, answer.HasMore, answer.NextCursor = cut(s, pg, all, key)
	answer.Data = every(all, asTeamMember)
	return replyCompressed(w, r, answer)
}

func (s *Server) setTeamMember(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.RoleChoice](w, r, s.Limits)
	if err != nil {
		return err
	}
	m, err := s.Directory.SetTeamMember(r.Context(), principalOf(r), r.PathValue("team_id"), r.PathValue("uid"), req.Role)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asTeamMember(m))
}

func (s *Server) removeTeamMember(w http.ResponseWriter, r *http.Request) error {
	if err := s.Directory.RemoveTeamMember(r.Context(), principalOf(r), r.PathValue("team_id"), r.PathValue("uid")); err != nil {
		return err
	}
	return done(w)
}

func (s *Server) listTeamRoles(w http.ResponseWriter, r *http.Request) error {
	all, err := s.Directory.TeamRoles(r.Context(), principalOf(r), r.PathValue("team_id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, wire.TeamRoleList{Data: every(all, asTeamRole)})
}

func (s *Server) setTeamRole(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.TeamRoleDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	if req.Permissions == nil {
		return missing("permissions")
	}
	role, err := s.Directory.SetTeamRole(r.Context(), principalOf(r), r.PathValue("team_id"), teamRoleOf(r.PathValue("role"), req))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asTeamRole(role))
}

func (s *Server) deleteTeamRole(w http.ResponseWriter, r *http.Request) error {
	if err := s.Directory.DeleteTeamRole(r.Context(), principalOf(r), r.PathValue("team_id"), r.PathValue("role")); err != nil {
		return err
	}
	return done(w)
}
