package main

import (
	"context"
	"errors"
	"fmt"

	"atelier/internal/account/directory"
	"atelier/internal/base/fault"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// adminCmd is what the operator does by hand. It works beside a running server.
type adminCmd struct {
	Person struct {
		List    personListCmd    `cmd:"" settings:"tokens.monthly-allowance" help:"List people by address, with their balances."`
		Show    personShowCmd    `cmd:"" settings:"tokens.monthly-allowance" help:"Show a person, with balances, companies, teams and roles."`
		Create  personCreateCmd  `cmd:"" settings:"tokens.signup-grant" help:"Add a person."`
		Link    personLinkCmd    `cmd:"" settings:"listen,base-url,app-url" help:"Make a link to verify an address or to choose a new password, and print it."`
		Suspend personSuspendCmd `cmd:"" help:"Shut a person out of everything."`
		Restore personRestoreCmd `cmd:"" help:"Let a suspended person in again."`
		Export  personExportCmd  `cmd:"" settings:"blobs,s3." help:"Write all that is kept about a person into a ZIP archive."`
		Delete  personDeleteCmd  `cmd:"" help:"End a person's account for good and erase what it holds."`
	} `cmd:"" help:"Manage people."`
	Company struct {
		List   companyListCmd   `cmd:"" help:"List companies."`
		Show   companyShowCmd   `cmd:"" help:"Show a company and its roles."`
		Create companyCreateCmd `cmd:"" help:"Add a company."`
		Set    companySetCmd    `cmd:"" help:"Change a company's name, time zone or plan."`
		Add    companyAddCmd    `cmd:"" help:"Make a person a member of a company, with a role or with permissions."`
		Remove companyRemoveCmd `cmd:"" help:"Take a person out of a company and its teams."`
		Domain companyDomainCmd `cmd:"" help:"Let people with a mail domain join a company by themselves."`
	} `cmd:"" help:"Manage companies."`
	Team struct {
		List   teamListCmd   `cmd:"" settings:"tokens.monthly-allowance" help:"List teams, with their balances."`
		Show   teamShowCmd   `cmd:"" settings:"tokens.monthly-allowance" help:"Show a team, its balance and its roles."`
		Create teamCreateCmd `cmd:"" help:"Add a team to a company."`
		Add    teamAddCmd    `cmd:"" help:"Make a person a member of a team."`
		Remove teamRemoveCmd `cmd:"" help:"Take a person out of a team."`
	} `cmd:"" help:"Manage teams."`
	Budget struct {
		Set    budgetSetCmd    `cmd:"" settings:"listen,base-url,app-url" help:"Say what a team plans to spend in a month, and how it hears of that."`
		Show   budgetShowCmd   `cmd:"" help:"Show a team's budget, and what is spent of it."`
		Remove budgetRemoveCmd `cmd:"" help:"Take a team's budget away."`
	} `cmd:"" help:"Manage the budgets of teams."`
	Storage struct {
		Set  storageSetCmd  `cmd:"" settings:"storage." help:"Give an account a limit of its own on what it stores."`
		Show storageShowCmd `cmd:"" settings:"storage.,blobs" help:"Show what an account or the installation stores."`
	} `cmd:"" help:"Manage what accounts store."`
	Role struct {
		List roleListCmd `cmd:"" help:"List the roles of a company or a team."`
		Show roleShowCmd `cmd:"" help:"Show what a role allows."`
		Set  roleSetCmd  `cmd:"" help:"Change what a role of a team allows; makes the role where it is new."`
	} `cmd:"" help:"Manage the roles of companies and teams."`
	Token struct {
		Create tokenCreateCmd `cmd:"" settings:"listen,base-url,app-url" help:"Make an access token for a person and print it, once."`
		Revoke tokenRevokeCmd `cmd:"" help:"End the access token with this value, wherever it was found."`
	} `cmd:"" help:"Manage access tokens."`
	ScimToken struct {
		Create scimTokenCreateCmd `cmd:"" settings:"listen,base-url" help:"Connect a company's own directory and print its token, once; the one before is dead."`
		Delete scimTokenDeleteCmd `cmd:"" help:"End the token of a company's directory; people and teams stay."`
	} `cmd:"" help:"Manage the tokens of companies' directories (SCIM)."`
	Grant  grantCmd `cmd:"" help:"Give tokens to a person or a team."`
	Device struct {
		List   deviceListCmd   `cmd:"" help:"List devices that are signed in."`
		Show   deviceShowCmd   `cmd:"" help:"Show a device, and whose it is."`
		Revoke deviceRevokeCmd `cmd:"" help:"Sign a person out on one device, or everywhere."`
	} `cmd:"" help:"Manage devices."`
	Audit struct {
		List   auditListCmd   `cmd:"" help:"List what was done, newest first."`
		Verify auditVerifyCmd `cmd:"" help:"Prove that nothing in the audit log was changed."`
	} `cmd:"" help:"Read the audit log."`
}

type personCreateCmd struct {
	jsonFlag
	Email    string  `required:"" help:"Mail address." placeholder:"ADDRESS"`
	Password *string `help:"Password; - reads it from standard input, without the flag it is asked for." placeholder:"PASSWORD"`
	Verified bool    `help:"The address is known to be theirs."`
}

func (c personCreateCmd) Run(p *program) error {
	if err := p.findDatabase(); err != nil { // before anybody types
		return err
	}
	password, err := p.readPassword(c.Password)
	if err != nil {
		return err
	}
	return p.withPeople(func(ctx context.Context, pp *people) error {
		made, err := pp.accounts.SignUp.CreatePerson(ctx, c.Email, password, c.Verified)
		if err != nil {
			return err
		}
		if weak, ok := errors.AsType[*fault.Error](person.CheckNewPassword(password, c.Email)); ok {
			fmt.Fprintln(p.stderr, "atelier: warning: people may not choose such a password themselves:", weak.Message)
		}
		return p.print(c.JSON, map[string]string{"uid": made.ID}, fmt.Sprintf("made %s, uid %s", made.Email, made.ID))
	})
}

type personLinkCmd struct {
	jsonFlag
	Email string `required:"" help:"Whose link it is." placeholder:"ADDRESS"`
	Kind  string `help:"What it is for: verify or reset." enum:"verify,reset" default:"reset"`
}

func (c personLinkCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		make := pp.accounts.SignIn.OperatorResetLink
		if c.Kind == string(person.VerifyLink) {
			make = pp.accounts.Verification.OperatorLink
		}
		link, err := make(ctx, c.Email)
		if err != nil {
			return err
		}
		return p.print(c.JSON, map[string]string{"url": link}, link)
	})
}

