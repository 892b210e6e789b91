package person_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/person"
)

func TestPassword(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	hash, err := person.HashPassword(ctx, "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := person.HashPassword(ctx, "correct horse"); again == hash {
		t.Error("two hashes of one password are equal: no salt")
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horsf": false, "": false, strings.Repeat("x", 1025): false} {
		got, err := person.CheckPassword(ctx, hash, password)
		if err != nil || got != want {
			t.Errorf("check %.20q = %v, %v, want %v", password, got, err, want)
		}
	}
	for _, bad := range []string{"", "1234567", "äöüßäöü", strings.Repeat("x", 1025), "pass\xffword"} {
		_, err := person.HashPassword(ctx, bad)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Invalid || len(f.Fields) != 1 || f.Fields[0].Path != "password" {
			t.Errorf("hash %.20q = %v, want %s on password", bad, err, fault.Invalid)
		}
	}
	for _, good := range []string{"12345678", "äöüßäöüß", strings.Repeat("x", 1024)} {
		if _, err := person.HashPassword(ctx, good); err != nil {
			t.Errorf("hash %.20q = %v", good, err)
		}
	}
}

// cheap is of "correct horse", from when hashing cost less.
const cheap = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$bIKRw3Ua1pluirFy81fnppmR01EnUxY3hLEBwbWxBG8"

func TestStoredPasswords(t *testing.T) {
	t.Parallel()
	const salt, hash = "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for _, bad := range []string{
		"", "plain", "$argon2i$v=19$m=8,t=1,p=1$" + salt + "$" + hash, "$argon2id$v=19$m=8,t=1,p=1$" + salt,
		"$argon2id$v=19$m=x,t=1,p=1$" + salt + "$" + hash, "$argon2id$v=19$m=8,t=1,p=1$!$" + hash, "$argon2id$v=19$m=8,t=1,p=1$" + salt + "$!",
	} {
		if ok, err := person.CheckPassword(t.Context(), bad, "plain"); err == nil || ok {
			t.Errorf("stored %q = %v, %v, want an error", bad, ok, err)
		}
	}
	if ok, err := person.CheckPassword(t.Context(), "plain", strings.Repeat("x", 1025)); ok || err != nil {
		t.Errorf("check = %v, %v, want no without looking", ok, err)
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horsf": false} {
		if got, err := person.CheckPassword(t.Context(), cheap, password); err != nil || got != want {
			t.Errorf("check %q = %v, %v, want %v", password, got, err, want)
		}
	}
}

func (w fixture) hash(password string) string {
	w.Helper()
	hash, err := person.HashPassword(w.Context(), password)
	w.OK(err)
	return hash
}

// byProvider makes somebody who has no password.
func (w fixture) byProvider(email string) person.Person {
	w.Helper()
	p := w.create(person.Draft{Email: email})
	w.recognise(person.Identity{Issuer: "https://id.example", Subject: email, PersonID: p.ID, Provider: "corp"})
	return p
}

func TestSignIn(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.create(person.Draft{Email: "Anna@example.com", PasswordHash: cheap})
		bert := w.create(person.Draft{Email: "bert@example.com", PasswordHash: w.hash("battery staple")})
		w.byProvider("carl@example.com")
		for _, test := range []struct{ what, email, password, want string }{
			{"right", "Anna@example.com", "correct horse", anna.ID},
			{"right, whatever the case of the address", "aNNA@EXAMPLE.com", "correct horse", anna.ID},
			{"right, another person", "bert@example.com", "battery staple", bert.ID},
			{"wrong", "anna@example.com", "Correct horse", ""},
			{"another's password", "anna@example.com", "battery staple", ""},
			{"no password given", "anna@example.com", "", ""},
			{"far too long", "anna@example.com", "correct horse" + strings.Repeat("x", 1<<20), ""},
			{"unknown", "dora@example.com", "correct horse", ""},
			{"no address", "", "correct horse", ""},
			{"person without a password", "carl@example.com", "correct horse", ""},
			{"person without a password, none given", "carl@example.com", "", ""},
		} {
			if got, err := person.CheckSignIn(w.Context(), w.DB, test.email, test.password); err != nil || got.PersonID != test.want {
				w.Errorf("%s: sign in = %q, %v, want %q", test.what, got.PersonID, err, test.want)
			}
		}
	})
}

