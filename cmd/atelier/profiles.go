package main

import (
	"fmt"

	"atelier/internal/cli/profile"
)

type profilesCmd struct {
	List profilesListCmd `cmd:"" default:"withargs" help:"List the services you are signed in to."`
	Use  profilesUseCmd  `cmd:"" help:"Choose the profile that commands use."`
	Team profilesTeamCmd `cmd:"" help:"Choose the team that a profile acts for."`
}

type profilesListCmd struct{ jsonFlag }

func (c profilesListCmd) Run(p *program) error {
	list, err := p.profiles().Read()
	if err != nil {
		return err
	}
	if c.JSON {
		rows := list.Profiles
		if rows == nil {
			rows = []profile.Profile{}
		}
		return p.printResult(true, map[string]any{"current": list.Current, "data": rows}, "")
	}
	table := [][]string{{"PROFILE", "SERVICE", "PERSON", "TEAM", "CREDENTIAL"}}
	for _, one := range list.Profiles {
		name := one.Name
		if name == list.Current {
			name += " (used)"
		}
		table = append(table, cleanCells([]string{name, one.URL, showOptional(&one.Email), showOptional(&one.TeamID), string(one.Storage)}))
	}
	return p.printList(table)
}

type profilesUseCmd struct {
	jsonFlag
	Name string `arg:"" help:"Name of the profile." complete:"profiles"`
}

func (c profilesUseCmd) Run(p *program) error {
	one, err := (serviceFlags{Profile: c.Name}).findProfile(p)
	if err != nil {
		return err
	}
	if err := p.profiles().Use(one.Name); err != nil {
		return err
	}
	return p.printResult(c.JSON, one, fmt.Sprintf("commands use %s (%s)", one.Name, one.URL))
}

type profilesTeamCmd struct {
	jsonFlag
	Team    string `arg:"" help:"Id of the team, or \"personal\"." complete:"teams"`
	Profile string `help:"Profile to change (default: the current one)." placeholder:"NAME" complete:"profiles"`
}

func (c profilesTeamCmd) Run(p *program) error {
	one, err := (serviceFlags{Profile: c.Profile}).findProfile(p)
	if err != nil {
		return err
	}
	list, err := p.profiles().Read()
	if err != nil {
		return err
	}
	one.TeamID = c.Team
	if c.Team == personalAccount {
		one.TeamID = ""
	}
	if err := p.profiles().Save(one); err != nil {
		return err
	}
	if list.Current != one.Name { // Save makes a profile the current one
		if err := p.profiles().Use(list.Current); err != nil {
			return err
		}
	}
	return p.printResult(c.JSON, one, fmt.Sprintf("%s acts for %s", one.Name, c.Team))
}

// findProfile returns the profile that the flags name, or the current one.
func (f serviceFlags) findProfile(p *program) (profile.Profile, error) {
	list, err := p.profiles().Read()
	if err != nil {
		return profile.Profile{}, err
	}
	name := f.Profile
	if name == "" {
		name = p.getenv(profileVariable)
	}
	one, ok := list.Find(name)
	switch {
	case ok:
		return one, nil
	case name == "":
		return profile.Profile{}, errSignedOut
	}
	return profile.Profile{}, usageError{fmt.Errorf("there is no profile %q", name)}
}
