package main

import (
	"fmt"

	"atelier/client"
)

type tokensCmd struct {
	List       tokensListCmd       `cmd:"" default:"withargs" help:"List your access tokens."`
	Create     tokensCreateCmd     `cmd:"" help:"Create an access token; it is printed once."`
	Regenerate tokensRegenerateCmd `cmd:"" help:"Replace the secret of an access token."`
	Delete     tokensDeleteCmd     `cmd:"" help:"Delete an access token; it stops working at once."`
}

type tokensListCmd struct {
	jsonFlag
	serviceFlags
	pageFlags
}

func (c tokensListCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	return remoteList[client.AccessToken]{
		columns: []string{"NAME", "TOKEN", "CREATED", "LAST USED", "ID"},
		read: func(cursor string, limit int64) ([]client.AccessToken, *string, error) {
			page, err := service.AccessTokens.List(p.ctx, client.AccessTokensListParams{Cursor: cursor, Limit: limit})
			if err != nil {
				return nil, nil, err
			}
			return page.Data, page.NextCursor, nil
		},
		cells: func(t client.AccessToken) []string {
			return []string{t.Name, t.Hint, showTime(t.Created), showOptionalTime(t.LastUsed), t.ID}
		},
	}.printPages(p, c.JSON, c.pageFlags)
}

type tokensCreateCmd struct {
	jsonFlag
	serviceFlags
	Name string `arg:"" help:"Name of the token, for your lists."`
}

func (c tokensCreateCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	made, err := service.AccessTokens.Create(p.ctx, client.AccessTokenDraft{Name: c.Name})
	if err != nil {
		return err
	}
	return p.printToken(c.JSON, made)
}

// printToken prints an access token that is shown only once.
func (p *program) printToken(asJSON bool, t *client.AccessToken) error {
	if asJSON {
		return p.printResult(true, t, "")
	}
	fmt.Fprintln(p.stderr, "Keep this token: it is not shown again.")
	return p.printResult(false, nil, showOptional(t.Token))
}

// tokenFlags are the flags of commands about one access token.
type tokenFlags struct {
	jsonFlag
	serviceFlags
	ID string `arg:"" help:"Id of the token." complete:"tokens"`
}

type tokensRegenerateCmd struct{ tokenFlags }

func (c tokensRegenerateCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	made, err := service.AccessTokens.Regenerate(p.ctx, c.ID)
	if err != nil {
		return err
	}
	return p.printToken(c.JSON, made)
}

type tokensDeleteCmd struct{ tokenFlags }

func (c tokensDeleteCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	if err := service.AccessTokens.Delete(p.ctx, c.ID); err != nil {
		return err
	}
	return p.printResult(c.JSON, map[string]string{"id": c.ID}, "deleted "+c.ID)
}
