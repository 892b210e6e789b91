package profile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"atelier/internal/cli/profile"
)

func newStore(t *testing.T) profile.Store {
	t.Helper()
	return profile.Store{Dir: filepath.Join(t.TempDir(), "atelier")}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	list, err := s.Read()
	if err != nil || len(list.Profiles) != 0 {
		t.Fatalf("before the first: %+v, %v", list, err)
	}
	for _, name := range []string{"work", "home"} {
		if err := s.Save(profile.Profile{Name: name, URL: "https://" + name + ".example", Storage: profile.File}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Save(profile.Profile{Name: "work", URL: "https://work.example", TeamID: "t", Storage: profile.File}); err != nil {
		t.Fatal(err)
	}
	list, err = s.Read()
	if err != nil || len(list.Profiles) != 2 || list.Profiles[0].Name != "home" || list.Current != "work" {
		t.Fatalf("list = %+v, %v", list, err)
	}
	if p, ok := list.Find(""); !ok || p.TeamID != "t" {
		t.Errorf("current = %+v, %v", p, ok)
	}
	if _, ok := list.Find("other"); ok {
		t.Error("a profile that is not there was found")
	}
	if err := s.Remove("work"); err != nil {
		t.Fatal(err)
	}
	if list, err = s.Read(); err != nil || list.Current != "home" {
		t.Errorf("after removal: %+v, %v", list, err)
	}
	info, err := os.Stat(filepath.Join(s.Dir, "profiles.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
}

// TestNames refuses names that lead out of the folder, also those in the file.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, name := range []string{"", "..", "../up", "a/b", ".hidden", "a b", "x\n"} {
		if err := s.Save(profile.Profile{Name: name}); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	if err := s.Save(profile.Profile{Name: "good"}); err != nil {
		t.Fatal(err)
	}
	bad := []byte(`{"profiles": [{"name": "../../etc/passwd"}]}`)
	if err := os.WriteFile(filepath.Join(s.Dir, "profiles.json"), bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(); err == nil {
		t.Error("a name that leads out of the folder was read")
	}
	for address, want := range map[string]string{
		"https://atelier.example": "atelier.example", "http://localhost:8080/": "localhost-8080", "http://[::1]:80": "1-80", "nonsense": "default",
	} {
		if got := profile.NameFor(address); got != want {
			t.Errorf("NameFor(%q) = %q, want %q", address, got, want)
		}
	}
}

// TestManyWriters loses no profile that another writer adds.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := s.Save(profile.Profile{Name: "p" + strconv.Itoa(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := s.Read(); err != nil || len(list.Profiles) != 20 {
		t.Errorf("%d profiles, %v", len(list.Profiles), err)
	}
}

func TestStaleLock(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := profile.Credentials{Store: s, Profile: "a", Storage: profile.File}
	unlock, err := c.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Dir, "credentials", "a.lock")
	old := time.Now().Add(-31 * time.Second)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	again, err := c.Lock(t.Context()) // at once: the first is stale
	if err != nil {
		t.Fatal(err)
	}
	again()
	unlock()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock is still there: %v", err)
	}
}

// TestCredentials is not parallel: the keyring in memory replaces the system's
// for the whole process.
func TestCredentials(t *testing.T) {
	keyring.MockInit()
	s := newStore(t)
	want := profile.Credential{IDToken: "i", RefreshToken: "r", ExpiresAt: 1794819600}
	for _, storage := range []profile.Storage{profile.File, profile.Keyring} {
		c := profile.Credentials{Store: s, Profile: "a", Storage: storage}
		if _, err := c.Load(); !errors.Is(err, profile.ErrNoCredential) {
			t.Errorf("%s: before: %v", storage, err)
		}
		if err := c.Save(want); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Load(); err != nil || got != want {
			t.Errorf("%s: %+v, %v", storage, got, err)
		}
		if storage == profile.File {
			info, err := os.Stat(filepath.Join(s.Dir, "credentials", "a.json"))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode = %v, %v", info.Mode(), err)
			}
		}
		for range 2 {
			if err := c.Remove(); err != nil {
				t.Errorf("%s: %v", storage, err)
			}
		}
		if _, err := c.Load(); !errors.Is(err, profile.ErrNoCredential) {
			t.Errorf("%s: afterwards: %v", storage, err)
		}
	}
	if storage, err := profile.ChooseStorage(); storage != profile.Keyring || err != nil {
		t.Errorf("storage = %v, %v", storage, err)
	}
	keyring.MockInitWithError(errors.New("no secret service"))
	if storage, err := profile.ChooseStorage(); storage != profile.File || err == nil {
		t.Errorf("storage without a keyring = %v, %v", storage, err)
	}
}
