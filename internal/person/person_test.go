package person_test

import (
	"errors"
	"strings"
	"testing"

	"atelier/internal/fault"
	"atelier/internal/person"
	"atelier/internal/sqldb"
	"atelier/internal/sqldb/dbtest"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		create := func(email string) (p person.Person, err error) {
			err = db.Write(ctx, func(tx *sqldb.Tx) (err error) {
				p, err = person.Create(ctx, tx, person.Draft{Email: email, EmailVerified: true, PasswordHash: "x"})
				return err
			})
			return p, err
		}
		made, err := create("Anna@Example.com")
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"anna@example.com", "ANNA@EXAMPLE.COM", "", "anna", "anna@", "Anna <a@b.c>", " a@b.c", strings.Repeat("a", 251) + "@b.c"} {
			_, err := create(bad)
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Invalid || len(f.Fields) != 1 || f.Fields[0].Path != "email" {
				t.Errorf("create %q = %v, want %s on email", bad, err, fault.Invalid)
			}
		}
		err = db.Read(ctx, func(tx *sqldb.Tx) error {
			got, err := person.ByEmail(ctx, tx, "aNNa@example.COM")
			if err == nil && got != made {
				t.Errorf("by mail = %+v, want %+v", got, made)
			}
			_, missing := person.ByEmail(ctx, tx, "bert@example.com")
			if f, ok := errors.AsType[*fault.Error](missing); !ok || f.Code != fault.NotFound {
				t.Errorf("a stranger = %v, want %s", missing, fault.NotFound)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if v, err := db.Verify(ctx, person.Checks); err != nil || len(v) != 0 {
			t.Errorf("checks = %v, %v", v, err)
		}
	})
}

func TestSetup(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		offer := func() (token string) {
			t.Helper()
			if err := db.Write(ctx, func(tx *sqldb.Tx) (err error) { token, err = person.OfferSetup(ctx, tx); return err }); err != nil {
				t.Fatal(err)
			}
			return token
		}
		may := func(token string) (ok bool) {
			t.Helper()
			if err := db.Read(ctx, func(tx *sqldb.Tx) (err error) { ok, err = person.MaySetup(ctx, tx, token); return err }); err != nil {
				t.Fatal(err)
			}
			return ok
		}
		first, second := offer(), offer() // two nodes start
		if first == second || !may(first) || !may(second) {
			t.Error("offered tokens are equal or do not work")
		}
		for _, bad := range []string{"", "x", first + "x", strings.ToLower(first), strings.Repeat("%", 40)} {
			if may(bad) {
				t.Errorf("token %q works", bad)
			}
		}
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			_, err := person.Create(ctx, tx, person.Draft{Email: "a@b.c", PasswordHash: "x"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if may(first) || may(second) || offer() != "" {
			t.Error("setting up is still possible after the first person")
		}
		if v, err := db.Verify(ctx, person.Checks); err != nil || len(v) != 0 {
			t.Errorf("checks = %v, %v", v, err)
		}
	})
}

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
	for password, want := range map[string]bool{"correct horse": true, "correct horsf": false, "": false} {
		got, err := person.CheckPassword(ctx, hash, password)
		if err != nil || got != want {
			t.Errorf("check %q = %v, %v, want %v", password, got, err, want)
		}
	}
	for _, bad := range []string{"", "1234567", strings.Repeat("x", 1025), "pass\xffword"} {
		if _, err := person.HashPassword(ctx, bad); err == nil {
			t.Errorf("password %q was accepted", bad)
		}
	}
	if _, err := person.CheckPassword(ctx, "plain", "plain"); err == nil {
		t.Error("a stored text that is no hash was accepted")
	}
}
