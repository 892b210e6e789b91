package credential_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
)

// fixture is a database with a clock. What a test leaves in it must pass the
// checks.
type fixture struct{ dbtest.Fixture }

func each(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, credential.Checks, func(w dbtest.Fixture) { fn(fixture{w}) })
}

// person gives the id of somebody new.
func (w fixture) person(email string) string {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (string, error) {
		p, err := person.Create(w.Context(), tx, person.Draft{Email: email, PasswordHash: "x"})
		return p.ID, err
	})
}

// company gives the id of a company with these people in it.
func (w fixture) company(name string, members ...string) string {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (string, error) {
		c, err := company.Create(w.Context(), tx, name, company.TeamPlan)
		for _, id := range members {
			if err == nil {
				_, err = company.SetMember(w.Context(), tx, c.ID, id, company.RoleMember)
			}
		}
		return c.ID, err
	})
}

func (w fixture) token(d credential.Draft) (t credential.Token, secret string) {
	w.Helper()
	if d.Name == "" {
		d.Name = "script"
	}
	w.Do(func(tx *sqldb.Tx) (err error) { t, secret, err = credential.Create(w.Context(), tx, d); return err })
	return t, secret
}

func (w fixture) regenerate(h credential.Holder, id string) (t credential.Token, secret string, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) {
		t, secret, err = credential.Regenerate(w.Context(), tx, h, id)
		return err
	})
	return t, secret, err
}

func (w fixture) remove(h credential.Holder, id string) (t credential.Token, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) { t, err = credential.Delete(w.Context(), tx, h, id); return err })
	return t, err
}

func (w fixture) list(h credential.Holder) []credential.Token {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]credential.Token, error) { return credential.List(w.Context(), tx, h, nil, 100) })
}

func (w fixture) touch(id string) (first bool) {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (bool, error) { return credential.Touch(w.Context(), tx, id) })
}

// proves wants the value to be that of t.
func (w fixture) proves(secret string, t credential.Token) {
	w.Helper()
	want := credential.Token{ID: t.ID, PersonID: t.PersonID, CompanyID: t.CompanyID, LastUsed: t.LastUsed}
	if got, err := credential.Check(w.Context(), w.DB, secret); err != nil || got.Token != want {
		w.Errorf("check = %+v, %v, want %+v", got, err, want)
	}
}

// dead wants the value to prove nothing.
func (w fixture) dead(secret string) {
	w.Helper()
	if got, err := credential.Check(w.Context(), w.DB, secret); !errors.Is(err, credential.ErrInvalid) || got != (credential.CheckedToken{}) {
		w.Errorf("check = %+v, %v, want %v", got, err, credential.ErrInvalid)
	}
}

// refused wants a fault with this code and a message for a person.
func (w fixture) refused(err error, code fault.Code) {
	w.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code || !strings.HasSuffix(f.Message, ".") {
		w.Errorf("error = %v, want %s with a sentence", err, code)
	}
}

func TestCreate(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		fox := w.company("Fox", anna)
		for _, test := range []struct {
			draft credential.Draft
			form  string
		}{
			{credential.Draft{PersonID: anna, MintedBy: anna, Name: "Nächtlich"}, `^atl_p_[0-9A-Za-z]{49}$`},
			{credential.Draft{PersonID: anna, CompanyID: fox, MintedBy: bert, Name: "farm"}, `^atl_c_[0-9A-Za-z]{49}$`},
			{credential.Draft{PersonID: anna, CompanyID: fox, Name: "made by the operator"}, `^atl_c_[0-9A-Za-z]{49}$`},
		} {
			made, secret := w.token(test.draft)
			if !regexp.MustCompile(test.form).MatchString(secret) || !credential.WellFormed(secret) {
				w.Errorf("token %q, want the form %s", secret, test.form)
			}
			d := test.draft
			want := credential.Token{ID: made.ID, PersonID: d.PersonID, CompanyID: d.CompanyID, MintedBy: d.MintedBy, Name: d.Name, Hint: secret[len(secret)-4:], Created: w.Now()}
			if made != want || !ids.Valid(made.ID) {
				w.Errorf("made %+v, want %+v with an id", made, want)
			}
			if all := w.list(credential.Holder{PersonID: anna}); len(all) != 1 || all[0] != made {
				w.Errorf("list = %+v, want %+v", all, made)
			}
			w.proves(secret, made)

			var hash string
			if err := w.DB.QueryRow(w.Context(), `SELECT hash FROM access_token WHERE id = $1`, made.ID).Scan(&hash); err != nil {
				w.Fatal(err)
			}
			if sum := sha256.Sum256([]byte(secret)); hash != hex.EncodeToString(sum[:]) {
				w.Errorf("the row has %q, want the SHA-256 of the token", hash)
			}
			if _, err := w.remove(credential.Holder{PersonID: anna}, made.ID); err != nil {
				w.Error(err)
			}
		}
	})
}

