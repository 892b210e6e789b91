package company_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/testkit/servers"
)

func (w fixture) addDomain(companyID, name, teamID, role string) (d company.Domain, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) {
		d, err = company.AddDomain(w.Context(), tx, companyID, name, teamID, role)
		return err
	})
	return d, err
}

func (w fixture) domain(companyID, name, teamID, role string) company.Domain {
	w.Helper()
	d, err := w.addDomain(companyID, name, teamID, role)
	w.OK(err)
	return d
}

func (w fixture) verify(companyID, name string) (d company.Domain, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) {
		d, err = company.VerifyDomain(w.Context(), tx, companyID, name)
		return err
	})
	return d, err
}

func (w fixture) verified(companyID, name, teamID, role string) {
	w.Helper()
	w.domain(companyID, name, teamID, role)
	_, err := w.verify(companyID, name)
	w.OK(err)
}

func (w fixture) domains(companyID string) []company.Domain {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.Domain, error) { return company.Domains(w.Context(), tx, companyID) })
}

func TestDomain(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		team := w.team(c.ID, "Film")
		d := w.domain(c.ID, "Fox.Example", team.ID, "")
		if d.Name != "fox.example" || d.TeamID != team.ID || d.TeamRole != "member" || d.Verified != nil || !d.Created.Equal(w.Now()) ||
			!strings.HasPrefix(d.Proof, "atelier-domain=") || len(d.Proof) != len("atelier-domain=")+32 {
			w.Errorf("domain = %+v", d)
		}
		plain := w.domain(c.ID, "a.fox.example", "", "")
		theirs := w.domain(other.ID, "fox.example", "", "")
		if theirs.Proof == d.Proof {
			w.Error("two companies have one proof")
		}
		if got, want := w.domains(c.ID), []company.Domain{plain, d}; !slices.Equal(got, want) {
			w.Errorf("domains = %+v, want %+v", got, want)
		}
		byName := func(companyID, name string) (d company.Domain, err error) {
			err = w.Try(func(tx *sqldb.Tx) (err error) {
				d, err = company.DomainByName(w.Context(), tx, companyID, name)
				return err
			})
			return d, err
		}
		if got, err := byName(c.ID, "FOX.example"); err != nil || got != d {
			w.Errorf("by name = %+v, %v, want %+v", got, err, d)
		}
		if got, want := company.DomainRecord(d.Name), "_atelier.fox.example"; got != want {
			w.Errorf("record = %q, want %q", got, want)
		}
		remove := func(companyID, name string) error {
			return w.Try(func(tx *sqldb.Tx) error { return company.RemoveDomain(w.Context(), tx, companyID, name) })
		}
		w.OK(remove(c.ID, "FOX.example"))
		for _, name := range []string{"fox.example", "hound.example", "", "\x00"} {
			w.refused(remove(c.ID, name), fault.NotFound, "")
			_, err := byName(c.ID, name)
			w.refused(err, fault.NotFound, "")
			_, err = w.verify(c.ID, name)
			w.refused(err, fault.NotFound, "")
		}
		if got := w.domains(other.ID); !slices.Equal(got, []company.Domain{theirs}) {
			w.Errorf("domains of another company = %+v", got)
		}
	})
}

