package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"atelier/client"
	"atelier/internal/cli/profile"
)

// pluginKind is the name of the command line on the page where a person
// approves the sign-in, and in the rules of team roles.
const pluginKind = "cli"

type loginCmd struct {
	jsonFlag
	URL       string `arg:"" optional:"" help:"Address of the service (default: ATELIER_SERVICE, the profile's, or http://localhost:8080)."`
	Profile   string `help:"Name of the profile (default: the host of the service)." placeholder:"NAME" complete:"profiles"`
	Token     bool   `help:"Read an access token from standard input instead of opening a browser."`
	Team      string `help:"Id of the team that commands act for (default: your personal account)." placeholder:"ID"`
	Browser   bool   `help:"Open a browser." default:"true" negatable:""`
	Storage   string `help:"Place of the credential: keyring, file, or auto (the keyring if there is one)." enum:"auto,keyring,file" default:"auto" placeholder:"PLACE"`
	Overwrite bool   `help:"Replace a profile of the same name that is of another service."`
}

// Run signs a person in and stores the credential in a profile, which becomes
// the current one.
func (c loginCmd) Run(p *program) error {
	one, err := c.newProfile(p)
	if err != nil {
		return err
	}
	var me *client.Identity
	var credential profile.Credential
	if c.Token {
		credential, me, err = c.readToken(p, one)
	} else {
		credential, me, err = c.approveDevice(p, one)
	}
	if err != nil {
		return err
	}
	one.Email = me.User.Email
	if err := c.checkTeam(one.TeamID, me); err != nil {
		return err
	}
	c.revokeReplaced(p, one.Name)
	if err := p.credentials(one).Save(credential); err != nil {
		return err
	}
	if err := p.profiles().Save(one); err != nil {
		return err
	}
	place := "the keyring of this system"
	if one.Storage == profile.File {
		place = showPath(p.getenv("HOME"), p.profilesFolder())
	}
	return p.printResult(c.JSON, one, fmt.Sprintf("Signed in to %s as %s.\nThe profile is called %s; its credential is in %s.",
		one.URL, cleanText(one.Email), one.Name, place))
}

// showPath shortens the path of a file below the person's home folder.
func showPath(home, path string) string {
	below, ok := strings.CutPrefix(path, home+string(filepath.Separator))
	if home == "" || !ok {
		return path
	}
	return filepath.Join("~", below)
}

// newProfile decides the address, name and storage of the profile.
func (c loginCmd) newProfile(p *program) (profile.Profile, error) {
	list, err := p.profiles().Read()
	if err != nil {
		return profile.Profile{}, err
	}
	old, known := list.Find(c.Profile)
	known = known && c.Profile != ""
	address := cmp.Or(c.URL, p.getenv(serviceVariable))
	if address == "" && known {
		address = old.URL
	}
	address = strings.TrimRight(cmp.Or(address, defaultService), "/")
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return profile.Profile{}, usageError{fmt.Errorf("%q is not the address of a service, such as https://atelier.example", address)}
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		fmt.Fprintf(p.stderr, "atelier: warning: %s is not encrypted: others on the network can read your credential\n", address)
	}
	one := profile.Profile{Name: cmp.Or(c.Profile, profile.NameFor(address)), URL: address, TeamID: c.Team, Storage: profile.Storage(c.Storage)}
	if err := profile.CheckName(one.Name); err != nil {
		return one, usageError{err}
	}
	if before, ok := list.Find(one.Name); ok && before.URL != one.URL && !c.Overwrite {
		return one, usageError{fmt.Errorf("the profile %s is of %s: choose another name with --profile, or replace it with --overwrite", one.Name, before.URL)}
	}
	if c.Storage == "auto" {
		one.Storage, _ = profile.ChooseStorage() // without a keyring: a file
	}
	return one, nil
}

func isLoopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || address != nil && address.IsLoopback()
}