type personSuspendCmd struct {
	jsonFlag
	Email string `required:"" help:"Whom." placeholder:"ADDRESS"`
}

func (c personSuspendCmd) Run(p *program) error { return p.suspend(c.JSON, c.Email, true) }

type personRestoreCmd struct {
	jsonFlag
	Email string `required:"" help:"Whom." placeholder:"ADDRESS"`
}

func (c personRestoreCmd) Run(p *program) error { return p.suspend(c.JSON, c.Email, false) }

func (p *program) suspend(asJSON bool, email string, suspended bool) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if err := pp.accounts.SignIn.SetSuspended(ctx, email, suspended); err != nil {
			return err
		}
		return p.print(asJSON, struct{}{}, "done")
	})
}

type companyCreateCmd struct {
	jsonFlag
	Name string `required:"" help:"Its name." placeholder:"NAME"`
	Plan string `required:"" help:"TEAM or ENTERPRISE." enum:"TEAM,ENTERPRISE" placeholder:"PLAN"`
}

func (c companyCreateCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		made, err := pp.directory.CreateCompany(ctx, principal.Operator(), c.Name, company.Plan(c.Plan))
		if err != nil {
			return err
		}
		return p.print(c.JSON, map[string]string{"id": made.ID}, fmt.Sprintf("made %s, id %s", made.Name, made.ID))
	})
}

type companySetCmd struct {
	jsonFlag
	Company  string        `required:"" help:"The company's id." placeholder:"ID"`
	Name     *string       `help:"Its name." placeholder:"NAME"`
	TimeZone *string       `help:"By which clock it counts its days, such as Europe/Paris." placeholder:"ZONE"`
	Plan     *company.Plan `help:"TEAM or ENTERPRISE. What only the old plan allowed ends at once." placeholder:"PLAN"`
}

func (c companySetCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		m, err := pp.directory.ChangeCompany(ctx, principal.Operator(), c.Company, directory.CompanyChange{Name: c.Name, Zone: c.TimeZone, Plan: c.Plan})
		if err != nil {
			return err
		}
		is := m.Company
		return p.print(c.JSON, map[string]string{"id": is.ID, "name": is.Name, "plan": string(is.Plan), "time_zone": is.Zone},
			fmt.Sprintf("%s, plan %s, time zone %s", is.Name, is.Plan, is.Zone))
	})
}

