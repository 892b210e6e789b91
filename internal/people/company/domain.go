package company

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Domain is a mail domain of a company. After the company has proven that it
// owns the domain, people with an e-mail address in it join the company
// automatically.
//
// People join at one of two moments: when their e-mail address is verified
// (JoinByDomain), or, if it was verified earlier, when the domain is verified
// (JoinAllByDomain). Callers must not call these functions at other times, for
// example at each sign-in: a person whom an admin has removed would join again.
type Domain struct {
	CompanyID string
	Name      string
	Proof     string     // value that the DNS TXT record must have
	Verified  *time.Time // nil if the domain is not verified yet
	TeamID    string     // "" if people join the company only
	TeamRole  string
	Created   time.Time
}

const (
	recordPrefix = "_atelier."
	proofPrefix  = "atelier-domain="
	proofChars   = 32
	maxDomain    = 253 - len(recordPrefix) // shorter by the prefix, because a DNS name has at most 253 bytes (RFC 1035 section 2.3.4)
	maxLabel     = 63
	maxDomains   = 100 // maximum number of domains per company
)

// public lists domains of public mail providers. No company could prove that it
// owns one of them, but the list allows an early error message.
var public = []string{
	"aol.com", "fastmail.com", "gmail.com", "gmx.at", "gmx.ch", "gmx.com", "gmx.de", "gmx.net", "googlemail.com",
	"hotmail.com", "icloud.com", "live.com", "mac.com", "mail.com", "mail.ru", "me.com", "msn.com", "outlook.com",
	"proton.me", "protonmail.com", "qq.com", "t-online.de", "tutanota.com", "web.de", "yahoo.com", "yandex.ru", "zoho.com",
}

var errNoDomain = fault.New(fault.NotFound, "There is no such domain.")

// AddDomain adds a domain that is not verified yet. After its verification,
// people with an e-mail address in it join the team teamID with the role teamRole
// ("" means "member"), or only the company if teamID is "".
func AddDomain(ctx context.Context, tx *sqldb.Tx, companyID, name, teamID, teamRole string) (Domain, error) {
	name = strings.ToLower(name)
	if !validDomain(name) {
		return Domain{}, fault.New(fault.Invalid, "Must be a domain such as example.com.").On("domain")
	}
	if slices.Contains(public, name) {
		return Domain{}, fault.New(fault.Invalid, "This domain belongs to a public mail service. Add a domain of the company.").On("domain")
	}
	if teamID != "" && teamRole == "" {
		teamRole = RoleMember
	}
	if err := Lock(ctx, tx, companyID); err != nil {
		return Domain{}, err
	}
	if err := needTeam(ctx, tx, companyID, teamID, teamRole); err != nil {
		return Domain{}, err
	}
	all, err := Domains(ctx, tx, companyID)
	if err != nil {
		return Domain{}, err
	}
	if len(all) >= maxDomains {
		return Domain{}, fault.New(fault.Invalid, fmt.Sprintf("A company can have at most %d domains.", maxDomains)).On("domain")
	}
	d := Domain{
		CompanyID: companyID,
		Name:      name,
		Proof:     proofPrefix + ids.Text(proofChars),
		TeamID:    teamID,
		TeamRole:  teamRole,
		Created:   tx.Now,
	}
	fresh, err := insertDomain(ctx, tx, d)
	if err != nil {
		return Domain{}, err
	}
	if !fresh {
		return Domain{}, fault.New(fault.Invalid, "The company already has this domain.").On("domain")
	}
	return d, nil
}

// DomainByName returns a domain of the company, verified or not.
func DomainByName(ctx context.Context, tx *sqldb.Tx, companyID, name string) (Domain, error) {
	name = strings.ToLower(name)
	if !validDomain(name) {
		return Domain{}, errNoDomain
	}
	return domainByName(ctx, tx, companyID, name)
}

// RemoveDomain deletes a domain. Members who joined because of it stay members.
func RemoveDomain(ctx context.Context, tx *sqldb.Tx, companyID, name string) error {
	d, err := DomainByName(ctx, tx, companyID, name)
	if err != nil {
		return err
	}
	return deleteDomain(ctx, tx, companyID, d.Name)
}

