package pages

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
)

// tokenList is the template data of the pages that list access tokens.
type tokenList struct {
	Base    string           // the URL path of the page
	Company *company.Company // nil on the person's own page
	Tokens  []credential.Token
	Members []company.Member  // the people whom a company token can act as
	Names   map[string]string // names of companies and e-mail addresses of members, by id
	More    string            // the URL of the next page, or ""
}

// tokensPerPage is the maximum number of access tokens on a page.
const tokensPerPage = 100

// setTokens sets the tokens of the page and the URL of the next page. If there
// is a next page, all has one token more than fits on the page.
func (l *tokenList) setTokens(all []credential.Token) {
	if len(all) > tokensPerPage {
		all = all[:tokensPerPage]
		last := all[tokensPerPage-1]
		l.More = withQuery(l.Base, url.Values{"after": {last.ID + "-" + strconv.FormatInt(last.Created.UnixMicro(), 10)}})
	}
	l.Tokens = all
}

// parseAfter returns the token after which a page of tokens begins, from the
// query parameter after. It returns nil for the first page or a malformed
// parameter.
func parseAfter(v *pageRequest) *credential.After {
	id, at, _ := strings.Cut(v.queryValue("after"), "-")
	micros, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !ids.Valid(id) {
		return nil
	}
	return &credential.After{Created: time.UnixMicro(micros).UTC(), ID: id}
}

// showTokens handles GET /tokens: it lists the person's access tokens.
func (s tokenPages) showTokens(v *pageRequest) error {
	l, err := s.loadTokenList(v)
	if err != nil {
		return err
	}
	return v.showPage("tokens", l)
}

func (s tokenPages) loadTokenList(v *pageRequest) (l tokenList, err error) {
	all, err := s.Accounts.AccessTokens.ListTokens(v.r.Context(), v.session.PersonID, parseAfter(v), tokensPerPage+1)
	if err != nil {
		return l, err
	}
	in, err := s.Accounts.Profiles.ListCompanies(v.r.Context(), v.session.PersonID)
	if err != nil {
		return l, err
	}
	l.Names = map[string]string{}
	for _, m := range in {
		l.Names[m.Company.ID] = m.Company.Name
	}
	l.Base = "/tokens"
	l.setTokens(all)
	return l, nil
}

// newTokenPage is the template data of the page that shows a new token's
// secret, which is shown only once.
type newTokenPage struct {
	Token  credential.Token
	Secret string
	Back   string
}

// createToken handles POST /tokens: it creates a personal access token and
// shows its secret.
func (s tokenPages) createToken(v *pageRequest) error {
	t, secret, err := s.Accounts.AccessTokens.CreateAccessToken(v.r.Context(), v.currentPrincipal(), v.session.PersonID, v.form.Get("name"))
	if err == nil {
		return v.showPage("token", newTokenPage{t, secret, "/tokens"})
	}
	l, other := s.loadTokenList(v)
	if other != nil {
		return other
	}
	return v.showFormAgain("tokens", l, err)
}

// regenerateToken handles POST /tokens/regenerate: it replaces the secret of a
// personal access token and shows the new one.
func (s tokenPages) regenerateToken(v *pageRequest) error {
	t, secret, err := s.Accounts.AccessTokens.RegenerateAccessToken(v.r.Context(), v.currentPrincipal(), v.form.Get("id"))
	if err != nil {
		return err
	}
	return v.showPage("token", newTokenPage{t, secret, "/tokens"})
}

// deleteToken handles POST /tokens/delete: it deletes a personal access token.
func (s tokenPages) deleteToken(v *pageRequest) error {
	if err := s.Accounts.AccessTokens.DeleteAccessToken(v.r.Context(), v.currentPrincipal(), v.form.Get("id")); err != nil {
		return err
	}
	return v.redirectTo("/tokens?done=deleted")
}

// companyTokensPath returns the URL path of the page with the company's access
// tokens.
func companyTokensPath(v *pageRequest) string {
	return "/companies/" + v.r.PathValue("company_id") + "/tokens"
}

// showCompanyTokens handles GET /companies/{company_id}/tokens: it lists the
// access tokens of a company.
func (s tokenPages) showCompanyTokens(v *pageRequest) error {
	l, err := s.loadCompanyTokenList(v)
	if err != nil {
		return err
	}
	return v.showPage("tokens", l)
}

func (s tokenPages) loadCompanyTokenList(v *pageRequest) (l tokenList, err error) {
	id := v.r.PathValue("company_id")
	all, err := s.Accounts.AccessTokens.ListCompanyTokens(v.r.Context(), v.currentPrincipal(), id, parseAfter(v), tokensPerPage+1)
	if err != nil {
		return l, err
	}
	if l.Members, err = s.Accounts.AccessTokens.ListMembers(v.r.Context(), v.currentPrincipal(), id); err != nil {
		return l, err
	}
	in, err := s.Accounts.Profiles.ListCompanies(v.r.Context(), v.session.PersonID)
	if err != nil {
		return l, err
	}
	for _, m := range in {
		if m.Company.ID == id {
			l.Company = &m.Company
		}
	}
	if l.Company == nil { // the person has just left the company
		return l, fault.New(fault.NotFound, "The company does not exist.")
	}
	l.Names = map[string]string{}
	for _, m := range l.Members {
		l.Names[m.PersonID] = m.Email
	}
	l.Base = companyTokensPath(v)
	l.setTokens(all)
	return l, nil
}

// createCompanyToken handles POST /companies/{company_id}/tokens: it creates
// an access token of a company and shows its secret.
func (s tokenPages) createCompanyToken(v *pageRequest) error {
	t, secret, err := s.Accounts.AccessTokens.CreateCompanyToken(v.r.Context(), v.currentPrincipal(), v.r.PathValue("company_id"), v.form.Get("uid"), v.form.Get("name"))
	if err == nil {
		return v.showPage("token", newTokenPage{t, secret, companyTokensPath(v)})
	}
	l, other := s.loadCompanyTokenList(v)
	if other != nil {
		return other
	}
	return v.showFormAgain("tokens", l, err)
}

// regenerateCompanyToken handles POST
// /companies/{company_id}/tokens/regenerate: it replaces the secret of a
// company's access token and shows the new one.
func (s tokenPages) regenerateCompanyToken(v *pageRequest) error {
	t, secret, err := s.Accounts.AccessTokens.RegenerateCompanyToken(v.r.Context(), v.currentPrincipal(), v.r.PathValue("company_id"), v.form.Get("id"))
	if err != nil {
		return err
	}
	return v.showPage("token", newTokenPage{t, secret, companyTokensPath(v)})
}

// deleteCompanyToken handles POST /companies/{company_id}/tokens/delete: it
// deletes an access token of a company.
func (s tokenPages) deleteCompanyToken(v *pageRequest) error {
	if err := s.Accounts.AccessTokens.DeleteCompanyToken(v.r.Context(), v.currentPrincipal(), v.r.PathValue("company_id"), v.form.Get("id")); err != nil {
		return err
	}
	return v.redirectTo(companyTokensPath(v) + "?done=deleted")
}
