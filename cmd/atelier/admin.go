package main

import (
	"fmt"

	"atelier/internal/credential"
	"atelier/internal/person"
	"atelier/internal/sqldb"
)

type adminCmd struct {
	Person struct {
		Create personCreateCmd `cmd:"" help:"Add a person."`
	} `cmd:"" help:"Manage people."`
	Token struct {
		Create tokenCreateCmd `cmd:"" help:"Make an access token for a person and print it, once."`
	} `cmd:"" help:"Manage access tokens."`
}

type personCreateCmd struct {
	jsonFlag
	Email    string `required:"" help:"Mail address."`
	Password string `required:"" help:"Password."`
	Verified bool   `help:"The address is known to be theirs."`
}

func (c personCreateCmd) Run(p *program) error {
	db, err := p.openMigrated(p.ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	hash, err := person.HashPassword(p.ctx, c.Password)
	if err != nil {
		return err
	}
	var made person.Person
	err = db.Write(p.ctx, func(tx *sqldb.Tx) (err error) {
		made, err = person.Create(p.ctx, tx, person.Draft{Email: c.Email, EmailVerified: c.Verified, PasswordHash: hash})
		return err
	})
	if err != nil {
		return err
	}
	return p.print(c.JSON, map[string]string{"uid": made.ID}, fmt.Sprintf("made %s, uid %s", made.Email, made.ID))
}

type tokenCreateCmd struct {
	jsonFlag
	Email string `required:"" help:"Whose token it is."`
	Name  string `required:"" help:"What it is for."`
}

func (c tokenCreateCmd) Run(p *program) error {
	db, err := p.openMigrated(p.ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	var made credential.Token
	var secret string
	err = db.Write(p.ctx, func(tx *sqldb.Tx) error {
		owner, err := person.ByEmail(p.ctx, tx, c.Email)
		if err != nil {
			return err
		}
		made, secret, err = credential.Create(p.ctx, tx, owner.ID, c.Name)
		return err
	})
	if err != nil {
		return err
	}
	return p.print(c.JSON, map[string]string{"id": made.ID, "token": secret}, secret)
}
