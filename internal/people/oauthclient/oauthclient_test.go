package oauthclient_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/oauthclient"
)

func register(t *testing.T, db *sqldb.DB, r oauthclient.Registration) (c oauthclient.Client, err error) {
	t.Helper()
	err = db.Write(t.Context(), func(tx *sqldb.Tx) error {
		c, err = oauthclient.Register(t.Context(), tx, r)
		return err
	})
	return c, err
}

func TestAllows(t *testing.T) {
	c := oauthclient.Client{RedirectURIs: []string{"https://example.com/callback?x=1", "http://127.0.0.1/callback", "http://localhost:7000/callback", "cursor://anysphere/callback"}}
	for address, want := range map[string]bool{
		"https://example.com/callback?x=1":      true,
		"http://127.0.0.1/callback":             true,
		"http://127.0.0.1:54321/callback":       true, // the port of the person's own machine may differ
		"http://localhost:1/callback":           true,
		"cursor://anysphere/callback":           true,
		"":                                      false,
		"https://example.com/callback":          false,
		"https://example.com:8443/callback?x=1": false,
		"https://example.com.evil/callback?x=1": false,
		"https://example.com/callback?x=1&y=2":  false,
		"https://example.com/callback?x=1#y":    false,
		"HTTPS://example.com/callback?x=1":      false,
		"http://127.0.0.1:54321/other":          false,
		"http://127.0.0.1:54321/callback?x=1":   false,
		"http://127.0.0.1:x/callback":           false,
		"http://a@127.0.0.1:54321/callback":     false,
		"http://127.0.0.1.evil/callback":        false,
		"http://127.0.0.2/callback":             false,
		"http://[::1]/callback":                 false,
		"https://127.0.0.1/callback":            false,
		"cursor://anysphere:1/callback":         false,
	} {
		if got := c.Allows(address); got != want {
			t.Errorf("%q is allowed: %t, want %t", address, got, want)
		}
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		for _, address := range []string{"https://example.com/", "http://127.0.0.1/callback", "http://localhost:80/x", "http://[::1]:7/x", "com.example.app:/callback", "vscode://some.extension/x"} {
			c, err := register(t, db, oauthclient.Registration{Name: "App\x00\u202e", RedirectURIs: []string{address}, Network: "n"})
			if err != nil || c.Name != "App\ufffd\ufffd" {
				t.Errorf("%s: %+v, %v", address, c, err)
			}
			var found oauthclient.Client
			err = db.Read(t.Context(), func(tx *sqldb.Tx) error {
				found, err = oauthclient.ByID(t.Context(), tx, c.ID)
				return err
			})
			if err != nil || fmt.Sprint(found.RedirectURIs) != fmt.Sprint([]string{address}) {
				t.Errorf("found %+v, %v", found, err)
			}
		}
		for _, address := range []string{
			"", "x", "/callback", "//example.com/", "http://example.com/", "http://169.254.169.254/", "https://", "https:///x", "https://example.com/#", "https://a:b@example.com/",
			"javascript:alert(1)", "JAVASCRIPT:alert(1)", "data:text/html,x", "file:///etc/passwd", "about:blank", "blob:https://x/y", "https://example.com/\n", "https://example.com/\u202e",
		} {
			if _, err := register(t, db, oauthclient.Registration{Name: "App", RedirectURIs: []string{address}, Network: "n"}); !fault.Is(err, fault.Invalid) {
				t.Errorf("%q is registered: %v", address, err)
			}
		}
		err := db.Read(t.Context(), func(tx *sqldb.Tx) error {
			_, err := oauthclient.ByID(t.Context(), tx, "nothing")
			return err
		})
		if !errors.Is(err, oauthclient.ErrUnknown) {
			t.Errorf("an unknown app: %v", err)
		}
	})
}

// TestUnusedAreBounded: of the apps of a network that nobody has allowed, the
// newest hundred are kept, and none for longer than a week.
func TestUnusedAreBounded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		count := func() (n int) {
			t.Helper()
			if err := db.QueryRow(t.Context(), `SELECT count(*) FROM oauth_client`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		write := func(fn func(ctx context.Context, tx *sqldb.Tx) error) {
			t.Helper()
			if err := db.Write(t.Context(), func(tx *sqldb.Tx) error { return fn(t.Context(), tx) }); err != nil {
				t.Fatal(err)
			}
		}
		r := oauthclient.Registration{Name: "App", RedirectURIs: []string{"https://example.com/"}, Network: "one"}
		used, err := register(t, db, r)
		if err != nil {
			t.Fatal(err)
		}
		write(func(ctx context.Context, tx *sqldb.Tx) error { return oauthclient.MarkApproved(ctx, tx, used.ID) })
		var last oauthclient.Client
		for range 105 {
			if last, err = register(t, db, r); err != nil {
				t.Fatal(err)
			}
		}
		r.Network = "two"
		if _, err := register(t, db, r); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != 102 {
			t.Errorf("%d apps are kept, want 100, one that is used, and one of another network", n)
		}
		write(func(ctx context.Context, tx *sqldb.Tx) error {
			_, err := oauthclient.ByID(ctx, tx, last.ID)
			return err
		})
		write(func(ctx context.Context, tx *sqldb.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE oauth_client SET created = created - $1 WHERE id <> $2`, (8 * 24 * time.Hour).Microseconds(), last.ID)
			return err
		})
		write(func(ctx context.Context, tx *sqldb.Tx) error {
			_, err := oauthclient.DeleteUnused(ctx, tx)
			return err
		})
		if n := count(); n != 2 {
			t.Errorf("%d apps are left, want the one that is used and the new one", n)
		}
	})
}
