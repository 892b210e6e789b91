package main

import (
	"context"
	"errors"
	"fmt"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/fault"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// adminCmd contains the operator's commands. They can run while a server is
// running.
type adminCmd struct {
	Person struct {
		List    personListCmd    `cmd:"" settings:"tokens.monthly-allowance" help:"List people by e-mail address, with their balances."`
		Show    personShowCmd    `cmd:"" settings:"tokens.monthly-allowance" help:"Show a person, with balances, companies, teams and roles."`
		Create  personCreateCmd  `cmd:"" settings:"tokens.signup-grant" help:"Add a person."`
		Link    personLinkCmd    `cmd:"" settings:"listen,base-url,app-url" help:"Print a link that verifies an e-mail address or resets a password."`
		Suspend personSuspendCmd `cmd:"" help:"Suspend a person: nothing they hold works any more."`
		Restore personRestoreCmd `cmd:"" help:"Lift a suspension."`
		Export  personExportCmd  `cmd:"" settings:"blobs,s3." help:"Export all data of a person into a ZIP archive."`
		Delete  personDeleteCmd  `cmd:"" help:"Delete a person's account for good and erase its data."`
	} `cmd:"" help:"Manage people."`
	Company struct {
		List   companyListCmd   `cmd:"" help:"List companies."`
		Show   companyShowCmd   `cmd:"" help:"Show a company and its roles."`
		Create companyCreateCmd `cmd:"" help:"Add a company."`
		Set    companySetCmd    `cmd:"" help:"Change a company's name, time zone or plan."`
		Add    companyAddCmd    `cmd:"" help:"Make a person a member of a company, with a role or with permissions."`
		Remove companyRemoveCmd `cmd:"" help:"Remove a person from a company and its teams."`
		Domain companyDomainCmd `cmd:"" help:"Let people with an e-mail domain join a company by themselves."`
	} `cmd:"" help:"Manage companies."`
	Team struct {
		List   teamListCmd   `cmd:"" settings:"tokens.monthly-allowance" help:"List teams, with their balances."`
		Show   teamShowCmd   `cmd:"" settings:"tokens.monthly-allowance" help:"Show a team, its balance and its roles."`
		Create teamCreateCmd `cmd:"" help:"Add a team to a company."`
		Add    teamAddCmd    `cmd:"" help:"Make a person a member of a team."`
		Remove teamRemoveCmd `cmd:"" help:"Remove a person from a team."`
	} `cmd:"" help:"Manage teams."`
	Budget struct {
		Set    budgetSetCmd    `cmd:"" settings:"listen,base-url,app-url" help:"Set a team's monthly budget and its alerts."`
		Show   budgetShowCmd   `cmd:"" help:"Show a team's budget and how much of it is spent."`
		Remove budgetRemoveCmd `cmd:"" help:"Remove a team's budget."`
	} `cmd:"" help:"Manage the budgets of teams."`
	Storage struct {
		Set  storageSetCmd  `cmd:"" settings:"storage." help:"Set an account's own storage limit."`
		Show storageShowCmd `cmd:"" settings:"storage.,blobs" help:"Show the storage used by an account or by the installation."`
	} `cmd:"" help:"Manage the storage of accounts."`
	Role struct {
		List roleListCmd `cmd:"" help:"List the roles of a company or a team."`
		Show roleShowCmd `cmd:"" help:"Show a role's permissions."`
		Set  roleSetCmd  `cmd:"" help:"Set the permissions of a team role; creates the role if it does not exist."`
	} `cmd:"" help:"Manage the roles of companies and teams."`
	Token struct {
		Create tokenCreateCmd `cmd:"" settings:"listen,base-url,app-url" help:"Create an access token for a person and print it once."`
		Revoke tokenRevokeCmd `cmd:"" help:"Revoke an access token by its value, for example one that leaked."`
	} `cmd:"" help:"Manage access tokens."`
	ScimToken struct {
		Create scimTokenCreateCmd `cmd:"" settings:"listen,base-url" help:"Create the token for a company's SCIM provisioning and print it once; the old token stops working."`
		Delete scimTokenDeleteCmd `cmd:"" help:"Delete a company's SCIM token; people and teams stay."`
	} `cmd:"" help:"Manage the SCIM tokens of companies."`
	Grant  grantCmd `cmd:"" help:"Give tokens to a person or a team."`
	Device struct {
		List   deviceListCmd   `cmd:"" help:"List devices that are signed in."`
		Show   deviceShowCmd   `cmd:"" help:"Show a device and its person."`
		Revoke deviceRevokeCmd `cmd:"" help:"Sign a person out on one device, or everywhere."`
	} `cmd:"" help:"Manage devices."`
	Audit struct {
		List   auditListCmd   `cmd:"" help:"List audit entries, newest first."`
		Verify auditVerifyCmd `cmd:"" help:"Verify that the audit log was not changed."`
	} `cmd:"" help:"Read the audit log."`
}

type personCreateCmd struct {
	jsonFlag
	Email    string  `required:"" help:"E-mail address." placeholder:"ADDRESS"`
	Password *string `help:"Password; - reads it from standard input. Without the flag it is prompted for." placeholder:"PASSWORD"`
	Verified bool    `help:"Mark the e-mail address as verified."`
}

func (c personCreateCmd) Run(p *program) error {
	if err := p.findDatabase(); err != nil { // check this before prompting for the password
		return err
	}
	password, err := p.readPassword(c.Password)
	if err != nil {
		return err
	}
	return p.withPeople(func(ctx context.Context, pp *people) error {
		hash, err := person.HashPassword(ctx, password)
		if err != nil {
			return err
		}
		made, err := pp.accounts.SignUp.CreatePerson(ctx, person.Draft{Email: c.Email, EmailVerified: c.Verified, PasswordHash: hash})
		if err != nil {
			return err
		}
		if weak, ok := errors.AsType[*fault.Error](person.CheckNewPassword(password, c.Email)); ok {
			fmt.Fprintln(p.stderr, "atelier: warning: this password would be refused at sign-up:", weak.Message)
		}
		return p.printResult(c.JSON, map[string]string{"uid": made.ID}, fmt.Sprintf("created %s, uid %s", made.Email, made.ID))
	})
}

type personLinkCmd struct {
	jsonFlag
	Email string `required:"" help:"The person's e-mail address." placeholder:"ADDRESS"`
	Kind  string `help:"Purpose of the link: verify or reset." enum:"verify,reset" default:"reset"`
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
		return p.printResult(c.JSON, map[string]string{"url": link}, link)
	})
}

