package api

import (
	"net/http"
	"slices"

	"atelier/internal/account/profile"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/web/api/wire"
)

func (s *Server) getMe(w http.ResponseWriter, r *http.Request) error {
	record, err := s.Accounts.Profiles.GetProfile(r.Context(), principalOf(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asIdentity(record))
}

func (s *Server) claimTopUp(w http.ResponseWriter, r *http.Request) error {
	topUp, balance, err := s.Accounts.Grants.ClaimTopUp(r.Context(), principalOf(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, wire.ToppedUp{TopUp: wire.TopUp(topUp), Balance: asBalance(balance)})
}

func asIdentity(r profile.Profile) wire.Identity {
	created := moment(r.Person.Created)
	who := wire.Identity{
		User: wire.User{
			UID:            r.Person.ID,
			Email:          r.Person.Email,
			EmailVerified:  r.Person.EmailVerified,
			SignInProvider: r.Provider,
			Created:        created,
			CreatedAt:      created,
			TopUp:          wire.TopUp(r.TopUp),
		},
		Accounts: []wire.Account{}, NewlyJoinedTeams: []wire.JoinedTeam{}, CompanyPermissions: wire.CompanyPermissions{},
	}
	for _, a := range r.Accounts {
		who.Accounts = append(who.Accounts, asAccount(a))
	}
	for _, t := range r.NewTeams {
		who.NewlyJoinedTeams = append(who.NewlyJoinedTeams, wire.JoinedTeam{ID: t.ID, Label: t.Name, CompanyID: t.CompanyID})
	}
	for id, has := range r.Permissions {
		who.CompanyPermissions[id] = asPermissions(company.CompanyPermissions, has)
	}
	return who
}

func asAccount(a profile.Account) wire.Account {
	acc := wire.Account{
		ID:          a.ID,
		Label:       a.Label,
		Kind:        wire.AccountKindPERSONAL,
		Plan:        wire.AccountPlanPERSONAL,
		Permissions: asPermissions(company.TeamPermissions, a.Permissions),
		PluginKinds: a.PluginKinds,
		Balance:     asBalance(a.Balance),
		Storage:     wire.Storage{UsedBytes: a.Storage.Used, LimitBytes: limitOrNull(a.Storage.Limit)},
	}
	if a.CompanyID != "" {
		acc.CompanyID = &a.CompanyID
		acc.Kind = wire.AccountKindTEAM
		acc.Plan = wire.AccountPlan(a.Plan)
	}
	return acc
}

func asBalance(b ledger.Balance) wire.Balance {
	return wire.Balance{Tokens: b.Tokens, Held: b.Held, FreeAllowanceLeft: b.FreeAllowanceLeft}
}

// limitOrNull is a limit as the wire has it, null for none.
func limitOrNull(bytes int64) *int64 {
	if bytes == 0 {
		return nil
	}
	return &bytes
}

// asPermissions names all permissions of a kind and tells which of them are
// had.
func asPermissions(all, has []company.Permission) map[string]bool {
	m := map[string]bool{}
	for _, p := range all {
		m[string(p)] = slices.Contains(has, p)
	}
	return m
}
