package person_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/person"
)

func (w fixture) offer(kind person.LinkKind, l person.Link, lifetime time.Duration) (secret string) {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (string, error) { return person.CreateLink(w.Context(), tx, kind, l, lifetime) })
}

func (w fixture) look(kind person.LinkKind, secret string) (l person.Link, err error) {
	err = w.DB.Read(w.Context(), func(tx *sqldb.Tx) (err error) { l, err = person.FindLink(w.Context(), tx, kind, secret); return err })
	return l, err
}

func (w fixture) use(kind person.LinkKind, secret string) (l person.Link, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) { l, err = person.UseLink(w.Context(), tx, kind, secret); return err })
	return l, err
}

// works wants the link to be good for l.
func (w fixture) works(kind person.LinkKind, secret string, l person.Link) {
	w.Helper()
	if got, err := w.look(kind, secret); err != nil || got != l {
		w.Errorf("look = %+v, %v, want %+v", got, err, l)
	}
}

// dead wants the link to be good for nothing.
func (w fixture) dead(kind person.LinkKind, secret string) {
	w.Helper()
	if got, err := w.look(kind, secret); got != (person.Link{}) {
		w.Errorf("look = %+v, want nothing", got)
	} else {
		w.refused(err, fault.NotFound)
	}
	if got, err := w.use(kind, secret); got != (person.Link{}) {
		w.Errorf("use = %+v, want nothing", got)
	} else {
		w.refused(err, fault.NotFound)
	}
}

func TestLinkWorksOnce(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		link := person.Link{PersonID: anna.ID, Target: anna.Email}
		secret := w.offer(person.VerifyLink, link, time.Hour)
		if len(secret) != 40 || !ids.Alphanumeric(secret) {
			w.Errorf("secret %q has the wrong form", secret)
		}
		sum := sha256.Sum256([]byte(secret))
		if n := w.count(`SELECT count(*) FROM person_link WHERE hash = $1`, hex.EncodeToString(sum[:])); n != 1 {
			w.Errorf("%d rows have its SHA-256, want 1", n)
		}
		for range 2 { // looking uses nothing up
			w.works(person.VerifyLink, secret, link)
		}
		for _, bad := range []string{"", secret + "x", secret[1:], strings.ToLower(secret), hex.EncodeToString(sum[:]), "\x00", "\xff", strings.Repeat("x", 1<<20)} {
			w.dead(person.VerifyLink, bad)
		}
		_ = w.Try(func(tx *sqldb.Tx) error {
			if _, err := person.UseLink(w.Context(), tx, person.VerifyLink, secret); err != nil {
				w.Error(err)
			}
			return errUndo
		})
		w.works(person.VerifyLink, secret, link) // that did not count
		if got, err := w.use(person.VerifyLink, secret); err != nil || got != link {
			w.Errorf("use = %+v, %v, want %+v", got, err, link)
		}
		w.dead(person.VerifyLink, secret)

		_, used := w.use(person.VerifyLink, secret)
		_, never := w.use(person.VerifyLink, "never was")
		if !errors.Is(used, never) {
			w.Errorf("used = %v, never was = %v: they differ", used, never)
		}
	})
}

func TestLinkIsOfOneKind(t *testing.T) {
	each(t, func(w fixture) {
		kinds := []person.LinkKind{person.VerifyLink, person.ResetLink, person.EndDeviceLink}
		anna := w.person("anna@example.com")
		link := person.Link{PersonID: anna.ID, Target: "one and the same"}
		secrets := map[person.LinkKind]string{}
		for _, kind := range kinds {
			secrets[kind] = w.offer(kind, link, time.Hour)
		}
		for _, is := range kinds {
			for _, as := range kinds {
				if is != as {
					w.dead(as, secrets[is])
				}
			}
			w.works(is, secrets[is], link) // the wrong ones left it alone
		}
	})
}