type personSuspendCmd struct {
	jsonFlag
	Email string `required:"" help:"The person's e-mail address." placeholder:"ADDRESS"`
}

func (c personSuspendCmd) Run(p *program) error { return p.setSuspended(c.JSON, c.Email, true) }

type personRestoreCmd struct {
	jsonFlag
	Email string `required:"" help:"The person's e-mail address." placeholder:"ADDRESS"`
}

func (c personRestoreCmd) Run(p *program) error { return p.setSuspended(c.JSON, c.Email, false) }

func (p *program) setSuspended(asJSON bool, email string, suspended bool) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if err := pp.accounts.SignIn.SetSuspended(ctx, email, suspended); err != nil {
			return err
		}
		return p.printResult(asJSON, struct{}{}, "done")
	})
}

type companyCreateCmd struct {
	jsonFlag
	Name string `required:"" help:"Its name." placeholder:"NAME"`
	Plan string `required:"" help:"TEAM or ENTERPRISE." enum:"TEAM,ENTERPRISE" placeholder:"PLAN"`
}

func (c companyCreateCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		made, err := pp.companies.CreateCompany(ctx, principal.Operator(), c.Name, company.Plan(c.Plan))
		if err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"id": made.ID}, fmt.Sprintf("created %s, id %s", made.Name, made.ID))
	})
}

type companySetCmd struct {
	jsonFlag
	Company  string        `required:"" help:"The company's id." placeholder:"ID"`
	Name     *string       `help:"Its name." placeholder:"NAME"`
	TimeZone *string       `help:"Time zone of its days and months, such as Europe/Paris." placeholder:"ZONE"`
	Plan     *company.Plan `help:"TEAM or ENTERPRISE. Features of the old plan only end at once." placeholder:"PLAN"`
}

func (c companySetCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		m, err := pp.companies.ChangeCompany(ctx, principal.Operator(), c.Company, companyadmin.CompanyChange{Name: c.Name, Zone: c.TimeZone, Plan: c.Plan})
		if err != nil {
			return err
		}
		is := m.Company
		return p.printResult(c.JSON, map[string]string{"id": is.ID, "name": is.Name, "plan": string(is.Plan), "time_zone": is.Zone},
			fmt.Sprintf("%s, plan %s, time zone %s", is.Name, is.Plan, is.Zone))
	})
}

