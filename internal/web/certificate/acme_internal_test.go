package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"atelier/internal/base/keyring"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/certificate/acmetest"
)

func box(t *testing.T) keyring.Box {
	t.Helper()
	ring, err := keyring.New("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	if err != nil {
		t.Fatal(err)
	}
	return ring.BoxFor("certificates")
}

func TestStore(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		s := &store{db: db, box: box(t), directoryURL: "https://a.example/dir"}
		other := &store{db: db, box: box(t), directoryURL: "https://b.example/dir"}
		missing := func(when string, s *store, name string) {
			t.Helper()
			if _, err := s.Get(ctx, name); !errors.Is(err, autocert.ErrCacheMiss) {
				t.Errorf("%s: %v, want a miss", when, err)
			}
		}
		missing("at first", s, "x.example")
		for _, text := range []string{"a key", "another key"} {
			if err := s.Put(ctx, "x.example", []byte(text)); err != nil {
				t.Fatal(err)
			}
			got, err := s.Get(ctx, "x.example")
			if err != nil || string(got) != text {
				t.Errorf("got %q, %v, want %q", got, err, text)
			}
		}
		missing("of another authority", other, "x.example")
		var sealed string
		if err := db.QueryRow(ctx, `SELECT sealed FROM certificate`).Scan(&sealed); err != nil || strings.Contains(sealed, "key") {
			t.Errorf("stored: %q, %v", sealed, err)
		}
		if err := s.Delete(ctx, "x.example"); err != nil {
			t.Fatal(err)
		}
		missing("deleted", s, "x.example")

		// One node at a time obtains a certificate.
		release, err := s.claimDomain(ctx, "x.example")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.claimDomain(ctx, "x.example"); !errors.Is(err, errClaimed) {
			t.Errorf("a second claim: %v", err)
		}
		if _, err := s.claimDomain(ctx, "y.example"); err != nil {
			t.Errorf("of another domain: %v", err)
		}
		release()
		if _, err := s.claimDomain(ctx, "x.example"); err != nil {
			t.Errorf("after the release: %v", err)
		}
		err = db.Write(ctx, func(tx *sqldb.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE certificate_claim SET until = $1`, sqldb.At(tx.Now))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.claimDomain(ctx, "x.example"); err != nil {
			t.Errorf("after its end: %v", err)
		}

		// Challenges of nodes that died go after a day, nothing else does.
		for _, name := range []string{"old+http-01", "old+token", "old.example"} {
			if err := s.Put(ctx, name, nil); err != nil {
				t.Fatal(err)
			}
		}
		err = db.Write(ctx, func(tx *sqldb.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE certificate SET changed = $1`, sqldb.At(tx.Now.Add(-25*time.Hour)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(ctx, "new+http-01", nil); err != nil {
			t.Fatal(err)
		}
		if err := s.deleteOldChallenges(ctx); err != nil {
			t.Fatal(err)
		}
		missing("an old challenge", s, "old+http-01")
		missing("an old challenge", s, "old+token")
		for _, name := range []string{"new+http-01", "old.example"} {
			if _, err := s.Get(ctx, name); err != nil {
				t.Errorf("%s was swept: %v", name, err)
			}
		}
	})
}

// TestACMESaysWhy has an authority find nobody at the address of a domain. The log
// has its reason, and visitors are turned away without another attempt.
func TestACMESaysWhy(t *testing.T) {
	t.Parallel()
	authority := acmetest.Start(t)
	log := &watch.Log{}
	a, err := NewACME(ACMEOptions{
		Domains:      []string{"atelier.example.com"},
		DirectoryURL: authority.Directory,
		Roots:        authority.RootsFile,
		DB:           dbtest.Open(t, dbtest.URL(t, "sqlite")),
		Box:          box(t),
		Log:          slog.New(slog.NewTextHandler(log, nil)),
		Now:          time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		a.Run(ctx)
		close(ended)
	}()
	watch.Until(t, "a warning", func() bool { return strings.Contains(log.String(), "could not obtain a certificate") })
	if text := log.String(); !strings.Contains(text, "reason=\"tls-alpn-01: ") || !strings.Contains(text, "retry_after=2m0s") {
		t.Errorf("log = %s, want the reason and the next attempt", text)
	}
	for _, name := range []string{"atelier.example.com", "ATELIER.example.com.", "other.example.com", "", "127.0.0.1"} {
		if cert, err := a.selectCertificate(&tls.ClientHelloInfo{ServerName: name}); err == nil {
			t.Errorf("%q gets %v", name, cert.Leaf.DNSNames)
		}
	}
	if got := a.MissingDomains(); len(got) != 1 {
		t.Errorf("missing = %v", got)
	}
	cancel()
	<-ended
}
