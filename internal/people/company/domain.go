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

// Domain is a mail domain of a company. Once the company has proven that it
// owns it, people whose address is there join by themselves.
//
// They join when their address becomes verified (JoinByDomain), and those who
// are here already when the domain does (JoinAllByDomain). Callers do it at
// those two moments and at no other, not at each sign-in: whom an admin took
// out stays out.
type Domain struct {
	CompanyID string
	Name      string
	Proof     string     // what the record in the DNS must say
	Verified  *time.Time // nil: not yet
	TeamID    string     // "": the company only
	TeamRole  string
	Created   time.Time
}

const (
	recordPrefix = "_atelier."
	proofPrefix  = "atelier-domain="
	proofChars   = 32
	maxDomain    = 253 - len(recordPrefix) // so that the record's name can be asked for (RFC 1035 section 2.3.4)
	maxLabel     = 63
	maxDomains   = 100 // of one company
)

// public are domains where everybody can have an address. Nobody could prove
// to own one; the list spares people the try.
var public = []string{
	"aol.com", "fastmail.com", "gmail.com", "gmx.at", "gmx.ch", "gmx.com", "gmx.de", "gmx.net", "googlemail.com",
	"hotmail.com", "icloud.com", "live.com", "mac.com", "mail.com", "mail.ru", "me.com", "msn.com", "outlook.com",
	"proton.me", "protonmail.com", "qq.com", "t-online.de", "tutanota.com", "web.de", "yahoo.com", "yandex.ru", "zoho.com",
}

var errNoDomain = fault.New(fault.NotFound, "There is no such domain.")

// AddDomain notes a domain, to be verified. People from it will join teamID
// with teamRole ("": member), or only the company where teamID is "".
func AddDomain(ctx context.Context, tx *sqldb.Tx, companyID, name, teamID, teamRole string) (Domain, error) {
	name = strings.ToLower(name)
	if !validDomain(name) {
		return Domain{}, fault.New(fault.Invalid, "This is not a domain, such as example.com.").On("domain")
	}
	if slices.Contains(public, name) {
		return Domain{}, fault.New(fault.Invalid, "Everybody can have an address in this domain.").On("domain")
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
		return Domain{}, fault.New(fault.Invalid, fmt.Sprintf("A company can have %d domains at most.", maxDomains)).On("domain")
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
	if err != nil || !fresh {
		return Domain{}, firstError(err, fault.New(fault.Invalid, "The company has this domain already.").On("domain"))
	}
	return d, nil
}

// DomainByName returns a domain of the company.
func DomainByName(ctx context.Context, tx *sqldb.Tx, companyID, name string) (Domain, error) {
	name = strings.ToLower(name)
	if !validDomain(name) {
		return Domain{}, errNoDomain
	}
	return domainByName(ctx, tx, companyID, name)
}

// RemoveDomain forgets a domain. Who joined by it stays.
func RemoveDomain(ctx context.Context, tx *sqldb.Tx, companyID, name string) error {
	d, err := DomainByName(ctx, tx, companyID, name)
	if err != nil {
		return err
	}
	return deleteDomain(ctx, tx, companyID, d.Name)
}

// VerifyDomain notes that the company owns the domain; callers have asked
// Proves. A domain has one owner.
func VerifyDomain(ctx context.Context, tx *sqldb.Tx, companyID, name string) (Domain, error) {
	d, err := DomainByName(ctx, tx, companyID, name)
	if err != nil || d.Verified != nil {
		return d, err
	}
	verified, err := verifyDomain(ctx, tx, companyID, d.Name)
	if sqldb.IsDuplicate(err) {
		return Domain{}, fault.New(fault.Invalid, "Another company has this domain.").On("domain").Because(err)
	}
	if err != nil || !verified {
		return Domain{}, firstError(err, errNoDomain)
	}
	d.Verified = &tx.Now
	return d, nil
}

// DomainRecord is the name of the TXT record that proves a domain.
func DomainRecord(domain string) string { return recordPrefix + domain }

// HasDomainProof reports whether the domain's record says what it must. It asks the
// network, and so belongs outside of transactions.
func HasDomainProof(ctx context.Context, resolver *net.Resolver, d Domain) (bool, error) {
	texts, err := resolver.LookupTXT(ctx, DomainRecord(d.Name)+".") // rooted: no search list
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return false, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return false, ctx.Err() // the caller left
	}
	if err != nil {
		return false, fault.New(fault.Unavailable, "The domain's records can't be read at the moment. Try again shortly.").Because(err)
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return subtle.ConstantTimeCompare([]byte(text), []byte(d.Proof)) == 1
	}), nil
}

// JoinByDomain lets a person in by an address of theirs that has just become
// verified, where a company owns its domain. It names the company if they are
// new to it or to its team, and the team if they are new to that. See Domain
// for when to call it.
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
	// The domain's row is locked too, so it is still the company's; its team
	// may have been removed until a moment ago.
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

// JoinAllByDomain lets everybody in who has a verified address in a domain
// that has just become verified, and returns how many were new. See Domain for
// when to call it.
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

// domainOf is the part of an address behind the @.
func domainOf(email string) string { return emailKey(email[strings.LastIndexByte(email, '@')+1:]) }

// validDomain reports whether name is letters, digits and hyphens with dots
// between them, in lower case, and no address of a machine (RFC 1123 section
// 2.1).
func validDomain(name string) bool {
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	return len(name) <= maxDomain && len(labels) > 1 && strings.Trim(last, "0123456789") != "" &&
		allMatch(labels, func(l string) bool {
			return len(l) <= maxLabel && hasOnlyChars(l, "-") && l[0] != '-' && l[len(l)-1] != '-'
		})
}
