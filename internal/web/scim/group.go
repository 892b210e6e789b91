package scim

import (
	"context"
	"net/http"
	"strings"

	"atelier/internal/account/provisioning"
)

// asGroup writes a group as an object.
func (s *Server) asGroup(g provisioning.Group) object {
	o := object{
		"schemas": []string{groups.core.id}, "id": g.ID, "displayName": g.Name,
		"meta": object{"resourceType": groups.name, "created": g.Created, "lastModified": g.Updated, "location": s.base + groups.endpoint + "/" + g.ID},
	}
	if g.ExternalID != "" {
		o["externalId"] = g.ExternalID
	}
	var members []any
	for _, m := range g.Members {
		members = append(members, object{"value": m.ID, "display": m.Name, "type": users.name, "$ref": s.base + users.endpoint + "/" + m.ID})
	}
	if members != nil {
		o["members"] = members
	}
	return o
}

// groupDraft takes from an object what the directory wants. A member is named by
// id, or by address.
func groupDraft(o object) (d provisioning.GroupDraft, err error) {
	d.Name, _ = o["displayName"].(string)
	if d.Name == "" {
		return d, refuse(invalidValue, "displayName is required.")
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
		if kind, _ := m["type"].(string); kind != "" && !strings.EqualFold(kind, users.name) {
			return d, refuse(invalidValue, "The members of groups are users.")
		}
		if !seen[id] {
			seen[id] = true
			d.Members = append(d.Members, id)
		}
	}
	return d, nil
}

func (s *Server) listGroups(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	q, err := readQuery(r)
	if err != nil {
		return err
	}
	return s.list(w, r, from, q, s.findGroups)
}

func (s *Server) searchGroups(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	q, err := readSearch(w, r)
	if err != nil {
		return err
	}
	return s.list(w, r, from, q, s.findGroups)
}

// findGroups gives a page of groups.
func (s *Server) findGroups(ctx context.Context, from provisioning.Client, q query) (page []any, total int, err error) {
	chosen, err := groups.selects(q.attributes, q.excluded)
	if err != nil {
		return nil, 0, err
	}
	want := provisioning.GroupQuery{Start: q.start, Count: q.count, WithMembers: chosen.names("members")}
	if q.filter != "" {
		f, err := groups.filter(q.filter)
		if err != nil {
			return nil, 0, err
		}
		want.Match = func(g provisioning.Group) bool { return f.matches(s.asGroup(g)) }
		want.MatchMembers = f.members
		want.ID, want.ExternalID, want.Name = f.by("id", "externalid", "displayname")
	}
	found, total, err := s.Provisioning.ListGroups(ctx, from, want)
	for _, g := range found {
		page = append(page, groups.cut(s.asGroup(g), chosen))
	}
	return page, total, err
}

// readGroup reads a group that comes whole.
func readGroup(w http.ResponseWriter, r *http.Request) (provisioning.GroupDraft, error) {
	sent, err := body(w, r)
	if err != nil {
		return provisioning.GroupDraft{}, err
	}
	o, err := groups.read(sent)
	if err != nil {
		return provisioning.GroupDraft{}, err
	}
	return groupDraft(o)
}

func (s *Server) createGroup(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	draft, err := readGroup(w, r)
	if err != nil {
		return err
	}
	g, err := s.Provisioning.CreateGroup(r.Context(), from, draft)
	if err != nil {
		return err
	}
	w.Header().Set("Location", s.base+groups.endpoint+"/"+g.ID)
	return s.replyGroup(w, r, http.StatusCreated, g)
}

func (s *Server) replyGroup(w http.ResponseWriter, r *http.Request, status int, g provisioning.Group) error {
	chosen, err := groups.selectsBy(r)
	if err != nil {
		chosen = selection{} // it is done by now, or not worth a refusal
	}
	return reply(w, status, groups.cut(s.asGroup(g), chosen))
}

func (s *Server) getGroup(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	g, err := s.Provisioning.GetGroup(r.Context(), from, r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.replyGroup(w, r, http.StatusOK, g)
}

func (s *Server) replaceGroup(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	draft, err := readGroup(w, r)
	if err != nil {
		return err
	}
	g, err := s.Provisioning.ChangeGroup(r.Context(), from, r.PathValue("id"), func(provisioning.Group) (provisioning.GroupDraft, error) { return draft, nil })
	if err != nil {
		return err
	}
	return s.replyGroup(w, r, http.StatusOK, g)
}

func (s *Server) patchGroup(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	sent, err := body(w, r)
	if err != nil {
		return err
	}
	changes, err := groups.operations(sent)
	if err != nil {
		return err
	}
	g, err := s.Provisioning.ChangeGroup(r.Context(), from, r.PathValue("id"), func(was provisioning.Group) (provisioning.GroupDraft, error) {
		o := s.asGroup(was)
		if err := groups.patch(o, changes); err != nil {
			return provisioning.GroupDraft{}, err
		}
		return groupDraft(o)
	})
	if err != nil {
		return err
	}
	return s.replyGroup(w, r, http.StatusOK, g)
}

func (s *Server) deleteGroup(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	if err := s.Provisioning.DeleteGroup(r.Context(), from, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
