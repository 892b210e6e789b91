package webhook_test

import (
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/notify/webhook"
)

func TestSecret(t *testing.T) {
	each(t, func(w fixture) {
		get := func(id string) webhook.Secret {
			w.Helper()
			return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (webhook.Secret, error) { return w.secrets.GetSecret(w.Context(), tx, id) })
		}
		rotate := func(id string) webhook.Secret {
			w.Helper()
			return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (webhook.Secret, error) { return w.secrets.RotateSecret(w.Context(), tx, id) })
		}
		first := get("anna")
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(first.Value, "whsec_"))
		if err != nil || len(key) != 32 || !strings.HasPrefix(first.Value, "whsec_") || !first.Created.Equal(w.Now()) || !first.PreviousValidUntil.IsZero() || !first.Fresh {
			w.Errorf("secret = %+v, %v", first, err)
		}
		first.Fresh = false
		w.Pass(time.Hour)
		if again := get("anna"); again != first {
			w.Errorf("again = %+v, want %+v", again, first)
		}
		if other := get("bert"); other.Value == first.Value {
			w.Error("two accounts have one secret")
		}
		second := rotate("anna")
		if second.Value == first.Value || !second.Created.Equal(w.Now()) || !second.PreviousValidUntil.Equal(w.Now().Add(overlap)) {
			w.Errorf("rotated = %+v", second)
		}
		w.Pass(overlap - time.Microsecond)
		if got := get("anna"); got != second {
			w.Errorf("before the overlap ends = %+v, want %+v", got, second)
		}
		w.Pass(time.Microsecond)
		if got := get("anna"); got.Value != second.Value || !got.PreviousValidUntil.IsZero() {
			w.Errorf("after the overlap = %+v", got)
		}
		if fresh := rotate("carl"); !fresh.PreviousValidUntil.IsZero() || get("carl") != fresh {
			w.Errorf("rotated without one = %+v", fresh)
		}
	})
}

func TestSecretsAreKeptSealed(t *testing.T) {
	each(t, func(w fixture) {
		value := w.secret()
		w.Do(func(tx *sqldb.Tx) error { _, err := w.secrets.RotateSecret(w.Context(), tx, w.account); return err })
		var secret, previous string
		w.OK(w.DB.QueryRow(w.Context(), `SELECT secret, previous FROM webhook_secret WHERE account_id = $1`, w.account).Scan(&secret, &previous))
		for _, kept := range []string{secret, previous} {
			raw, err := base64.RawStdEncoding.DecodeString(kept)
			if err != nil || strings.Contains(kept, "whsec") || strings.Contains(string(raw), value[:12]) {
				w.Errorf("kept as %q", kept)
			}
		}
		// What was moved to another account does not open there.
		w.Exec(`INSERT INTO webhook_secret (account_id, secret, created, previous) VALUES ('thief', $1, 0, '')`, secret)
		err := w.Try(func(tx *sqldb.Tx) error { _, err := w.secrets.GetSecret(w.Context(), tx, "thief"); return err })
		if err == nil {
			w.Error("a secret opens for another account")
		}
	})
}

func TestFirstUsesAtOnceMakeOneSecret(t *testing.T) {
	each(t, func(w fixture) {
		var mu sync.Mutex
		seen := map[string]bool{}
		dbtest.Together(16, func(int) {
			err := w.Try(func(tx *sqldb.Tx) error {
				s, err := w.secrets.GetSecret(w.Context(), tx, w.account)
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					seen[s.Value] = true
				}
				return err
			})
			if err != nil {
				w.Error(err)
			}
		})
		if len(seen) != 1 {
			w.Errorf("%d secrets, want 1", len(seen))
		}
	})
}