// readToken reads an access token from standard input, and checks that the
// service accepts it.
func (c loginCmd) readToken(p *program, one profile.Profile) (profile.Credential, *client.Identity, error) {
	const maxToken = 4096
	line, err := bufio.NewReader(io.LimitReader(p.stdin, maxToken)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return profile.Credential{}, nil, err
	}
	token := strings.TrimSpace(line)
	if token == "" {
		return profile.Credential{}, nil, usageError{errors.New("--token: standard input has no token")}
	}
	service, err := p.newClient(target{url: one.URL, token: token})
	if err != nil {
		return profile.Credential{}, nil, err
	}
	me, err := service.Me.Get(p.ctx)
	return profile.Credential{AccessToken: token}, me, err
}

// approveDevice lets the person approve the sign-in in a browser.
func (c loginCmd) approveDevice(p *program, one profile.Profile) (profile.Credential, *client.Identity, error) {
	service, err := p.newClient(target{url: one.URL})
	if err != nil {
		return profile.Credential{}, nil, err
	}
	login, err := service.StartDeviceLogin(p.ctx, pluginKind)
	if err != nil {
		return profile.Credential{}, nil, err
	}
	address, err := url.Parse(login.VerificationURL)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" { // it is passed to another program
		return profile.Credential{}, nil, fmt.Errorf("the service sent an invalid address: %q", login.VerificationURL)
	}
	palette := p.palette(p.stderr)
	fmt.Fprintf(p.stderr, "Open %s\nand check that the page shows the code %s\n", address, palette.Bold(cleanText(login.UserCode)))
	if c.Browser && openBrowser(p, address.String()) {
		fmt.Fprintln(p.stderr, "A browser was opened.")
	}
	fmt.Fprintln(p.stderr, "Waiting for your approval…")
	result, err := login.Wait(p.ctx)
	if errors.Is(err, client.ErrLoginExpired) {
		err = statusError{err, exitSignedOut}
	}
	if err != nil {
		return profile.Credential{}, nil, err
	}
	t := result.Tokens
	me := &client.Identity{User: result.User, Accounts: result.Accounts}
	return profile.Credential{IDToken: t.IDToken, RefreshToken: t.RefreshToken, ExpiresAt: t.ExpiresAt}, me, nil
}

// checkTeam returns an error if the person is not a member of the team.
func (c loginCmd) checkTeam(id string, me *client.Identity) error {
	if id == "" {
		return nil
	}
	var known []string
	for _, a := range me.Accounts {
		if a.ID == id {
			return nil
		}
		if a.Kind != "PERSONAL" {
			known = append(known, fmt.Sprintf("%s (%s)", a.ID, cleanText(a.Label)))
		}
	}
	return usageError{fmt.Errorf("--team: you are not a member of %q; your teams are: %s", id, cmp.Or(strings.Join(known, ", "), "none"))}
}

// revokeReplaced signs out the device of a profile that is replaced. A failure
// is not reported: the old sign-in stays in the list of devices then.
func (c loginCmd) revokeReplaced(p *program, name string) {
	list, err := p.profiles().Read()
	if err != nil {
		return
	}
	if old, ok := list.Find(name); ok {
		if p.revokeDevice(old) == nil {
			p.credentials(old).Remove() //nolint:errcheck // it is replaced next
		}
	}
}

// openBrowser opens an address in a browser, and reports whether there is one:
// the program that BROWSER names, or the system's. Without a screen there is
// none, because a browser in the terminal would hide the code.
func openBrowser(p *program, address string) bool {
	name := p.getenv("BROWSER")
	var args []string
	switch {
	case name != "":
	case runtime.GOOS == "darwin":
		name = "open"
	case runtime.GOOS == "windows":
		name = "rundll32"
		args = []string{"url.dll,FileProtocolHandler"}
	case p.getenv("DISPLAY") != "" || p.getenv("WAYLAND_DISPLAY") != "":
		name = "xdg-open"
	default:
		return false
	}
	command := exec.Command(name, append(args, address)...) //nolint:gosec // the person's own browser
	if command.Start() != nil {
		return false
	}
	go command.Wait() //nolint:errcheck // nobody waits for a browser
	return true
}
