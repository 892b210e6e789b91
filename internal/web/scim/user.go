package scim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"atelier/internal/account/provisioning"
)

// maxAttributes bounds what is kept about a user, in bytes of JSON.
const maxAttributes = 64 << 10

// asUser writes a user as an object.
func (s *Server) asUser(u provisioning.User) (object, error) {
	o := object{}
	if u.Attributes != "" {
		if err := json.Unmarshal([]byte(u.Attributes), &o); err != nil {
			return nil, fmt.Errorf("attributes of user %s: %w", u.ID, err)
		}
	} else { // somebody the directory has not spoken of yet
		o["emails"] = []any{object{"value": u.Name, "type": "work", "primary": true}}
	}
	o["id"] = u.ID
	o["userName"] = u.Name
	o["active"] = u.Active
	if u.ExternalID != "" {
		o["externalId"] = u.ExternalID
	}
	names := []string{users.core.id}
	if o[users.extension.id] != nil {
		names = append(names, users.extension.id)
	}
	o["schemas"] = names
	var in []any
	for _, g := range u.Groups {
		in = append(in, object{"value": g.ID, "display": g.Name, "type": "direct", "$ref": s.base + groups.endpoint + "/" + g.ID})
	}
	if in != nil {
		o["groups"] = in
	}
	o["meta"] = object{"resourceType": users.name, "created": u.Created, "lastModified": u.Updated, "location": s.base + users.endpoint + "/" + u.ID}
	return o, nil
}

// userDraft takes from an object what the directory wants. Without a userName
// the primary mail address is it.
func userDraft(o object) (d provisioning.UserDraft, err error) {
	rest := maps.Clone(o)
	for _, name := range []string{"id", "schemas", "meta", "groups", "userName", "active", "externalId"} {
		delete(rest, name)
	}
	d.Name, _ = o["userName"].(string)
	if d.Name == "" {
		d.Name = primaryEmail(o)
	}
	if d.Name == "" {
		return d, refuse(invalidValue, "userName is required.")
	}
	if d.ExternalID, err = externalID(o); err != nil {
		return d, err
	}
	d.Active, _ = o["active"].(bool)
	text, err := json.Marshal(rest)
	if err != nil {
		return d, fmt.Errorf("attributes of a user: %w", err)
	}
	if len(text) > maxAttributes {
		return d, refuse(invalidValue, "The attributes of a user have %d bytes at most.", maxAttributes)
	}
	d.Attributes = string(text)
	return d, nil
}

func primaryEmail(o object) string {
	list, _ := o["emails"].([]any)
	for _, one := range list {
		if isPrimary(one) || len(list) == 1 {
			value, _ := one.(object)["value"].(string)
			return value
		}
	}
	return ""
}

func (s *Server) listUsers(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	q, err := readQuery(r)
	if err != nil {
		return err
	}
	return s.list(w, r, from, q, s.findUsers)
}

func (s *Server) searchUsers(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	q, err := readSearch(w, r)
	if err != nil {
		return err
	}
	return s.list(w, r, from, q, s.findUsers)
}

// findUsers gives a page of users.
func (s *Server) findUsers(ctx context.Context, from provisioning.Client, q query) (page []any, total int, err error) {
	chosen, err := users.selects(q.attributes, q.excluded)
	if err != nil {
		return nil, 0, err
	}
	want := provisioning.UserQuery{Start: q.start, Count: q.count}
	var broken error
	if q.filter != "" {
		f, err := users.filter(q.filter)
		if err != nil {
			return nil, 0, err
		}
		want.Match = func(u provisioning.User) bool {
			o, err := s.asUser(u)
			if err != nil {
				broken = err
			}
			return err == nil && f.matches(o)
		}
		want.ID, want.Name, want.ExternalID = f.by("id", "username", "externalid")
	}
	found, total, err := s.Provisioning.ListUsers(ctx, from, want)
	if err == nil {
		err = broken
	}
	if err != nil {
		return nil, 0, err
	}
	for _, u := range found {
		o, err := s.asUser(u)
		if err != nil {
			return nil, 0, err
		}
		page = append(page, users.cut(o, chosen))
	}
	return page, total, nil
}

// by gives the first of these attributes that the filter pins, for the index.
func (f where) by(names ...string) (first, second, third *string) {
	got := make([]*string, 3)
	for i, name := range names {
		if v, ok := f.pinned[name]; ok {
			got[i] = &v
			break
		}
	}
	return got[0], got[1], got[2]
}

func (s *Server) createUser(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	sent, err := body(w, r)
	if err != nil {
		return err
	}
	o, err := users.read(sent)
	if err != nil {
		return err
	}
	if _, said := o["active"]; !said {
		o["active"] = true
	}
	draft, err := userDraft(o)
	if err != nil {
		return err
	}
	u, err := s.Provisioning.CreateUser(r.Context(), from, draft)
	if err != nil {
		return err
	}
	w.Header().Set("Location", s.base+users.endpoint+"/"+u.ID)
	return s.replyUser(w, r, http.StatusCreated, u)
}

func (s *Server) replyUser(w http.ResponseWriter, r *http.Request, status int, u provisioning.User) error {
	chosen, err := users.selectsBy(r)
	if err != nil {
		chosen = selection{} // it is done by now, or not worth a refusal
	}
	o, err := s.asUser(u)
	if err != nil {
		return err
	}
	return reply(w, status, users.cut(o, chosen))
}

func (s *Server) getUser(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	u, err := s.Provisioning.GetUser(r.Context(), from, r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.replyUser(w, r, http.StatusOK, u)
}

func (s *Server) replaceUser(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	sent, err := body(w, r)
	if err != nil {
		return err
	}
	o, err := users.read(sent)
	if err != nil {
		return err
	}
	u, err := s.Provisioning.ChangeUser(r.Context(), from, r.PathValue("id"), func(was provisioning.User) (provisioning.UserDraft, error) {
		next := maps.Clone(o)
		if _, said := next["active"]; !said {
			next["active"] = was.Active
		}
		return userDraft(next)
	})
	if err != nil {
		return err
	}
	return s.replyUser(w, r, http.StatusOK, u)
}

func (s *Server) patchUser(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	sent, err := body(w, r)
	if err != nil {
		return err
	}
	changes, err := users.operations(sent)
	if err != nil {
		return err
	}
	u, err := s.Provisioning.ChangeUser(r.Context(), from, r.PathValue("id"), func(was provisioning.User) (provisioning.UserDraft, error) {
		o, err := s.asUser(was)
		if err != nil {
			return provisioning.UserDraft{}, err
		}
		if err := users.patch(o, changes); err != nil {
			return provisioning.UserDraft{}, err
		}
		return userDraft(o)
	})
	if err != nil {
		return err
	}
	return s.replyUser(w, r, http.StatusOK, u)
}

func (s *Server) deleteUser(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
	if err := s.Provisioning.DeleteUser(r.Context(), from, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
