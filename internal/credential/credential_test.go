package credential_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"atelier/internal/credential"
	"atelier/internal/fault"
	"atelier/internal/person"
	"atelier/internal/sqldb"
	"atelier/internal/sqldb/dbtest"
)

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		var anna person.Person
		var made credential.Token
		var secret string
		err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			if anna, err = person.Create(ctx, tx, person.Draft{Email: "anna@example.com", PasswordHash: "x"}); err != nil {
				return err
			}
			made, secret, err = credential.Create(ctx, tx, anna.ID, "script")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^atl_p_[0-9A-Za-z]{49}$`).MatchString(secret) || !strings.HasSuffix(secret, made.Hint) {
			t.Errorf("token %q has the wrong form or hint %q", secret, made.Hint)
		}
		want := credential.Caller{PersonID: anna.ID, Kind: credential.PersonalToken, TokenID: made.ID}
		for _, header := range []string{"Bearer " + secret, "bearer " + secret} { // RFC 9110 section 11.1: the scheme has no case
			if got, err := credential.Authenticate(ctx, db, header); err != nil || got != want {
				t.Errorf("authenticate = %+v, %v, want %+v", got, err, want)
			}
		}
		last := byte('0')
		if secret[20] == last {
			last = '1'
		}
		for _, bad := range []string{
			"", "Bearer", "Bearer ", secret, "Basic " + secret, "Bearer  " + secret, "Bearer " + secret + " ", "Bearer " + secret + "0",
			"Bearer " + secret[:len(secret)-1], "Bearer " + strings.ToUpper(secret), "Bearer " + secret[:20] + string(last) + secret[21:],
			"Bearer atl_c_" + secret[6:], "Bearer " + strings.Repeat("a", 1<<20), "Bearer \x00", "Bearer atl_p_" + strings.Repeat("é", 49),
		} {
			got, err := credential.Authenticate(ctx, db, bad)
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != fault.Unauthenticated || got != (credential.Caller{}) {
				t.Errorf("authenticate %.40q = %+v, %v, want %s", bad, got, err, fault.Unauthenticated)
			}
		}
		err = db.Write(ctx, func(tx *sqldb.Tx) error {
			_, err := tx.Exec(ctx, `DELETE FROM access_token WHERE id = $1`, made.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := credential.Authenticate(ctx, db, "Bearer "+secret); err == nil {
			t.Error("a deleted token still works")
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		for name, ok := range map[string]bool{"script": true, strings.Repeat("ü", 100): true, strings.Repeat("x", 101): false, "": false, "a\nb": false, "\xff": false} {
			err := db.Write(ctx, func(tx *sqldb.Tx) error {
				p, err := person.Create(ctx, tx, person.Draft{Email: "a@b.c", PasswordHash: "x"})
				if err != nil {
					return err
				}
				if _, _, err = credential.Create(ctx, tx, p.ID, name); (err == nil) != ok {
					t.Errorf("create %.20q = %v, want ok %v", name, err, ok)
				}
				return errors.New("roll back")
			})
			if err == nil {
				t.Error("committed")
			}
		}
	})
}
