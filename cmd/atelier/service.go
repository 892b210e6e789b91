package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"atelier/client"
	"atelier/internal/cli/profile"
)

// defaultService is the address of a service that was started as the quick
// start says.
const defaultService = "http://localhost:8080"

// personalAccount is the value of --team for the personal account, where the
// profile has a team.
const personalAccount = "personal"

// The environment variables of the client commands.
const (
	tokenVariable    = "ATELIER_TOKEN" //nolint:gosec // a name
	serviceVariable  = "ATELIER_SERVICE"
	profileVariable  = "ATELIER_PROFILE"
	profilesVariable = "ATELIER_PROFILES"
)

// serviceFlags select the service, the credential and the account of a command
// that is a client of a service.
type serviceFlags struct {
	Profile string `help:"Profile to use (default: ATELIER_PROFILE, or the current one)." placeholder:"NAME"`
	Service string `help:"Address of the service (default: ATELIER_SERVICE, or the profile's)." placeholder:"URL"`
	Token   string `help:"Access token (default: ATELIER_TOKEN, or the profile's credential)." placeholder:"TOKEN"`
	Team    string `help:"Id of the team to act for, or \"personal\" (default: the profile's)." placeholder:"ID"`
}

// target is a service, and the credential with which a command calls it.
type target struct {
	url     string
	token   string           // access token; "" if the profile has the credential
	profile *profile.Profile // nil if the token was given to the command
	teamID  string
}

var errSignedOut = statusError{errors.New("you are not signed in: run atelier login, or set ATELIER_TOKEN"), exitSignedOut}

// findTarget decides which service a command calls, and with which credential:
//
//   - A token from --token or ATELIER_TOKEN goes to --service, to the service of
//     the named profile, or to the default address. It never goes to the service
//     of the current profile, because it may belong to another one.
//   - Otherwise the named profile is used, the profile with the address of
//     --service, or the current profile.
func (f serviceFlags) findTarget(p *program) (target, error) {
	list, err := p.profiles().Read()
	if err != nil {
		return target{}, err
	}
	name := cmp.Or(f.Profile, p.getenv(profileVariable))
	address := strings.TrimRight(cmp.Or(f.Service, p.getenv(serviceVariable)), "/")
	found := target{
		url:    address,
		token:  cmp.Or(f.Token, p.getenv(tokenVariable)),
		teamID: f.Team,
	}
	one, known := list.Find(name)
	switch {
	case name != "" && !known:
		return target{}, usageError{fmt.Errorf("there is no profile %q; the profiles are: %s", name, cmp.Or(strings.Join(list.Names(), ", "), "none"))}
	case name == "" && address != "":
		i := slices.IndexFunc(list.Profiles, func(p profile.Profile) bool { return p.URL == address })
		known = i >= 0
		if known && one.URL != address { // the current one is preferred among those with this address
			one = list.Profiles[i]
		}
	}
	if found.token != "" {
		if name != "" {
			found.url = cmp.Or(address, one.URL)
		}
		found.url = cmp.Or(found.url, defaultService)
	} else {
		if !known {
			return target{}, errSignedOut
		}
		if address != "" && one.URL != address {
			return target{}, usageError{fmt.Errorf("the profile %s is of %s, not of %s", one.Name, one.URL, address)}
		}
		found.profile = &one
		found.url = one.URL
		found.teamID = cmp.Or(f.Team, one.TeamID)
	}
	if found.teamID == personalAccount {
		found.teamID = ""
	}
	return found, nil
}

// connect returns a client of the service that the flags select.
func (f serviceFlags) connect(p *program) (*client.Client, error) {
	t, err := f.findTarget(p)
	if err != nil {
		return nil, err
	}
	return p.newClient(t)
}

// newClient returns a client of a target. The tokens of a profile are refreshed
// when they expire.
func (p *program) newClient(t target) (*client.Client, error) {
	o := client.Options{URL: t.url, Token: t.token, TeamID: t.teamID, UserAgent: "atelier/" + buildVersion()}
	if !p.patient {
		const hastyAttempts = 5 // about three seconds
		o.Retry.Attempts = hastyAttempts
	}
	o.Retry.OnRetry = func(err error, wait time.Duration) {
		if p.onRetry != nil {
			p.onRetry(err, wait)
		}
	}
	if t.profile != nil {
		credentials := p.credentials(*t.profile)
		found, err := credentials.Load()
		if errors.Is(err, profile.ErrNoCredential) {
			return nil, errSignedOut
		}
		if err != nil {
			return nil, err
		}
		o.Token = found.AccessToken
		if o.Token == "" {
			o.Store = profileTokens{credentials}
		}
	}
	c, err := client.New(o)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// profiles returns the store of the person's profiles.
func (p *program) profiles() profile.Store {
	return profile.Store{Dir: p.profilesFolder()}
}

func (p *program) profilesFolder() string {
	if dir := p.getenv(profilesVariable); dir != "" {
		return dir
	}
	home := p.getenv("HOME")
	switch runtime.GOOS {
	case "windows":
		return filepath.Join(p.getenv("AppData"), "atelier")
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "atelier")
	}
	return filepath.Join(cmp.Or(p.getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "atelier")
}

// credentials returns the store of a profile's credential.
func (p *program) credentials(one profile.Profile) profile.Credentials {
	return profile.Credentials{Store: p.profiles(), Profile: one.Name, Storage: one.Storage}
}

// isSignedIn reports whether a client command without flags would have a
// credential.
func (p *program) isSignedIn() bool {
	if p.getenv(tokenVariable) != "" {
		return true
	}
	list, err := p.profiles().Read()
	return err == nil && len(list.Profiles) > 0
}