type companyAddCmd struct {
	jsonFlag
	Company    string               `required:"" help:"The company's id." placeholder:"ID"`
	Email      string               `required:"" help:"The person's e-mail address." placeholder:"ADDRESS"`
	Permission []company.Permission `help:"Permissions, replacing the present ones: ${companyPermissions}." placeholder:"P" xor:"what"`
	Role       string               `help:"A role of the company instead: admin has all permissions, member none." placeholder:"NAME" xor:"what"`
}

func (c companyAddCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if c.Role != "" {
			who, err := pp.byEmail(ctx, c.Email)
			if err != nil {
				return err
			}
			if _, err := pp.companies.Members.SetMember(ctx, principal.Operator(), c.Company, who.ID, c.Role); err != nil {
				return err
			}
			return p.printResult(c.JSON, map[string]string{"uid": who.ID}, "uid "+who.ID)
		}
		uid, err := pp.companies.Members.SetMemberPermissions(ctx, principal.Operator(), c.Company, c.Email, c.Permission)
		if err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"uid": uid}, "uid "+uid)
	})
}

type companyRemoveCmd struct {
	jsonFlag
	Company string `required:"" help:"The company's id." placeholder:"ID"`
	Email   string `required:"" help:"The person's e-mail address." placeholder:"ADDRESS"`
}

func (c companyRemoveCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if err := pp.companies.Members.RemoveMemberByEmail(ctx, principal.Operator(), c.Company, c.Email); err != nil {
			return err
		}
		return p.printResult(c.JSON, struct{}{}, "done")
	})
}

type companyDomainCmd struct {
	jsonFlag
	Company string `required:"" help:"The company's id." placeholder:"ID"`
	Domain  string `required:"" help:"The e-mail domain. It counts as verified." placeholder:"DOMAIN"`
	Team    string `help:"The team that people join (default: the company only)." placeholder:"ID"`
	Role    string `help:"Their role in the team." default:"member" placeholder:"NAME"`
}

func (c companyDomainCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		role := c.Role
		if c.Team == "" {
			role = ""
		}
		if _, err := pp.companies.Domains.AddDomain(ctx, principal.Operator(), c.Company, c.Domain, c.Team, role); err != nil {
			return err
		}
		if _, err := pp.companies.Domains.VerifyDomain(ctx, principal.Operator(), c.Company, c.Domain, true); err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"domain": c.Domain}, "people with addresses in "+c.Domain+" now join automatically")
	})
}

type teamCreateCmd struct {
	jsonFlag
	Company string `required:"" help:"The company's id." placeholder:"ID"`
	Name    string `required:"" help:"Its name." placeholder:"NAME"`
}

func (c teamCreateCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		made, err := pp.companies.Teams.CreateTeam(ctx, principal.Operator(), c.Company, c.Name)
		if err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"id": made.ID}, fmt.Sprintf("created %s, id %s", made.Name, made.ID))
	})
}

type teamAddCmd struct {
	jsonFlag
	Team  string `required:"" help:"The team's id." placeholder:"ID"`
	Email string `required:"" help:"The person's e-mail address." placeholder:"ADDRESS"`
	Role  string `help:"Their role." default:"member" placeholder:"NAME"`
}

func (c teamAddCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		uid, err := pp.companies.TeamMembers.AddTeamMember(ctx, principal.Operator(), c.Team, c.Email, c.Role)
		if err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"uid": uid}, "uid "+uid)
	})
}

type teamRemoveCmd struct {
	jsonFlag
	Team  string `required:"" help:"The team's id." placeholder:"ID"`
	Email string `required:"" help:"The person's e-mail address." placeholder:"ADDRESS"`
}

func (c teamRemoveCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if err := pp.companies.TeamMembers.RemoveTeamMemberByEmail(ctx, principal.Operator(), c.Team, c.Email); err != nil {
			return err
		}
		return p.printResult(c.JSON, struct{}{}, "done")
	})
}

type roleSetCmd struct {
	jsonFlag
	Team       string                      `required:"" help:"The team's id." placeholder:"ID"`
	Name       string                      `required:"" help:"The role's name." placeholder:"NAME"`
	Permission map[company.Permission]bool `help:"Permissions to grant or withdraw: ${teamPermissions}." placeholder:"KEY=true|false"`
}

func (c roleSetCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		role, err := pp.companies.TeamRoles.SetTeamRolePermissions(ctx, principal.Operator(), c.Team, c.Name, c.Permission)
		if err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"name": role.Name}, "done")
	})
}
