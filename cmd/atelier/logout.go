package main

import (
	"errors"
	"fmt"

	"atelier/client"
	"atelier/internal/cli/profile"
)

type logoutCmd struct {
	jsonFlag
	Profile string `help:"Profile to sign out (default: the current one)." placeholder:"NAME" complete:"profiles" xor:"which"`
	All     bool   `help:"Sign out all profiles." xor:"which"`
}

// Run signs the device out at the service and forgets the profile. The profile
// is forgotten even if the service cannot be reached.
func (c logoutCmd) Run(p *program) error {
	list, err := p.profiles().Read()
	if err != nil {
		return err
	}
	chosen := list.Profiles
	if !c.All {
		one, err := (serviceFlags{Profile: c.Profile}).findProfile(p)
		if err != nil {
			return err
		}
		chosen = []profile.Profile{one}
	}
	names := []string{}
	for _, one := range chosen {
		if err := p.revokeDevice(one); err != nil {
			fmt.Fprintf(p.stderr, "atelier: warning: %s does not know of this: %v\n", one.URL, err)
		}
		if err := errors.Join(p.credentials(one).Remove(), p.profiles().Remove(one.Name)); err != nil {
			return err
		}
		names = append(names, one.Name)
		if !c.JSON {
			fmt.Fprintf(p.stdout, "Signed out of %s (%s).\n", one.URL, one.Name)
		}
	}
	if c.JSON {
		return p.printResult(true, map[string]any{"signed_out": names}, "")
	}
	return nil
}

// revokeDevice signs the device of a profile out at the service. Access tokens
// stay valid: other programs may use them.
func (p *program) revokeDevice(one profile.Profile) error {
	found, err := p.credentials(one).Load()
	if errors.Is(err, profile.ErrNoCredential) || err == nil && found.RefreshToken == "" {
		return nil
	}
	if err != nil {
		return err
	}
	service, err := p.newClient(target{url: one.URL, profile: &one})
	if err != nil {
		return err
	}
	err = service.Devices.Revoke(p.ctx, client.DevicesRevokeParams{})
	if client.HasCode(err, client.CodeTokenInvalid) || client.HasCode(err, client.CodeUnauthenticated) {
		return nil // it is signed out already
	}
	return err
}