func TestLinkRunsOut(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		short, long := person.Link{PersonID: anna.ID, Target: "short"}, person.Link{PersonID: anna.ID, Target: "long"}
		s, l := w.offer(person.EndDeviceLink, short, time.Hour), w.offer(person.EndDeviceLink, long, 2*time.Hour)
		sweep := func(want int64) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) error { return person.DeleteExpiredLinks(w.Context(), tx) })
			if n := w.count(`SELECT count(*) FROM person_link`); n != want {
				w.Errorf("%d links are left, want %d", n, want)
			}
		}
		w.Pass(time.Hour - time.Microsecond)
		w.works(person.EndDeviceLink, s, short)
		sweep(2)
		w.Pass(time.Microsecond)
		w.dead(person.EndDeviceLink, s)
		w.works(person.EndDeviceLink, l, long)
		sweep(1)
		w.works(person.EndDeviceLink, l, long)
		w.Pass(time.Hour)
		w.dead(person.EndDeviceLink, l)
		sweep(0)
	})
}

func TestNewerLinkReplacesTheOlder(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		link := person.Link{PersonID: anna.ID, Target: "x"}
		old := w.offer(person.VerifyLink, link, time.Hour)
		others := []struct {
			kind person.LinkKind
			person.Link
		}{
			{person.EndDeviceLink, link},
			{person.VerifyLink, person.Link{PersonID: anna.ID, Target: "y"}},
			{person.VerifyLink, person.Link{PersonID: bert.ID, Target: "x"}},
		}
		var kept []string
		for _, o := range others {
			kept = append(kept, w.offer(o.kind, o.Link, time.Hour))
		}
		w.works(person.VerifyLink, old, link)
		fresh := w.offer(person.VerifyLink, link, time.Hour)
		w.dead(person.VerifyLink, old)
		w.works(person.VerifyLink, fresh, link)
		for i, o := range others {
			w.works(o.kind, kept[i], o.Link)
		}

		w.Do(func(tx *sqldb.Tx) error { return person.DeleteLinks(w.Context(), tx, person.VerifyLink, anna.ID) })
		w.dead(person.VerifyLink, fresh)
		w.works(others[0].kind, kept[0], others[0].Link)
		w.dead(others[1].kind, kept[1])
		w.works(others[2].kind, kept[2], others[2].Link)
	})
}

func TestLinkForNobody(t *testing.T) {
	each(t, func(w fixture) {
		err := w.Try(func(tx *sqldb.Tx) error {
			_, err := person.CreateLink(w.Context(), tx, person.ResetLink, person.Link{PersonID: ids.New()}, time.Hour)
			return err
		})
		w.refused(err, fault.NotFound)
	})
}

func TestOneOfManyUsesALink(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		link := person.Link{PersonID: anna.ID, Target: anna.Email}
		secret := w.offer(person.ResetLink, link, time.Hour)
		var won atomic.Int64
		dbtest.Together(32, func(int) {
			switch got, err := w.use(person.ResetLink, secret); {
			case err == nil && got == link:
				won.Add(1)
			default:
				w.refused(err, fault.NotFound)
			}
		})
		if n := won.Load(); n != 1 {
			w.Errorf("%d used it, want 1", n)
		}
	})
}

// Of many links of a kind the newest works. Those for a new password all do:
// anybody can have one made, which must not end the others.
func TestManyOfferedLinks(t *testing.T) {
	for kind, want := range map[person.LinkKind]int{person.VerifyLink: 1, person.ResetLink: 32} {
		t.Run(string(kind), func(t *testing.T) { testManyOfferedLinks(t, kind, want) })
	}
}

func testManyOfferedLinks(t *testing.T, kind person.LinkKind, want int) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		link := person.Link{PersonID: anna.ID, Target: anna.Email}
		secrets := make([]string, 32)
		dbtest.Together(len(secrets), func(i int) {
			err := w.Try(func(tx *sqldb.Tx) (err error) {
				secrets[i], err = person.CreateLink(w.Context(), tx, kind, link, time.Hour)
				return err
			})
			if err != nil {
				w.Error(err)
			}
		})
		works := 0
		for _, secret := range secrets {
			if _, err := w.look(kind, secret); err == nil {
				works++
			}
		}
		if works != want {
			w.Errorf("%d links work, want %d", works, want)
		}
	})
}