func TestSetPassword(t *testing.T) {
	each(t, func(w fixture) {
		const old, fresh = "correct horse", "battery staple"
		anna := w.create(person.Draft{Email: "anna@example.com", PasswordHash: cheap})
		bert := w.create(person.Draft{Email: "bert@example.com", PasswordHash: cheap})
		signIn := func(p person.Person, password string) bool {
			w.Helper()
			proof, err := person.CheckSignIn(w.Context(), w.DB, p.Email, password)
			w.OK(err)
			return proof.PersonID == p.ID
		}
		set := func(hash string) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) error { return person.SetPassword(w.Context(), tx, anna.ID, hash) })
		}
		set(w.hash(fresh))
		if signIn(anna, old) || !signIn(anna, fresh) {
			w.Error("the old password works, or the new one does not")
		}
		w.recognise(person.Identity{Issuer: "https://id.example", Subject: "anna", PersonID: anna.ID, Provider: "corp"})
		if got := w.byID(anna.ID).Provider; got != person.Password {
			w.Errorf("provider = %q while she has a password", got)
		}
		set("")
		if signIn(anna, fresh) || signIn(anna, "") {
			w.Error("a password that was taken away works")
		}
		if got := w.byID(anna.ID).Provider; got != "corp" {
			w.Errorf("provider = %q, want the one that is left", got)
		}
		if !signIn(bert, old) {
			w.Error("somebody else's password was changed")
		}
	})
}

// TestSignInTellsNothingByItsTime has strangers and people without a password
// take as long as a wrong password. It measures, so it runs alone.
func TestSignInTellsNothingByItsTime(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			w := fixture{dbtest.Fixture{T: t, DB: dbtest.Open(t, dbtest.URL(t, engine))}}
			w.create(person.Draft{Email: "anna@example.com", PasswordHash: w.hash("correct horse")})
			w.byProvider("carl@example.com")
			took := map[string][]time.Duration{}
			for range 5 {
				for _, email := range []string{"anna@example.com", "dora@example.com", "carl@example.com"} {
					began := w.worked()
					if proof, err := person.CheckSignIn(w.Context(), w.DB, email, "battery staple"); err != nil || proof.PersonID != "" {
						t.Fatalf("sign in = %q, %v", proof.PersonID, err)
					}
					took[email] = append(took[email], w.worked()-began)
				}
			}
			median := func(email string) time.Duration { slices.Sort(took[email]); return took[email][2] }
			wrong := median("anna@example.com")
			for what, email := range map[string]string{"an unknown address": "dora@example.com", "a person without a password": "carl@example.com"} {
				if got := median(email); got > 2*wrong || wrong > 2*got {
					t.Errorf("%s took %v, a wrong password %v", what, got, wrong)
				}
			}
		})
	}
}

// worked is the time that processors have spent on this process. What else the
// machine does makes it no longer.
func (w fixture) worked() time.Duration {
	w.Helper()
	var u syscall.Rusage
	w.OK(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestAProofEndsWithItsPassword(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.create(person.Draft{Email: "anna@example.com", PasswordHash: cheap})
		proof, err := person.CheckSignIn(w.Context(), w.DB, anna.Email, "correct horse")
		w.OK(err)
		holds := func() (ok bool) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) (err error) { ok, err = proof.IsCurrent(w.Context(), tx); return err })
			return ok
		}
		if proof.PersonID != anna.ID || !holds() {
			w.Errorf("proof = %v, holds %v", proof.PersonID, holds())
		}
		w.Do(func(tx *sqldb.Tx) error {
			return person.SetPassword(w.Context(), tx, anna.ID, w.hash("battery staple"))
		})
		if holds() {
			w.Error("a password that was changed still counts")
		}
	})
}
