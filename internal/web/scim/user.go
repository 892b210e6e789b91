package scim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"atelier/internal/account/provisioning"
)

// maxAttributes is the maximum size of the stored attributes of a user, in
// bytes of JSON.
const maxAttributes = 64 << 10

// asUser returns a user as a SCIM object.
func (s *Server) asUser(u provisioning.User) (object, error) {
	o := object{}
	if u.Attributes != "" {
		if err := json.Unmarshal([]byte(u.Attributes), &o); err != nil {
			return nil, fmt.Errorf("decode the attributes of user %s: %w", u.ID, err)
		}
	} else { // the identity provider has not sent any attributes of this user yet
		o["emails"] = []any{object{"value": u.Name, "type": "work", "primary": true}}
	}

	o["id"] = u.ID
	o["userName"] = u.Name
	o["active"] = u.Active
	if u.ExternalID != "" {
		o["externalId"] = u.ExternalID
	}

	names := []string{userType.core.id}
	if o[userType.extension.id] != nil {
		names = append(names, userType.extension.id)
	}

	o["schemas"] = names
	var in []any
	for _, g := range u.Groups {
		in = append(in, object{"value": g.ID, "display": g.Name, "type": "direct", "$ref": s.baseURL + groupType.endpoint + "/" + g.ID})
	}
	if in != nil {
		o["groups"] = in
	}

	o["meta"] = object{"resourceType": userType.name, "created": u.Created, "lastModified": u.Updated, "location": s.baseURL + userType.endpoint + "/" + u.ID}
	return o, nil
}

// userDraft converts a SCIM object to the stored fields of a user. If userName
// is missing, the primary e-mail address is used instead.
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
		return d, newProblem(invalidValue, "userName is required.")
	}
	if d.ExternalID, err = externalID(o); err != nil {
		return d, err
	}

	d.Active, _ = o["active"].(bool)
	text, err := json.Marshal(rest)
	if err != nil {
		return d, fmt.Errorf("encode the attributes of a user: %w", err)
	}
	if len(text) > maxAttributes {
		return d, newProblem(invalidValue, "The attributes of a user must have at most %d bytes.", maxAttributes)
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

// listUsers serves GET /Users: it lists the company's users.
func (s *Server) listUsers(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	q, err := readQuery(r)
	if err != nil {
		return err
	}
	return s.listResources(w, r, client, q, s.findUsers)
}

// searchUsers serves POST /Users/.search: it lists users, with the query in
// the request body.
func (s *Server) searchUsers(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	q, err := readSearch(w, r)
	if err != nil {
		return err
	}
	return s.listResources(w, r, client, q, s.findUsers)
}

// findUsers returns one page of the users that match a query, and the total
// number of matches.
func (s *Server) findUsers(ctx context.Context, client provisioning.Client, q query) (page []any, total int, err error) {
	chosen, err := userType.parseSelection(q.attributes, q.excluded)
	if err != nil {
		return nil, 0, err
	}

	want := provisioning.UserQuery{Start: q.start, Count: q.count}
	var firstErr error
	if q.filter != "" {
		f, err := userType.parseFilter(q.filter)
		if err != nil {
			return nil, 0, err
		}
		want.Match = func(u provisioning.User) bool {
			o, err := s.asUser(u)
			if err != nil {
				firstErr = err
			}
			return err == nil && f.matches(o)
		}
		want.ID, want.Name, want.ExternalID = f.firstEquality("id", "username", "externalid")
	}

	found, total, err := s.Provisioning.ListUsers(ctx, client, want)
	if err == nil {
		err = firstErr
	}
	if err != nil {
		return nil, 0, err
	}

	for _, u := range found {
		o, err := s.asUser(u)
		if err != nil {
			return nil, 0, err
		}
		page = append(page, userType.selectAttributes(o, chosen))
	}

	return page, total, nil
}

// firstEquality finds the first of the named attributes that the filter
// compares by eq. It returns the required value at the position of that
// attribute, so that a query can use an index. The other results are nil.
func (f parsedFilter) firstEquality(names ...string) (first, second, third *string) {
	got := make([]*string, 3)
	for i, name := range names {
		if v, ok := f.equalTo[name]; ok {
			got[i] = &v
			break
		}
	}
	return got[0], got[1], got[2]
}

// createUser serves POST /Users: it creates a user.
func (s *Server) createUser(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	sent, err := readBody(w, r)
	if err != nil {
		return err
	}

	o, err := userType.readResource(sent)
	if err != nil {
		return err
	}
	if _, exists := o["active"]; !exists {
		o["active"] = true
	}

	draft, err := userDraft(o)
	if err != nil {
		return err
	}

	u, err := s.Provisioning.CreateUser(r.Context(), client, draft)
	if err != nil {
		return err
	}

	w.Header().Set("Location", s.baseURL+userType.endpoint+"/"+u.ID)
	return s.replyUser(w, r, http.StatusCreated, u)
}

func (s *Server) replyUser(w http.ResponseWriter, r *http.Request, status int, u provisioning.User) error {
	chosen, err := userType.selectionOf(r)
	if err != nil {
		chosen = selection{} // the user was already changed, so an error response would be misleading
	}
	o, err := s.asUser(u)
	if err != nil {
		return err
	}
	return writeReply(w, status, userType.selectAttributes(o, chosen))
}

// getUser serves GET /Users/{id}: it returns a user.
func (s *Server) getUser(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	u, err := s.Provisioning.GetUser(r.Context(), client, r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.replyUser(w, r, http.StatusOK, u)
}

// replaceUser serves PUT /Users/{id}: it replaces the attributes of a user.
func (s *Server) replaceUser(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	sent, err := readBody(w, r)
	if err != nil {
		return err
	}

	o, err := userType.readResource(sent)
	if err != nil {
		return err
	}

	u, err := s.Provisioning.ChangeUser(r.Context(), client, r.PathValue("id"), func(before provisioning.User) (provisioning.UserDraft, error) {
		next := maps.Clone(o)
		if _, exists := next["active"]; !exists {
			next["active"] = before.Active
		}
		return userDraft(next)
	})
	if err != nil {
		return err
	}

	return s.replyUser(w, r, http.StatusOK, u)
}

// patchUser serves PATCH /Users/{id}: it changes some attributes of a user.
func (s *Server) patchUser(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	sent, err := readBody(w, r)
	if err != nil {
		return err
	}

	changes, err := userType.parseOperations(sent)
	if err != nil {
		return err
	}

	u, err := s.Provisioning.ChangeUser(r.Context(), client, r.PathValue("id"), func(before provisioning.User) (provisioning.UserDraft, error) {
		o, err := s.asUser(before)
		if err != nil {
			return provisioning.UserDraft{}, err
		}
		if err := userType.applyOperations(o, changes); err != nil {
			return provisioning.UserDraft{}, err
		}
		return userDraft(o)
	})
	if err != nil {
		return err
	}

	return s.replyUser(w, r, http.StatusOK, u)
}

// deleteUser serves DELETE /Users/{id}: it deletes a user.
func (s *Server) deleteUser(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
	if err := s.Provisioning.DeleteUser(r.Context(), client, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
