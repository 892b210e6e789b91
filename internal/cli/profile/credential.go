package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zalando/go-keyring"

	"atelier/client"
)

// keyringService is the name under which the keyring shows our entries.
const keyringService = "atelier"

// ErrNoCredential is the error for a profile that has no credential.
var ErrNoCredential = errors.New("not signed in")

// Credential authenticates a person: an access token, or the tokens of a device
// that signed in.
type Credential struct {
	AccessToken string `json:"access_token,omitempty"`

	IDToken      string `json:"id_token,omitempty"`
	RefreshToken string `json:"refresh_token,omitempty"`
	ExpiresAt    int64  `json:"expires_at,omitempty"` // Unix seconds
}

// Credentials reads and writes the credential of one profile.
type Credentials struct {
	Store   Store
	Profile string // its name
	Storage Storage
}

// Load returns the credential, or ErrNoCredential.
func (c Credentials) Load() (Credential, error) {
	var text []byte
	var err error
	switch c.Storage {
	case Keyring:
		var s string
		s, err = keyring.Get(keyringService, c.Profile)
		text = []byte(s)
		if errors.Is(err, keyring.ErrNotFound) {
			err = ErrNoCredential
		}
	default:
		text, err = os.ReadFile(c.path(".json"))
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrNoCredential
		}
	}
	if err != nil {
		return Credential{}, err
	}
	var found Credential
	if err := json.Unmarshal(text, &found); err != nil {
		return Credential{}, fmt.Errorf("the credential of profile %s: %w", c.Profile, err)
	}
	return found, nil
}

// Save replaces the credential.
func (c Credentials) Save(value Credential) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if c.Storage == Keyring {
		return keyring.Set(keyringService, c.Profile, string(text))
	}
	if err := c.makeFolder(); err != nil {
		return err
	}
	return replaceFile(c.path(".json"), append(text, '\n'))
}

// Remove removes the credential, if there is one.
func (c Credentials) Remove() error {
	if c.Storage == Keyring {
		err := keyring.Delete(keyringService, c.Profile)
		if errors.Is(err, keyring.ErrNotFound) {
			return nil
		}
		return err
	}
	err := os.Remove(c.path(".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Lock keeps other processes from refreshing the credential until the returned
// function is called.
func (c Credentials) Lock(ctx context.Context) (unlock func(), err error) {
	if err := c.makeFolder(); err != nil {
		return nil, err
	}
	return client.NewFileStore(c.path("")).Lock(ctx)
}

func (c Credentials) makeFolder() error {
	return os.MkdirAll(filepath.Dir(c.path("")), 0o700)
}

func (c Credentials) path(ending string) string {
	return filepath.Join(c.Store.Dir, "credentials", c.Profile+ending)
}

// ChooseStorage returns Keyring if the system has a keyring that works, and
// otherwise File with the reason.
func ChooseStorage() (Storage, error) {
	const probe = "atelier-probe"
	if err := keyring.Set(keyringService, probe, "works"); err != nil {
		return File, err
	}
	if err := keyring.Delete(keyringService, probe); err != nil {
		return File, err
	}
	return Keyring, nil
}