func TestNames(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		create := func(name string) error {
			return w.Try(func(tx *sqldb.Tx) error {
				_, _, err := credential.Create(w.Context(), tx, credential.Draft{PersonID: anna, Name: name})
				return err
			})
		}
		for _, good := range []string{"x", "script", strings.Repeat("x", 100), strings.Repeat("ü", 100)} {
			if err := create(good); err != nil {
				w.Errorf("create %.20q = %v", good, err)
			}
		}
		for _, bad := range []string{"", strings.Repeat("x", 101), strings.Repeat("ü", 101), "a\nb", "a\x00b", "a\x7fb", "a\u0085b", "\xff"} {
			err := create(bad)
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Invalid || len(f.Fields) != 1 || f.Fields[0].Path != "name" {
				w.Errorf("create %.20q = %v, want %s on name", bad, err, fault.Invalid)
			}
		}
		if n := len(w.list(credential.Holder{PersonID: anna})); n != 4 {
			w.Errorf("%d tokens, want those with good names", n)
		}
	})
}

func TestCheckTellsWhetherTheAddressIsVerified(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		_, secret := w.token(credential.Draft{PersonID: anna})
		for _, want := range []bool{false, true} {
			if got, err := credential.Check(w.Context(), w.DB, secret); err != nil || got.EmailVerified != want {
				w.Errorf("verified = %v, %v, want %v", got.EmailVerified, err, want)
			}
			w.Do(func(tx *sqldb.Tx) error {
				_, err := person.SetVerified(w.Context(), tx, anna, "anna@example.com")
				return err
			})
		}
	})
}

func TestCheckRefuses(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		made, secret := w.token(credential.Draft{PersonID: anna})
		other := byte('0')
		if secret[20] == other {
			other = '1'
		}
		for _, bad := range []string{
			"", "Bearer " + secret, " " + secret, secret + " ", secret + "0", secret[:len(secret)-1], strings.ToUpper(secret),
			secret[:20] + string(other) + secret[21:], "atl_c_" + secret[6:], secret[6:], "atl_p_", strings.Repeat("a", 1<<20), "\x00",
			"atl_p_" + strings.Repeat("é", 49), "atl_p_" + strings.Repeat("-", 49),
		} {
			if credential.WellFormed(bad) {
				w.Errorf("%.60q is well-formed", bad)
			}
			// Nobody asks the database, which is none here.
			if got, err := credential.Check(w.Context(), nil, bad); !errors.Is(err, credential.ErrInvalid) || got != (credential.CheckedToken{}) {
				w.Errorf("check %.60q = %+v, %v, want %v", bad, got, err, credential.ErrInvalid)
			}
		}
		w.refused(credential.ErrInvalid, fault.Unauthenticated)

		var never string
		_ = w.Try(func(tx *sqldb.Tx) (err error) {
			if _, never, err = credential.Create(w.Context(), tx, credential.Draft{PersonID: anna, Name: "x"}); err != nil {
				w.Error(err)
			}
			return errUndo
		})
		w.dead(never)
		w.proves(secret, made)
	})
}

var errUndo = errors.New("undo")

func TestSuspendedPersonHasNoTokens(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		fox := w.company("Fox", anna)
		made, secret := w.token(credential.Draft{PersonID: anna})
		theirs, companys := w.token(credential.Draft{PersonID: anna, CompanyID: fox, MintedBy: bert})
		his, hisSecret := w.token(credential.Draft{PersonID: bert})
		suspend := func(yes bool) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) error { return person.SetSuspended(w.Context(), tx, anna, yes) })
		}
		suspend(true)
		w.dead(secret)
		w.dead(companys)
		w.proves(hisSecret, his)
		suspend(false)
		w.proves(secret, made)
		w.proves(companys, theirs)
	})
}

func TestTouch(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		made, secret := w.token(credential.Draft{PersonID: anna})
		other, otherSecret := w.token(credential.Draft{PersonID: anna})
		for _, first := range []bool{true, false, false} {
			w.Pass(time.Minute)
			if got := w.touch(made.ID); got != first {
				w.Errorf("first = %v, want %v", got, first)
			}
			made.LastUsed = w.Now()
			w.proves(secret, made)
		}
		w.proves(otherSecret, other)
		if w.touch(ids.New()) {
			w.Error("a token that is gone was used for the first time")
		}
	})
}

func TestFirstUseIsOne(t *testing.T) {
	each(t, func(w fixture) {
		made, _ := w.token(credential.Draft{PersonID: w.person("anna@example.com")})
		var firsts atomic.Int64
		dbtest.Together(32, func(int) {
			var first bool
			err := w.Try(func(tx *sqldb.Tx) (err error) { first, err = credential.Touch(w.Context(), tx, made.ID); return err })
			if err != nil {
				w.Error(err)
			}
			if first {
				firsts.Add(1)
			}
		})
		if n := firsts.Load(); n != 1 {
			w.Errorf("%d first uses, want 1", n)
		}
	})
}

// Each damage is found by the check that is there for it.
func TestChecksFind(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		w.token(credential.Draft{PersonID: anna, CompanyID: w.company("Fox", anna)})
		company := w.company("Hound")
		w.Do(func(tx *sqldb.Tx) error {
			_, _, err := credential.CreateSCIMToken(w.Context(), tx, company, anna)
			return err
		})
		for damage, check := range map[string]string{
			`UPDATE scim_token SET hash = 'secret'`:   "SCIM tokens are stored only as SHA-256",
			`UPDATE access_token SET hash = 'secret'`: "access tokens are stored only as SHA-256",
			`DELETE FROM company_member`:              "the access tokens of a company act for its members",
		} {
			found := w.Damage(credential.Checks, damage)
			if len(found) != 1 || !found[check] {
				w.Errorf("after %s the checks found %v, want %q", damage, found, check)
			}
		}
	})
}
