// Package me serves /api/v2/me: the identity and accounts of the caller, the
// export of their data and the deletion of their account.
package me

import (
	"net/http"
	"time"

	"atelier/internal/account/personaldata"
	"atelier/internal/account/profile"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for the caller's own account.
type Handler struct {
	Profiles     *profile.Service
	Grants       *ledger.Grants
	PersonalData *personaldata.Service
	JSON         rest.JSONLimits
	Now          func() time.Time
}

// Routes returns the routes of the operations on the caller's own account.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/me", access.Identity, h.getMe),
		rest.NewRoute("GET /me", access.Identity, h.getMe),
		rest.NewRoute("DELETE /api/v2/me", access.Lasting, h.deleteMe),
		rest.NewRoute("GET /api/v2/me/export", access.SignedIn, h.exportMe),
		rest.NewRoute("POST /api/v2/me/top-up", access.Personal, h.claimTopUp),
	}
}

// getMe serves GET /api/v2/me: it returns the caller, and the accounts for
// which their credential can be used.
func (h *Handler) getMe(w http.ResponseWriter, r *http.Request) error {
	profile, err := h.Profiles.GetProfile(r.Context(), rest.PrincipalOf(r))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, AsIdentity(profile))
}

// claimTopUp serves POST /api/v2/me/top-up: it claims the free tokens of the
// personal account.
func (h *Handler) claimTopUp(w http.ResponseWriter, r *http.Request) error {
	topUp, balance, err := h.Grants.ClaimTopUp(r.Context(), rest.PrincipalOf(r))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.TopUpResult{TopUp: wire.TopUp(topUp), Balance: AsBalance(balance)})
}

// AsIdentity converts a person and their accounts to the API representation.
func AsIdentity(r profile.Profile) wire.Identity {
	created := rest.Moment(r.Person.Created)
	person := wire.Identity{
		User: wire.User{
			UID:            r.Person.ID,
			Email:          r.Person.Email,
			EmailVerified:  r.Person.EmailVerified,
			SignInProvider: r.Provider,
			Created:        created,
			CreatedAt:      created,
			TopUp:          wire.TopUp(r.TopUp),
		},
		Accounts:           rest.Convert(r.Accounts, asAccount),
		NewlyJoinedTeams:   []wire.JoinedTeam{},
		CompanyPermissions: wire.CompanyPermissions{},
		Operator:           r.Operator,
	}
	for _, t := range r.NewTeams {
		person.NewlyJoinedTeams = append(person.NewlyJoinedTeams, wire.JoinedTeam{ID: t.ID, Label: t.Name, CompanyID: t.CompanyID})
	}
	for id, granted := range r.Permissions {
		person.CompanyPermissions[id] = rest.PermissionFlags(company.CompanyPermissions, granted)
	}
	return person
}

func asAccount(a profile.Account) wire.Account {
	account := wire.Account{
		ID:          a.ID,
		Label:       a.Label,
		Kind:        wire.AccountKindPERSONAL,
		Plan:        wire.AccountPlanPERSONAL,
		Permissions: rest.PermissionFlags(company.TeamPermissions, a.Permissions),
		PluginKinds: a.PluginKinds,
		Balance:     AsBalance(a.Balance),
		Storage:     wire.Storage{UsedBytes: a.Storage.Used, LimitBytes: rest.NumberOrNull(a.Storage.Limit)},
	}
	if a.CompanyID != "" {
		account.CompanyID = &a.CompanyID
		account.Kind = wire.AccountKindTEAM
		account.Plan = wire.AccountPlan(a.Plan)
	}
	return account
}

// AsBalance converts the balance of an account to its API representation.
func AsBalance(b ledger.Balance) wire.Balance {
	return wire.Balance{Tokens: b.Tokens, Held: b.Held, FreeAllowanceLeft: b.FreeAllowanceLeft}
}
