package credential_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/credential"
)

// newestFirst is the order of lists.
func newestFirst(a, b credential.Token) int {
	return cmp.Or(b.Created.Compare(a.Created), strings.Compare(b.ID, a.ID))
}

func TestHolders(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		fox, hound := w.company("Fox", anna, bert), w.company("Hound", anna)
		secrets := map[string]string{}
		make := func(d credential.Draft) credential.Token {
			w.Helper()
			made, secret := w.token(d)
			secrets[made.ID] = secret
			return made
		}
		const seen, may = "seen", "may regenerate" // what a holder does not see does not exist
		type holders map[string]string
		people := map[string]credential.Holder{"anna": {PersonID: anna}, "bert": {PersonID: bert}, "fox": {CompanyID: fox}, "hound": {CompanyID: hound}}
		for _, test := range []struct {
			token credential.Draft
			holders
		}{
			{credential.Draft{PersonID: anna, MintedBy: anna}, holders{"anna": may}},
			{credential.Draft{PersonID: bert, MintedBy: bert}, holders{"bert": may}},
			{credential.Draft{PersonID: anna, CompanyID: fox, MintedBy: bert}, holders{"anna": seen, "fox": may}},
			{credential.Draft{PersonID: bert, CompanyID: fox, MintedBy: anna}, holders{"bert": seen, "fox": may}},
			{credential.Draft{PersonID: anna, CompanyID: hound}, holders{"anna": seen, "hound": may}},
		} {
			for who, holder := range people {
				made := make(test.token)
				_, listed := slices.BinarySearchFunc(w.list(holder), made, newestFirst)
				if want := test.holders[who] != ""; listed != want {
					w.Errorf("%s sees %+v: %v, want %v", who, test.token, listed, want)
				}

				_, fresh, err := w.regenerate(holder, made.ID)
				switch test.holders[who] {
				case may:
					w.dead(secrets[made.ID])
					w.proves(fresh, made)
				case seen:
					w.refused(err, fault.Forbidden)
					if f, ok := errors.AsType[*fault.Error](err); !ok || f.Details["reason"] != "company_token" {
						w.Errorf("%s regenerates %+v: %v, want the reason company_token", who, test.token, err)
					}
				default:
					w.unknown(err)
				}
				if err != nil {
					fresh = secrets[made.ID]
					w.proves(fresh, made)
				}

				gone, err := w.remove(holder, made.ID)
				if test.holders[who] == "" {
					w.unknown(err)
					w.proves(fresh, made)
					continue
				}
				if err != nil || gone.ID != made.ID || gone.PersonID != made.PersonID || gone.CompanyID != made.CompanyID || gone.Name != made.Name {
					w.Errorf("%s deletes %+v, %v, want %+v", who, gone, err, made)
				}
				w.dead(fresh)
				_, err = w.remove(holder, made.ID)
				w.unknown(err)
				_, _, err = w.regenerate(holder, made.ID)
				w.unknown(err)
			}
		}
	})
}

// unknown wants the one answer for tokens of others and for those that never
// were.
func (w fixture) unknown(err error) {
	w.Helper()
	_, never := w.remove(credential.Holder{PersonID: ids.New()}, ids.New())
	w.refused(never, fault.NotFound)
	if !errors.Is(err, never) {
		w.Errorf("error = %v, want %v", err, never)
	}
}

func TestUnknownIDs(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		fox := w.company("Fox", anna)
		made, secret := w.token(credential.Draft{PersonID: anna})
		for _, h := range []credential.Holder{{PersonID: anna}, {CompanyID: fox}, {}} {
			for _, id := range []string{"", "x", "\x00", "\xff", secret, ids.New(), strings.ToUpper(made.ID) + "x"} {
				_, err := w.remove(h, id)
				w.unknown(err)
				_, _, err = w.regenerate(h, id)
				w.unknown(err)
			}
		}
		if got := w.list(credential.Holder{}); len(got) != 0 {
			w.Errorf("nobody holds %+v", got)
		}
		w.proves(secret, made)
	})
}

func TestRegenerate(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		fox := w.company("Fox", anna)
		for _, test := range []struct {
			prefix string
			draft  credential.Draft
			credential.Holder
		}{
			{"atl_p_", credential.Draft{PersonID: anna, MintedBy: anna}, credential.Holder{PersonID: anna}},
			{"atl_c_", credential.Draft{PersonID: anna, CompanyID: fox}, credential.Holder{CompanyID: fox}},
		} {
			made, old := w.token(test.draft)
			beside, kept := w.token(test.draft)
			w.touch(made.ID)
			w.Pass(time.Hour)
			_ = w.Try(func(tx *sqldb.Tx) error {
				if _, _, err := credential.Regenerate(w.Context(), tx, test.Holder, made.ID); err != nil {
					w.Error(err)
				}
				return errUndo
			})
			if got, err := credential.Check(w.Context(), w.DB, old); err != nil || got.ID != made.ID || got.LastUsed.IsZero() {
				w.Errorf("check = %+v, %v after nothing was committed", got, err)
			}

			again, fresh, err := w.regenerate(test.Holder, made.ID)
			if err != nil {
				w.Fatal(err)
			}
			if fresh == old || !strings.HasPrefix(fresh, test.prefix) || !credential.WellFormed(fresh) {
				w.Errorf("new value %q has the wrong form", fresh)
			}
			want := made // as good as unused
			want.Hint = fresh[len(fresh)-4:]
			if again != want {
				w.Errorf("regenerated %+v, want %+v", again, want)
			}
			if !slices.Contains(w.list(test.Holder), want) {
				w.Errorf("list = %+v, want %+v in it", w.list(test.Holder), want)
			}
			w.dead(old)
			w.proves(fresh, want)
			w.proves(kept, beside)
			if !w.touch(made.ID) {
				w.Error("the first use of the new value is not the first")
			}
		}
	})
}

