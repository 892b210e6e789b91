package scim

import (
	"context"
	"net/http"
	"strings"

	"atelier/internal/account/provisioning"
)

// asGroup returns a group as a SCIM object.
func (s *Server) asGroup(g provisioning.Group) object {
	o := object{
		"schemas": []string{groupType.core.id}, "id": g.ID, "displayName": g.Name,
		"meta": object{"resourceType": groupType.name, "created": g.Created, "lastModified": g.Updated, "location": s.baseURL + groupType.endpoint + "/" + g.ID},
	}
	if g.ExternalID != "" {
		o["externalId"] = g.ExternalID
	}

	var members []any
	for _, m := range g.Members {
		members = append(members, object{"value": m.ID, "display": m.Name, "type": userType.name, "$ref": s.baseURL + userType.endpoint + "/" + m.ID})
	}
	if members != nil {
		o["members"] = members
	}

	return o
}

// groupDraft converts a SCIM object to the stored fields of a group. Each
// member is named by its id or by its $ref URL.
func groupDraft(o object) (d provisioning.GroupDraft, err error) {
	d.Name, _ = o["displayName"].(string)
	if d.Name == "" {
		return d, newProblem(invalidValue, "displayName is required.")
	}
	if d.ExternalID, err = externalID(o); err != nil {
		return d, err
	}

	members, _ := o["members"].([]any)
	seen := map[string]bool{}
	for _, one := range members {
		m := one.(object)
		id, _ := m["value"].(string)
		if ref, _ := m["$ref"].(string); id == "" {
			id = ref[strings.LastIndexByte(ref, '/')+1:]
		}
		if kind, _ := m["type"].(string); kind != "" && !strings.EqualFold(kind, userType.name) {
			return d, newProblem(invalidValue, "Members of groups must be users.")
		}
		if !seen[id] {
			seen[id] = true
			d.Members = append(d.Members, id)
		}
	}

	return d, nil
}

// listGroups serves GET /Groups: it lists the company's groups, which are
// teams.
func (s *Server) listGroups(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	q, err := readQuery(r)
	if err != nil {
		return err
	}
	return s.listResources(w, r, client, q, s.findGroups)
}

// searchGroups serves POST /Groups/.search: it lists groups, with the query in
// the request body.
func (s *Server) searchGroups(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	q, err := readSearch(w, r)
	if err != nil {
		return err
	}
	return s.listResources(w, r, client, q, s.findGroups)
}

// findGroups returns one page of the groups that match a query, and the total
// number of matches.
func (s *Server) findGroups(ctx context.Context, client provisioning.Client, q query) (page []any, total int, err error) {
	chosen, err := groupType.parseSelection(q.attributes, q.excluded)
	if err != nil {
		return nil, 0, err
	}

	want := provisioning.GroupQuery{Start: q.start, Count: q.count, WithMembers: chosen.includesAttribute("members")}
	if q.filter != "" {
		f, err := groupType.parseFilter(q.filter)
		if err != nil {
			return nil, 0, err
		}
		want.Match = func(g provisioning.Group) bool { return f.matches(s.asGroup(g)) }
		want.MatchMembers = f.usesMembers
		want.ID, want.ExternalID, want.Name = f.firstEquality("id", "externalid", "displayname")
	}

	found, total, err := s.Provisioning.ListGroups(ctx, client, want)
	for _, g := range found {
		page = append(page, groupType.selectAttributes(s.asGroup(g), chosen))
	}

	return page, total, err
}

// readGroup reads a group from the request body of a POST or PUT.
func readGroup(w http.ResponseWriter, r *http.Request) (provisioning.GroupDraft, error) {
	sent, err := readBody(w, r)
	if err != nil {
		return provisioning.GroupDraft{}, err
	}
	o, err := groupType.readResource(sent)
	if err != nil {
		return provisioning.GroupDraft{}, err
	}
	return groupDraft(o)
}

// createGroup serves POST /Groups: it creates a group.
func (s *Server) createGroup(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	draft, err := readGroup(w, r)
	if err != nil {
		return err
	}
	g, err := s.Provisioning.CreateGroup(r.Context(), client, draft)
	if err != nil {
		return err
	}
	w.Header().Set("Location", s.baseURL+groupType.endpoint+"/"+g.ID)
	return s.replyGroup(w, r, http.StatusCreated, g)
}

func (s *Server) replyGroup(w http.ResponseWriter, r *http.Request, status int, g provisioning.Group) error {
	chosen, err := groupType.selectionOf(r)
	if err != nil {
		chosen = selection{} // the group was already changed, so an error response would be misleading
	}
	return writeReply(w, status, groupType.selectAttributes(s.asGroup(g), chosen))
}

// getGroup serves GET /Groups/{id}: it returns a group.
func (s *Server) getGroup(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	g, err := s.Provisioning.GetGroup(r.Context(), client, r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.replyGroup(w, r, http.StatusOK, g)
}

// replaceGroup serves PUT /Groups/{id}: it replaces the attributes of a group.
func (s *Server) replaceGroup(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	draft, err := readGroup(w, r)
	if err != nil {
		return err
	}
	g, err := s.Provisioning.ChangeGroup(r.Context(), client, r.PathValue("id"), func(provisioning.Group) (provisioning.GroupDraft, error) { return draft, nil })
	if err != nil {
		return err
	}
	return s.replyGroup(w, r, http.StatusOK, g)
}

// patchGroup serves PATCH /Groups/{id}: it changes some attributes of a group.
func (s *Server) patchGroup(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	sent, err := readBody(w, r)
	if err != nil {
		return err
	}

	changes, err := groupType.parseOperations(sent)
	if err != nil {
		return err
	}

	g, err := s.Provisioning.ChangeGroup(r.Context(), client, r.PathValue("id"), func(before provisioning.Group) (provisioning.GroupDraft, error) {
		o := s.asGroup(before)
		if err := groupType.applyOperations(o, changes); err != nil {
			return provisioning.GroupDraft{}, err
		}
		return groupDraft(o)
	})
	if err != nil {
		return err
	}

	return s.replyGroup(w, r, http.StatusOK, g)
}

// deleteGroup serves DELETE /Groups/{id}: it deletes a group.
func (s *Server) deleteGroup(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	if err := s.Provisioning.DeleteGroup(r.Context(), client, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
