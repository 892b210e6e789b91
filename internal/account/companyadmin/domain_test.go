package companyadmin_test

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/testkit/servers"
)

// nameServer gives a resolver that knows the TXT records that texts names.
func nameServer(t *testing.T, texts func(name string) []string) *net.Resolver {
	t.Helper()
	return servers.NameServer(t, func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = true
		for _, text := range texts(q.Question[0].Name) {
			m.Answer = append(m.Answer, &dns.TXT{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{text}})
		}
		w.WriteMsg(m)
	})
}

// domainOf gives the one domain of a company, the zero one where it has none.
func domainOf(w fixture, companyID string) (d company.Domain) {
	for _, d := range get(w, func(tx *sqldb.Tx) ([]company.Domain, error) { return company.Domains(w.ctx(), tx, companyID) }) {
		return d
	}
	return d
}

func TestVerifyDomain(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		admin := w.role(c, w.fresh(), company.CompanyPermissions...)
		anna, bert := w.person("anna@fox.example"), w.person("bert@fox.example")
		d, err := w.companies.Domains.AddDomain(w.ctx(), admin, c, "fox.example", team, "")
		w.ok(err)
		var record, asked atomic.Value
		record.Store("something else")
		w.useResolver(nameServer(t, func(name string) []string { asked.Store(name); return []string{record.Load().(string)} }))
		verify := func(a principal.Principal, trust bool) (company.Domain, error) {
			return w.companies.Domains.VerifyDomain(w.ctx(), a, c, "fox.example", trust)
		}

		before := w.seq()
		for _, trust := range []bool{false, true} { // an admin's word is not enough
			_, err = verify(admin, trust)
			w.refused(err, fault.Invalid, "domain")
			if !strings.Contains(err.Error(), "_atelier.fox.example") || !strings.Contains(err.Error(), d.Proof) {
				w.Errorf("error = %v, want the record in it", err)
			}
		}
		if asked.Load() != "_atelier.fox.example." || w.seq() != before || len(w.teamMembers(team)) != 0 {
			w.Errorf("asked for %q, %d records", asked.Load(), w.seq()-before)
		}

		record.Store(d.Proof)
		if d, err = verify(admin, false); err != nil || d.Verified == nil {
			w.Fatalf("domain = %+v, %v", d, err)
		}
		if in := w.teamMembers(team); len(in) != 2 || in[anna.PersonID] != "member" || in[bert.PersonID] != "member" {
			w.Errorf("members = %v", in)
		}
		log := w.log(before)
		if len(log) != 1 || log[0].Act != audit.DomainVerified || log[0].Details["domain"] != "fox.example" || log[0].Details["joined"] != "2" {
			w.Errorf("log = %+v", log)
		}

		// Once is enough, be the record still there or not: whom an admin takes
		// out stays out.
		record.Store("something else")
		w.ok(w.companies.Members.RemoveMember(w.ctx(), admin, c, bert.PersonID))
		before = w.seq()
		if again, err := verify(admin, false); err != nil || !again.Verified.Equal(*d.Verified) {
			w.Errorf("again = %+v, %v", again, err)
		}
		if w.seq() != before || w.members(c)[bert.PersonID] != "" {
			w.Error("verified again, somebody came back or it was recorded")
		}
	})
}

func TestTheOperatorVerifiesDomainsWithoutARecord(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		anna := w.person("anna@fox.example")
		_, err := w.companies.Domains.AddDomain(w.ctx(), operator, c, "fox.example", "", "")
		w.ok(err)
		w.useResolver(nameServer(t, func(string) []string { return nil }))
		_, err = w.companies.Domains.VerifyDomain(w.ctx(), operator, c, "fox.example", false)
		w.refused(err, fault.Invalid, "domain")
		_, err = w.companies.Domains.VerifyDomain(w.ctx(), operator, c, "fox.example", true)
		w.ok(err)
		if w.members(c)[anna.PersonID] != "member" {
			w.Error("nobody joined")
		}
	})
}

// TestChangesDuringTheDNSLookup: changes that are made while the record is
// looked up are respected.
func TestChangesDuringTheDNSLookup(t *testing.T) {
	each(t, func(w fixture) {
		domains := w.companies.Domains // the name server's goroutine must not read what useResolver writes
		for _, test := range []struct {
			name      string
			meanwhile func(c string, admin principal.Principal)
			code      fault.Code
			about     string
			records   int // besides those of what happened
		}{
			{"the domain is added anew", func(c string, _ principal.Principal) {
				w.ok(domains.RemoveDomain(w.ctx(), operator, c, "fox.example"))
				_, err := domains.AddDomain(w.ctx(), operator, c, "fox.example", "", "")
				w.ok(err)
			}, fault.Invalid, "domain", 0},
			{"the domain goes", func(c string, _ principal.Principal) {
				w.ok(domains.RemoveDomain(w.ctx(), operator, c, "fox.example"))
			}, fault.NotFound, "", 0},
			{"the actor loses the permission", func(c string, admin principal.Principal) { w.role(c, admin) }, fault.Forbidden, "permission", 0},
			{"somebody else is quicker", func(c string, _ principal.Principal) {
				_, err := domains.VerifyDomain(w.ctx(), operator, c, "fox.example", true)
				w.ok(err)
			}, "", "", 0},
			{"nothing happens", func(string, principal.Principal) {}, "", "", 1},
		} {
			c := w.company("Fox")
			admin := w.role(c, w.fresh(), company.ManageMembers)
			d, err := w.companies.Domains.AddDomain(w.ctx(), admin, c, "fox.example", "", "")
			w.ok(err)
			var before atomic.Int64
			var once sync.Once
			w.useResolver(nameServer(t, func(string) []string {
				once.Do(func() {
					test.meanwhile(c, admin)
					before.Store(w.seq())
				})
				return []string{d.Proof}
			}))
			_, err = w.companies.Domains.VerifyDomain(w.ctx(), admin, c, "fox.example", false)
			if test.code != "" {
				w.refused(err, test.code, test.about)
			} else if err != nil {
				w.Errorf("%s: %v", test.name, err)
			}
			if got := len(w.log(before.Load())); got != test.records {
				w.Errorf("%s: %d records, want %d", test.name, got, test.records)
			}
			if domainOf(w, c).Name != "" {
				w.ok(w.companies.Domains.RemoveDomain(w.ctx(), operator, c, "fox.example"))
			}
		}
	})
}

func TestADomainHasOneOwner(t *testing.T) {
	each(t, func(w fixture) {
		first, second := w.company("Fox"), w.company("Hound")
		for i, c := range []string{first, second} {
			_, err := w.companies.Domains.AddDomain(w.ctx(), operator, c, "fox.example", "", "")
			w.ok(err)
			_, err = w.companies.Domains.VerifyDomain(w.ctx(), operator, c, "fox.example", true)
			if i == 0 {
				w.ok(err)
				continue
			}
			w.refused(err, fault.Invalid, "domain")
		}
	})
}