func TestOneNewValueLives(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		made, old := w.token(credential.Draft{PersonID: anna})
		values := make([]string, 32)
		dbtest.Together(len(values), func(i int) {
			var err error
			if _, values[i], err = w.regenerate(credential.Holder{PersonID: anna}, made.ID); err != nil {
				w.Error(err)
			}
		})
		w.dead(old)
		live := 0
		for _, v := range values {
			if _, err := credential.Check(w.Context(), w.DB, v); err == nil {
				live++
			}
		}
		if live != 1 {
			w.Errorf("%d values live, want 1", live)
		}
	})
}

func TestOneOfManyDeletes(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		for what, remove := range map[string]func(credential.Token, string) error{
			"by id": func(t credential.Token, _ string) error {
				_, err := w.remove(credential.Holder{PersonID: anna}, t.ID)
				return err
			},
			"by value": func(_ credential.Token, secret string) error { _, err := w.removeValue(secret); return err },
		} {
			for range 8 {
				made, secret := w.token(credential.Draft{PersonID: anna})
				var won atomic.Int64
				dbtest.Together(32, func(int) {
					if err := remove(made, secret); err == nil {
						won.Add(1)
					} else {
						w.refused(err, fault.NotFound)
					}
				})
				if n := won.Load(); n != 1 {
					w.Errorf("%d deleted it %s, want 1", n, what)
				}
				w.dead(secret)
			}
		}
	})
}

func (w fixture) removeValue(value string) (t credential.Token, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) { t, err = credential.DeleteValue(w.Context(), tx, value); return err })
	return t, err
}

func TestDeleteValue(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		fox := w.company("Fox", anna)
		for _, d := range []credential.Draft{{PersonID: anna, MintedBy: anna}, {PersonID: anna, CompanyID: fox}} {
			made, secret := w.token(d)
			kept, keptSecret := w.token(d)
			for _, bad := range []string{"", "\x00", secret + "0", "Bearer " + secret, made.ID, made.Hint} {
				_, err := credential.DeleteValue(w.Context(), nil, bad) // without a database
				w.unknown(err)
			}
			w.proves(secret, made)
			if got, err := w.removeValue(secret); err != nil || got != made {
				w.Errorf("delete = %+v, %v, want %+v", got, err, made)
			}
			w.dead(secret)
			_, err := w.removeValue(secret)
			w.unknown(err)
			w.proves(keptSecret, kept)
		}
	})
}

func TestDeleteOf(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		fox, hound := w.company("Fox", anna, bert), w.company("Hound", anna)
		all := map[credential.Draft][]credential.Token{}
		for _, d := range []credential.Draft{{PersonID: anna}, {PersonID: bert}, {PersonID: anna, CompanyID: fox}, {PersonID: bert, CompanyID: fox}, {PersonID: anna, CompanyID: hound}} {
			for range 2 {
				made, _ := w.token(d)
				all[d] = append(all[d], made)
			}
		}
		for _, d := range []credential.Draft{{PersonID: anna, CompanyID: fox}, {PersonID: anna}, {PersonID: bert, CompanyID: hound}} {
			want := all[d]
			delete(all, d)
			got := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]credential.Token, error) {
				return credential.DeleteOf(w.Context(), tx, d.PersonID, d.CompanyID)
			})
			slices.SortFunc(got, newestFirst)
			slices.SortFunc(want, newestFirst)
			if !slices.Equal(got, want) {
				w.Errorf("deleted %+v, want %+v", got, want)
			}
			left := append(w.list(credential.Holder{PersonID: anna}), w.list(credential.Holder{PersonID: bert})...)
			n := 0
			for _, kept := range all {
				for _, one := range kept {
					n++
					if !slices.Contains(left, one) {
						w.Errorf("%+v is gone too", one)
					}
				}
			}
			if len(left) != n {
				w.Errorf("%d tokens are left, want %d", len(left), n)
			}
		}
	})
}

func TestListPagesThroughEveryTokenOnce(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		fox := w.company("Fox", anna, bert)
		want := map[credential.Holder][]credential.Token{}
		for i := range 9 {
			d := credential.Draft{PersonID: anna}
			if i%2 == 0 {
				d.CompanyID = fox
			}
			made, _ := w.token(d)
			want[credential.Holder{PersonID: anna}] = append(want[credential.Holder{PersonID: anna}], made)
			if i%2 == 0 {
				want[credential.Holder{CompanyID: fox}] = append(want[credential.Holder{CompanyID: fox}], made)
			}
			if i%4 == 3 { // by fours in one moment
				w.Pass(time.Second)
			}
		}
		w.token(credential.Draft{PersonID: bert})
		for h, want := range want {
			slices.SortFunc(want, newestFirst)
			var got []credential.Token
			for after := (*credential.After)(nil); len(got) <= len(want); {
				page := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]credential.Token, error) { return credential.List(w.Context(), tx, h, after, 2) })
				if len(page) == 0 {
					break
				}
				if len(page) > 2 {
					w.Errorf("a page has %d tokens, want 2 at most", len(page))
				}
				got = append(got, page...)
				last := got[len(got)-1]
				after = &credential.After{Created: last.Created, ID: last.ID}
			}
			if !slices.Equal(got, want) {
				w.Errorf("pages of %+v = %+v, want %+v", h, got, want)
			}
		}
	})
}