type companyAddCmd struct {
	jsonFlag
	Company    string               `required:"" help:"The company's id." placeholder:"ID"`
	Email      string               `required:"" help:"Whom." placeholder:"ADDRESS"`
	Permission []company.Permission `help:"What they may do; replaces what they could before: ${companyPermissions}." placeholder:"P" xor:"what"`
	Role       string               `help:"A role of the company instead: admin may do everything, member nothing special." placeholder:"NAME" xor:"what"`
}

func (c companyAddCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if c.Role != "" {
			who, err := pp.byEmail(ctx, c.Email)
			if err != nil {
				return err
			}
			if _, err := pp.directory.SetMember(ctx, principal.Operator(), c.Company, who.ID, c.Role); err != nil {
				return err
			}
			return p.print(c.JSON, map[string]string{"uid": who.ID}, "uid "+who.ID)
		}
		uid, err := pp.directory.SetMemberPermissions(ctx, principal.Operator(), c.Company, c.Email, c.Permission)
		if err != nil {
			return err
		}
		return p.print(c.JSON, map[string]string{"uid": uid}, "uid "+uid)
	})
}

type companyRemoveCmd struct {
	jsonFlag
	Company string `required:"" help:"The company's id." placeholder:"ID"`
	Email   string `required:"" help:"Whom." placeholder:"ADDRESS"`
}

func (c companyRemoveCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if err := pp.directory.RemoveMemberByEmail(ctx, principal.Operator(), c.Company, c.Email); err != nil {
			return err
		}
		return p.print(c.JSON, struct{}{}, "done")
	})
}

type companyDomainCmd struct {
	jsonFlag
	Company string `required:"" help:"The company's id." placeholder:"ID"`
	Domain  string `required:"" help:"The mail domain, which the operator vouches for." placeholder:"DOMAIN"`
	Team    string `help:"The team that people join; none for the company alone." placeholder:"ID"`
	Role    string `help:"Their role in the team." default:"member" placeholder:"NAME"`
}

func (c companyDomainCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		role := c.Role
		if c.Team == "" {
			role = ""
		}
		if _, err := pp.directory.AddDomain(ctx, principal.Operator(), c.Company, c.Domain, c.Team, role); err != nil {
			return err
		}
		if _, err := pp.directory.VerifyDomain(ctx, principal.Operator(), c.Company, c.Domain, true); err != nil {
			return err
		}
		return p.print(c.JSON, map[string]string{"domain": c.Domain}, "people with addresses in "+c.Domain+" join by themselves")
	})
}

type teamCreateCmd struct {
	jsonFlag
	Company string `required:"" help:"The company's id." placeholder:"ID"`
	Name    string `required:"" help:"Its name." placeholder:"NAME"`
}

func (c teamCreateCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		made, err := pp.directory.CreateTeam(ctx, principal.Operator(), c.Company, c.Name)
		if err != nil {
			return err
		}
		return p.print(c.JSON, map[string]string{"id": made.ID}, fmt.Sprintf("made %s, id %s", made.Name, made.ID))
	})
}

type teamAddCmd struct {
	jsonFlag
	Team  string `required:"" help:"The team's id." placeholder:"ID"`
	Email string `required:"" help:"Whom." placeholder:"ADDRESS"`
	Role  string `help:"Their role." default:"member" placeholder:"NAME"`
}

func (c teamAddCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		uid, err := pp.directory.AddTeamMember(ctx, principal.Operator(), c.Team, c.Email, c.Role)
		if err != nil {
			return err
		}
		return p.print(c.JSON, map[string]string{"uid": uid}, "uid "+uid)
	})
}

type teamRemoveCmd struct {
	jsonFlag
	Team  string `required:"" help:"The team's id." placeholder:"ID"`
	Email string `required:"" help:"Whom." placeholder:"ADDRESS"`
}

func (c teamRemoveCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if err := pp.directory.RemoveTeamMemberByEmail(ctx, principal.Operator(), c.Team, c.Email); err != nil {
			return err
		}
		return p.print(c.JSON, struct{}{}, "done")
	})
}

type roleSetCmd struct {
	jsonFlag
	Team       string                      `required:"" help:"The team's id." placeholder:"ID"`
	Name       string                      `required:"" help:"The role's name." placeholder:"NAME"`
	Permission map[company.Permission]bool `help:"What it allows: ${teamPermissions}." placeholder:"KEY=true|false"`
}

func (c roleSetCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		role, err := pp.directory.SetTeamRolePermissions(ctx, principal.Operator(), c.Team, c.Name, c.Permission)
		if err != nil {
			return err
		}
		return p.print(c.JSON, map[string]string{"name": role.Name}, "done")
	})
}
