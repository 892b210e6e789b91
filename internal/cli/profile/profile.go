// Package profile stores the services that a person uses from the command line,
// and their credentials.
//
//	DIR/profiles.json           names, addresses, teams; no secret
//	DIR/profiles.json.lock      exists while a process changes profiles.json
//	DIR/credentials/NAME.json   credential of a profile, mode 0600, if the keyring has it not
//	DIR/credentials/NAME.lock   exists while a process refreshes the credential
//
// A profile says where its credential is: in the keyring of the system, or in a
// file. Files are replaced as a whole, so that a process that dies leaves the
// old or the new content.
package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"atelier/client"
)

// Profile is one service that a person uses.
type Profile struct {
	Name string `json:"name"`
	// URL is the address of the service.
	URL string `json:"url"`
	// TeamID is the team for which commands act; "" is the personal account.
	TeamID string `json:"team_id,omitempty"`
	// Email is the person who signed in, for lists.
	Email string `json:"email,omitempty"`
	// Storage says where the credential is.
	Storage Storage `json:"storage"`
}

// Storage is a place for credentials.
type Storage string

// The places for credentials.
const (
	Keyring Storage = "keyring" // the keyring of the system
	File    Storage = "file"    // a file that only the person can read
)

// List is all profiles, sorted by name, and the name of the one that commands
// use.
type List struct {
	Current  string    `json:"current"`
	Profiles []Profile `json:"profiles"`
}

// Find returns the profile with the given name, or the current one for "".
func (l List) Find(name string) (p Profile, ok bool) {
	if name == "" {
		name = l.Current
	}
	i := slices.IndexFunc(l.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return l.Profiles[i], true
}

// Names returns the names of all profiles.
func (l List) Names() []string {
	var names []string
	for _, p := range l.Profiles {
		names = append(names, p.Name)
	}
	return names
}

// Store reads and writes the profiles in a folder, which it creates when it is
// needed.
type Store struct{ Dir string }

// Read returns all profiles. It is an empty list before the first sign-in.
func (s Store) Read() (List, error) {
	path := s.listPath()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return List{}, nil
	}
	if err != nil {
		return List{}, err
	}
	var list List
	if err := json.Unmarshal(text, &list); err != nil {
		return List{}, fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range list.Profiles {
		if err := CheckName(p.Name); err != nil { // the name becomes a file name
			return List{}, fmt.Errorf("%s: %w", path, err)
		}
	}
	return list, nil
}

// Save adds or replaces a profile, and makes it the current one.
func (s Store) Save(p Profile) error {
	if err := CheckName(p.Name); err != nil {
		return err
	}
	return s.change(func(list *List) {
		list.Profiles = slices.DeleteFunc(list.Profiles, func(other Profile) bool { return other.Name == p.Name })
		list.Profiles = append(list.Profiles, p)
		list.Current = p.Name
	})
}

// Use makes a profile the current one.
func (s Store) Use(name string) error {
	return s.change(func(list *List) { list.Current = name })
}

// Remove removes a profile. If it was the current one, the first of the others
// becomes the current one. The credential stays: see Credentials.Remove.
func (s Store) Remove(name string) error {
	return s.change(func(list *List) {
		list.Profiles = slices.DeleteFunc(list.Profiles, func(p Profile) bool { return p.Name == name })
		if list.Current == name {
			list.Current = ""
		}
		if list.Current == "" && len(list.Profiles) > 0 {
			list.Current = list.Profiles[0].Name
		}
	})
}

func (s Store) change(apply func(*List)) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	unlock, err := client.NewFileStore(s.listPath()).Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	list, err := s.Read()
	if err != nil {
		return err
	}
	apply(&list)
	slices.SortFunc(list.Profiles, func(a, b Profile) int { return strings.Compare(a.Name, b.Name) })
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(s.listPath(), append(text, '\n'))
}

func (s Store) listPath() string { return filepath.Join(s.Dir, "profiles.json") }

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName returns an error if a profile cannot have this name.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q is not a name for a profile: use up to 64 letters, digits, dots, hyphens and underscores", name)
	}
	return nil
}

// NameFor returns the usual name for the profile of a service: its host, and
// its port if it has one.
func NameFor(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "default"
	}
	name := regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(u.Host, "-")
	name = strings.TrimLeft(name, "-._")
	if CheckName(name) != nil {
		return "default"
	}
	return name
}

// replaceFile writes a file that only the person can read, under a temporary
// name first.
func replaceFile(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
