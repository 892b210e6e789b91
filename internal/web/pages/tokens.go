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

// tokenList is what the pages of access tokens show.
type tokenList struct {
	Base    string           // where the page is
	Company *company.Company // nil on the person's own page
	Tokens  []credential.Token
	Members []company.Member  // whom a company's token can stand for
	Names   map[string]string // of companies and members, by id
	More    string            // where the older ones are, "" for nowhere
}

// tokensShown is how many tokens a page has.
const tokensShown = 100

// fill takes the tokens of a page out of one more than it has.
func (l *tokenList) fill(all []credential.Token) {
	if len(all) > tokensShown {
		all = all[:tokensShown]
		last := all[tokensShown-1]
		l.More = withQuery(l.Base, url.Values{"after": {last.ID + "-" + strconv.FormatInt(last.Created.UnixMicro(), 10)}})
	}
	l.Tokens = all
}

// afterOf reads where a page of tokens begins; nil is the start, also for what
// is not one of our own addresses.
func afterOf(v *visit) *credential.After {
	id, at, _ := strings.Cut(v.query("after"), "-")
	micros, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !ids.Valid(id) {
		return nil
	}
	return &credential.After{Created: time.UnixMicro(micros).UTC(), ID: id}
}

func (s *server) tokens(v *visit) error {
	l, err := s.tokenList(v)
	if err != nil {
		return err
	}
	return v.show("tokens", l)
}

func (s *server) tokenList(v *visit) (l tokenList, err error) {
	all, err := s.Accounts.AccessTokens.ListTokens(v.r.Context(), v.session.PersonID, afterOf(v), tokensShown+1)
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
	l.fill(all)
	return l, nil
}

// minted is what the page shows that alone ever has a token's value.
type minted struct {
	Token  credential.Token
	Secret string
	Back   string
}

func (s *server) createToken(v *visit) error {
	t, secret, err := s.Accounts.AccessTokens.CreateAccessToken(v.r.Context(), v.principal(), v.session.PersonID, v.form.Get("name"))
	if err == nil {
		return v.show("token", minted{t, secret, "/tokens"})
	}
	l, other := s.tokenList(v)
	if other != nil {
		return other
	}
	return v.again("tokens", l, err)
}

func (s *server) regenerateToken(v *visit) error {
	t, secret, err := s.Accounts.AccessTokens.RegenerateAccessToken(v.r.Context(), v.principal(), v.form.Get("id"))
	if err != nil {
		return err
	}
	return v.show("token", minted{t, secret, "/tokens"})
}

func (s *server) deleteToken(v *visit) error {
	if err := s.Accounts.AccessTokens.DeleteAccessToken(v.r.Context(), v.principal(), v.form.Get("id")); err != nil {
		return err
	}
	return v.to("/tokens?done=deleted")
}

// companyPage is where the tokens of the company are that the address names.
func companyPage(v *visit) string { return "/companies/" + v.r.PathValue("company_id") + "/tokens" }

func (s *server) companyTokens(v *visit) error {
	l, err := s.companyList(v)
	if err != nil {
		return err
	}
	return v.show("tokens", l)
}

func (s *server) companyList(v *visit) (l tokenList, err error) {
	id := v.r.PathValue("company_id")
	all, err := s.Accounts.AccessTokens.ListCompanyTokens(v.r.Context(), v.principal(), id, afterOf(v), tokensShown+1)
	if err != nil {
		return l, err
	}
	if l.Members, err = s.Accounts.AccessTokens.ListMembers(v.r.Context(), v.principal(), id); err != nil {
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
	if l.Company == nil { // they left just now
		return l, fault.New(fault.NotFound, "There is no such company.")
	}
	l.Names = map[string]string{}
	for _, m := range l.Members {
		l.Names[m.PersonID] = m.Email
	}
	l.Base = companyPage(v)
	l.fill(all)
	return l, nil
}

func (s *server) createCompanyToken(v *visit) error {
	t, secret, err := s.Accounts.AccessTokens.CreateCompanyToken(v.r.Context(), v.principal(), v.r.PathValue("company_id"), v.form.Get("uid"), v.form.Get("name"))
	if err == nil {
		return v.show("token", minted{t, secret, companyPage(v)})
	}
	l, other := s.companyList(v)
	if other != nil {
		return other
	}
	return v.again("tokens", l, err)
}

func (s *server) regenerateCompanyToken(v *visit) error {
	t, secret, err := s.Accounts.AccessTokens.RegenerateCompanyToken(v.r.Context(), v.principal(), v.r.PathValue("company_id"), v.form.Get("id"))
	if err != nil {
		return err
	}
	return v.show("token", minted{t, secret, companyPage(v)})
}

func (s *server) deleteCompanyToken(v *visit) error {
	if err := s.Accounts.AccessTokens.DeleteCompanyToken(v.r.Context(), v.principal(), v.r.PathValue("company_id"), v.form.Get("id")); err != nil {
		return err
	}
	return v.to(companyPage(v) + "?done=deleted")
}