// VerifyDomain marks the domain as verified. The caller must first check
// HasDomainProof, unless the operator vouches for the domain. VerifyDomain
// refuses a domain that another company has verified.
func VerifyDomain(ctx context.Context, tx *sqldb.Tx, companyID, name string) (Domain, error) {
	d, err := DomainByName(ctx, tx, companyID, name)
	if err != nil || d.Verified != nil {
		return d, err
	}
	verified, err := verifyDomain(ctx, tx, companyID, d.Name)
	if sqldb.IsDuplicate(err) {
		return Domain{}, fault.New(fault.Invalid, "Another company has this domain.").On("domain").Because(err)
	}
	if err != nil {
		return Domain{}, err
	}
	if !verified {
		return Domain{}, errNoDomain
	}
	d.Verified = &tx.Now
	return d, nil
}

// DomainRecord returns the name of the DNS TXT record with which a company
// proves that it owns a domain.
func DomainRecord(domain string) string { return recordPrefix + domain }

// HasDomainProof reports whether the domain's TXT record contains the proof. It
// queries DNS and must run outside of transactions.
func HasDomainProof(ctx context.Context, resolver *net.Resolver, d Domain) (bool, error) {
	texts, err := resolver.LookupTXT(ctx, DomainRecord(d.Name)+".") // the final dot makes the resolver ignore its search list
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return false, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return false, ctx.Err() // the caller cancelled the request, so this is not a DNS failure
	}
	if err != nil {
		return false, fault.New(fault.Unavailable, "The DNS records of the domain can't be read right now. Try again shortly.").Because(err)
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return subtle.ConstantTimeCompare([]byte(text), []byte(d.Proof)) == 1
	}), nil
}

// JoinByDomain adds a person to the company that owns the domain of their newly
// verified e-mail address, if there is one, and to the domain's team, if it has
// one. If the person is new to the company or the team, it returns the
// company's id; if they are new to the team, it also returns the team. See
// Domain for when to call it.
func JoinByDomain(ctx context.Context, tx *sqldb.Tx, personID, email string) (companyID string, teams []Team, err error) {
	name := domainOf(email)
	if !validDomain(name) {
		return "", nil, nil
	}
	companyID, err = lockOwner(ctx, tx, name)
	if err != nil || companyID == "" {
		return "", nil, err
	}
	if err := Lock(ctx, tx, companyID); err != nil {
		return "", nil, err
	}
	if off, err := isDeactivated(ctx, tx, companyID, personID); err != nil || off {
		return "", nil, err
	}
	// lockOwner has also locked the domain's row, so the domain still belongs
	// to the company. The row is read again because its team may have been
	// removed just before it was locked.
	d, err := domainByName(ctx, tx, companyID, name)
	if err != nil {
		return "", nil, err
	}
	fresh, err := addMember(ctx, tx, companyID, personID, RoleMember)
	if err != nil {
		return "", nil, err
	}
	if d.TeamID != "" {
		joined, err := addTeamMember(ctx, tx, d.TeamID, personID, d.TeamRole, ByDomain)
		if err != nil {
			return "", nil, err
		}
		if joined {
			fresh = true
			t, err := teamByID(ctx, tx, d.TeamID)
			if err != nil {
				return "", nil, err
			}
			teams = append(teams, t)
		}
	}
	if !fresh {
		return "", nil, nil
	}
	return companyID, teams, nil
}

// JoinAllByDomain adds all people with a verified e-mail address in a newly
// verified domain to the company, and to the domain's team if it has one. It
// returns the number of people who are new to the team, or to the company if
// there is no team. See Domain for when to call it.
func JoinAllByDomain(ctx context.Context, tx *sqldb.Tx, companyID, name string) (int, error) {
	if err := Lock(ctx, tx, companyID); err != nil {
		return 0, err
	}
	d, err := DomainByName(ctx, tx, companyID, name)
	if err != nil {
		return 0, err
	}
	if d.Verified == nil {
		return 0, fault.New(fault.Invalid, "The domain is not verified.").On("domain")
	}
	return joinAll(ctx, tx, d)
}

// domainOf returns the part of an e-mail address after the @, in lower case.
func domainOf(email string) string { return emailKey(email[strings.LastIndexByte(email, '@')+1:]) }

// validDomain reports whether name consists of at least two labels of
// lower-case letters, digits and hyphens, separated by dots, and is not an IP
// address (RFC 1123 section 2.1).
func validDomain(name string) bool {
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	return len(name) <= maxDomain && len(labels) > 1 && strings.Trim(last, "0123456789") != "" &&
		allMatch(labels, func(l string) bool {
			return len(l) <= maxLabel && hasOnlyChars(l, "-") && l[0] != '-' && l[len(l)-1] != '-'
		})
}