func TestAddDomainRefuses(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		foreign, team := w.team(other.ID, "Film"), w.team(c.ID, "Film")
		w.domain(c.ID, "fox.example", "", "")
		label := strings.Repeat("a", 63)
		longest := strings.Join([]string{label, label, label, strings.Repeat("a", 52)}, ".")
		w.domain(c.ID, longest, "", "")
		for _, name := range []string{
			"", "localhost", ".example", "fox.", "fox..example", "fox.example.", "-fox.example", "fox-.example", "fo_x.example", "füchse.example",
			"fox example.com", "fox.example\x00", "192.168.1.1", "a@fox.example", "*.fox.example", label + "a.example", longest + "a", "fox.example/x", "fo%.example",
			"gmail.com", "GMail.com", "outlook.com", "hotmail.com", "yahoo.com", "icloud.com", "proton.me", "gmx.de", "web.de",
			"fox.example", "FOX.example", // it is there
		} {
			if _, err := w.addDomain(c.ID, name, "", ""); err == nil {
				w.Errorf("%q was accepted", name)
			} else {
				w.refused(err, fault.Invalid, "domain")
			}
		}
		_, err := w.addDomain(c.ID, "new.example", foreign.ID, "member")
		w.refused(err, fault.Invalid, "team_id")
		_, err = w.addDomain(c.ID, "new.example", team.ID, "keeper")
		w.refused(err, fault.Invalid, "team_role")
		_, err = w.addDomain(c.ID, "new.example", "", "member")
		w.refused(err, fault.Invalid, "team_role")
		_, err = w.addDomain(ids.New(), "new.example", "", "")
		w.refused(err, fault.NotFound, "")
		for i := range 98 {
			w.domain(c.ID, fmt.Sprintf("d%d.example", i), "", "")
		}
		_, err = w.addDomain(c.ID, "new.example", "", "")
		w.refused(err, fault.Invalid, "domain")
	})
}

func TestADomainHasOneOwner(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		w.domain(c.ID, "fox.example", "", "")
		w.domain(other.ID, "fox.example", "", "")
		d, err := w.verify(c.ID, "Fox.example")
		if err != nil || d.Verified == nil || !d.Verified.Equal(w.Now()) {
			w.Fatalf("verified = %+v, %v", d, err)
		}
		at := w.Now()
		w.Pass(time.Hour)
		if again, err := w.verify(c.ID, "fox.example"); err != nil || !again.Verified.Equal(at) {
			w.Errorf("verified again = %+v, %v, want it as it was", again, err)
		}
		if stored := w.domains(c.ID)[0]; stored.Verified == nil || !stored.Verified.Equal(at) {
			w.Errorf("stored = %+v", stored)
		}
		_, err = w.verify(other.ID, "fox.example")
		w.refused(err, fault.Invalid, "domain")
		w.Do(func(tx *sqldb.Tx) error { return company.RemoveDomain(w.Context(), tx, c.ID, "fox.example") })
		if _, err = w.verify(other.ID, "fox.example"); err != nil {
			w.Errorf("verify what is free again = %v", err)
		}
	})
}

func TestOfTwoWhoVerifyADomainOneWins(t *testing.T) {
	each(t, func(w fixture) {
		var ids [8]string
		for i := range ids {
			ids[i] = w.company("Fox").ID
		}
		for round := range 10 {
			name := fmt.Sprintf("d%d.example", round)
			for _, id := range ids {
				w.domain(id, name, "", "")
			}
			var won atomic.Int64
			dbtest.Together(len(ids), func(i int) {
				_, err := w.verify(ids[i], name)
				if err == nil {
					won.Add(1)
				} else {
					w.refused(err, fault.Invalid, "domain")
				}
			})
			if won.Load() != 1 {
				w.Errorf("%d won", won.Load())
			}
		}
	})
}

