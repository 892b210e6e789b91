package keyring_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"atelier/internal/base/keyring"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

func TestLoadMakesOneSecret(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys", "secret")
	const processes = 16
	keys := make([][]byte, processes)
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() {
			ring, err := keyring.Load(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = ring.DeriveKey("a")
		})
	}
	group.Wait()
	for _, k := range keys {
		if !bytes.Equal(k, keys[0]) {
			t.Fatal("two first starts at once have different secrets")
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secret file = %v, %v, want mode 0600", info.Mode(), err)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".secret-*"))
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestKeysDifferByPurpose(t *testing.T) {
	t.Parallel()
	ring, err := keyring.New(strings.Repeat("A", 43) + "=")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(ring.DeriveKey("a"), ring.DeriveKey("b")) || !bytes.Equal(ring.DeriveKey("a"), ring.DeriveKey("a")) {
		t.Error("keys do not follow their purpose")
	}
	for _, bad := range []string{"", "short", strings.Repeat("A", 40), "not base64 at all, however long it may be!!"} {
		if _, err := keyring.New(bad); err == nil {
			t.Errorf("secret %q was accepted", bad)
		}
	}
}

func TestConfirmRefusesAStranger(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		confirm := func(secret string) error {
			ring, err := keyring.New(secret)
			if err != nil {
				t.Fatal(err)
			}
			return db.Write(t.Context(), func(tx *sqldb.Tx) error { return ring.ConfirmSecret(t.Context(), tx) })
		}
		first, second := strings.Repeat("A", 43)+"=", strings.Repeat("B", 43)+"="
		for range 2 {
			if err := confirm(first); err != nil {
				t.Fatalf("own secret: %v", err)
			}
		}
		if err := confirm(second); err == nil {
			t.Error("another secret was accepted")
		}
	})
}