func TestJoinByDomain(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		team := w.team(c.ID, "Film")
		w.verified(c.ID, "fox.example", team.ID, "manager")
		w.domain(other.ID, "fox.example", "", "")
		w.verified(other.ID, "hound.example", "", "")
		w.domain(other.ID, "unproven.example", "", "")
		join := func(personID, email string) (companyID string, teams []company.Team) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) (err error) {
				companyID, teams, err = company.JoinByDomain(w.Context(), tx, personID, email)
				return err
			})
			return companyID, teams
		}
		anna := w.person("Anna@Fox.Example")
		if id, teams := join(anna, "Anna@Fox.Example"); id != c.ID || !slices.Equal(teams, []company.Team{team}) {
			w.Errorf("joined %q, %+v", id, teams)
		}
		if got := w.teamMembers(team.ID); len(got) != 1 || got[0].Role != "manager" || got[0].How != company.ByDomain {
			w.Errorf("members of the team = %+v", got)
		}
		w.joinTeam(team.ID, anna, "member")
		w.join(c.ID, anna, "admin")
		if id, teams := join(anna, "anna@fox.example"); id != "" || len(teams) != 0 {
			w.Errorf("joined again %q, %+v", id, teams)
		}
		if m, in := w.members(c.ID), w.teamMembers(team.ID); m[0].Role != "admin" || in[0].Role != "member" {
			w.Errorf("joining again changed the roles to %s, %s", m[0].Role, in[0].Role)
		}
		bert := w.person("bert@hound.example")
		if id, teams := join(bert, "bert@hound.example"); id != other.ID || len(teams) != 0 {
			w.Errorf("joined %q, %+v, want the company only", id, teams)
		}
		if id, teams := join(bert, "bert@hound.example"); id != "" || len(teams) != 0 {
			w.Errorf("joined again %q, %+v", id, teams)
		}
		carl := w.person("carl@example.com")
		w.join(c.ID, carl, "member")
		if id, teams := join(carl, "carl@fox.example"); id != c.ID || len(teams) != 1 {
			w.Errorf("a member of the company joined %q, %+v, want the team", id, teams)
		}
		dora := w.person("dora@example.com")
		for _, email := range []string{"dora@unproven.example", "dora@sub.fox.example", "dora@notfox.example", `"a@fox.example"@example.com`, "fox.example@example.com", "dora", "", "@", "dora@\x00"} {
			if id, teams := join(dora, email); id != "" || len(teams) != 0 {
				w.Errorf("%q joined %q, %+v", email, id, teams)
			}
		}
		w.OK(w.removeTeam(team.ID))
		if id, teams := join(dora, "dora@fox.example"); id != c.ID || len(teams) != 0 {
			w.Errorf("joined %q, %+v, want the company without the removed team", id, teams)
		}
	})
}

func TestJoinAllByDomain(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		team := w.team(c.ID, "Film")
		var people []string
		for _, email := range []string{"anna@fox.example", "Bert@FOX.example", "carl@fox.example", "dora@fox.example"} {
			people = append(people, w.person(email))
		}
		for _, email := range []string{"x@sub.fox.example", "x@notfox.example", "x@fox.example.com", `"a@fox.example"@example.com`} {
			w.person(email)
		}
		unproven := w.person("unproven@fox.example")
		w.Exec(`UPDATE person SET email_verified = FALSE WHERE id = $1`, unproven)
		w.join(c.ID, people[1], "admin")
		w.joinTeam(team.ID, people[2], "manager")
		all := func(companyID, name string) (n int, err error) {
			err = w.Try(func(tx *sqldb.Tx) (err error) {
				n, err = company.JoinAllByDomain(w.Context(), tx, companyID, name)
				return err
			})
			return n, err
		}
		w.domain(c.ID, "fox.example", team.ID, "member")
		_, err := all(c.ID, "fox.example")
		w.refused(err, fault.Invalid, "domain")
		_, err = w.verify(c.ID, "fox.example")
		w.OK(err)
		if n, err := all(c.ID, "Fox.example"); err != nil || n != 3 {
			w.Errorf("%d joined, %v, want 3", n, err)
		}
		if n, err := all(c.ID, "fox.example"); err != nil || n != 0 {
			w.Errorf("%d joined again, %v", n, err)
		}
		var roles, hows []string
		for _, m := range w.teamMembers(team.ID) {
			roles, hows = append(roles, m.Role), append(hows, string(m.How))
		}
		if want := []string{"member", "member", "manager", "member"}; !slices.Equal(roles, want) || hows[0] != "domain" || hows[2] != "added" {
			w.Errorf("roles in the team = %v, %v, want %v", roles, hows, want)
		}
		if m := w.members(c.ID); len(m) != 4 || m[1].Role != "admin" {
			w.Errorf("members = %+v", m)
		}
		w.verified(other.ID, "sub.fox.example", "", "")
		if n, err := all(other.ID, "sub.fox.example"); err != nil || n != 1 || len(w.members(other.ID)) != 1 {
			w.Errorf("%d joined a company without a team, %v, want 1", n, err)
		}
		_, err = all(c.ID, "sub.fox.example")
		w.refused(err, fault.NotFound, "")
		_, err = all(ids.New(), "fox.example")
		w.refused(err, fault.NotFound, "")
	})
}

// An address and its domain become verified in transactions that overlap, and
// neither sees what the other does: the person joins all the same.
func TestAddressAndDomainDoNotMissEachOther(t *testing.T) {
	each(t, func(w fixture) {
		for round := range 2 {
			c := w.company("Fox")
			name := fmt.Sprintf("d%d.example", round)
			anna := w.person("anna@" + name)
			w.Exec(`UPDATE person SET email_verified = FALSE WHERE id = $1`, anna)
			w.domain(c.ID, name, "", "")
			acts := []func(tx *sqldb.Tx) error{
				func(tx *sqldb.Tx) error {
					if _, err := tx.Exec(w.Context(), `UPDATE person SET email_verified = TRUE WHERE id = $1`, anna); err != nil {
						return err
					}
					_, _, err := company.JoinByDomain(w.Context(), tx, anna, "anna@"+name)
					return err
				},
				func(tx *sqldb.Tx) error {
					if _, err := company.VerifyDomain(w.Context(), tx, c.ID, name); err != nil {
						return err
					}
					_, err := company.JoinAllByDomain(w.Context(), tx, c.ID, name)
					return err
				},
			}
			first, second := w.overlap(acts[round], acts[1-round])
			w.OK(errors.Join(first, second))
			if n := len(w.members(c.ID)); n != 1 {
				w.Errorf("the company has %d members, want 1", n)
			}
		}
	})
}

func TestProves(t *testing.T) {
	t.Parallel()
	d := company.Domain{Name: "fox.example", Proof: "atelier-domain=abc"}
	for _, test := range []struct {
		name  string
		rcode int
		texts [][]string
		want  bool
		fault fault.Code
	}{
		{"the record says so", dns.RcodeSuccess, [][]string{{d.Proof}}, true, ""},
		{"one record of several says so", dns.RcodeSuccess, [][]string{{"other"}, {d.Proof}}, true, ""},
		{"the record is in two parts", dns.RcodeSuccess, [][]string{{d.Proof[:5], d.Proof[5:]}}, true, ""},
		{"the answer needs TCP", dns.RcodeSuccess, [][]string{slices.Repeat([]string{strings.Repeat("x", 255)}, 20), {d.Proof}}, true, ""},
		{"the record says something else", dns.RcodeSuccess, [][]string{{"atelier-domain=abd"}, {d.Proof + "x"}, {strings.ToUpper(d.Proof)}, {" " + d.Proof}}, false, ""},
		{"the name has no such record", dns.RcodeSuccess, nil, false, ""},
		{"there is no such name", dns.RcodeNameError, nil, false, ""},
		{"the server is in trouble", dns.RcodeServerFailure, nil, false, fault.Unavailable},
		{"the server refuses", dns.RcodeRefused, nil, false, fault.Unavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			resolver := servers.NameServer(t, func(out dns.ResponseWriter, q *dns.Msg) {
				m := new(dns.Msg)
				m.SetRcode(q, test.rcode)
				m.RecursionAvailable = true
				if q.Question[0].Name == "_atelier.fox.example." && q.Question[0].Qtype == dns.TypeTXT {
					for _, text := range test.texts {
						m.Answer = append(m.Answer, &dns.TXT{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: 1}, Txt: text})
					}
				}
				if _, udp := out.RemoteAddr().(*net.UDPAddr); udp {
					m.Truncate(dns.MinMsgSize)
				}
				out.WriteMsg(m)
			})
			got, err := company.HasDomainProof(t.Context(), resolver, d)
			f, _ := errors.AsType[*fault.Error](err)
			if got != test.want || (err != nil) != (test.fault != "") || f != nil && f.Code != test.fault {
				t.Errorf("proves = %v, %v, want %v, %q", got, err, test.want, test.fault)
			}
		})
	}
}

func TestProvesWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	d := company.Domain{Name: "fox.example", Proof: "atelier-domain=abc"}
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = company.HasDomainProof(soon, servers.ResolverAt(silent.LocalAddr().String()), d)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Unavailable {
		t.Errorf("a silent server = %v, want %s", err, fault.Unavailable)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := company.HasDomainProof(left, servers.ResolverAt(silent.LocalAddr().String()), d); err != context.Canceled {
		t.Errorf("a caller who left = %v, want %v", err, context.Canceled)
	}
}
