package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
	"atelier/internal/web/scim"
)

type tokenCreateCmd struct {
	jsonFlag
	Email   string `required:"" help:"The person's e-mail address." placeholder:"ADDRESS"`
	Name    string `required:"" help:"A name that says its purpose." placeholder:"NAME"`
	Company string `help:"Create a company token for the teams of this company." placeholder:"ID"`
}

func (c tokenCreateCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		made, secret, err := pp.accounts.AccessTokens.CreateTokenForEmail(ctx, c.Email, c.Company, c.Name)
		if err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"id": made.ID, "token": secret}, secret)
	})
}

type tokenRevokeCmd struct {
	jsonFlag
	Token string `arg:"" help:"The token itself, or - to read it from standard input."`
}

func (c tokenRevokeCmd) Run(p *program) error {
	if c.Token == fromInput {
		line, err := p.readLine()
		if err != nil {
			return err
		}
		c.Token = line
	}
	return p.withPeople(func(ctx context.Context, pp *people) error {
		ended, err := pp.accounts.AccessTokens.DeleteTokenValue(ctx, c.Token)
		if err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"id": ended.ID, "uid": ended.PersonID}, fmt.Sprintf("revoked %q, id %s", ended.Name, ended.ID))
	})
}

type scimTokenCreateCmd struct {
	jsonFlag
	Company string `required:"" help:"The company's id." placeholder:"ID"`
}

func (c scimTokenCreateCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		_, secret, err := pp.companies.SCIMConnections.ConnectProvider(ctx, principal.Operator(), c.Company)
		if err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"url": p.cfg.BaseURL + scim.Prefix, "token": secret}, secret)
	})
}

type scimTokenDeleteCmd struct {
	jsonFlag
	Company string `required:"" help:"The company's id." placeholder:"ID"`
}

func (c scimTokenDeleteCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if err := pp.companies.SCIMConnections.DisconnectProvider(ctx, principal.Operator(), c.Company); err != nil {
			return err
		}
		return p.printResult(c.JSON, struct{}{}, "done")
	})
}

type grantCmd struct {
	jsonFlag
	Email  string `help:"The personal account of this person." xor:"account" required:"" placeholder:"ADDRESS"`
	Team   string `help:"The account of this team." xor:"account" required:"" placeholder:"ID"`
	Tokens int64  `required:"" help:"Number of tokens; a negative number takes tokens back." placeholder:"N"`
	Note   string `help:"Reason, kept with the grant." placeholder:"TEXT"`
}

func (c grantCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		balance, err := pp.accounts.Grants.GrantByOperator(ctx, c.Email, c.Team, c.Tokens, c.Note)
		if err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]int64{"balance": balance}, fmt.Sprintf("the balance is %d", balance))
	})
}

type deviceRevokeCmd struct {
	jsonFlag
	Email  string `required:"" help:"The person's e-mail address." placeholder:"ADDRESS"`
	Device string `help:"The device's id." placeholder:"ID" xor:"which" required:""`
	All    bool   `help:"All devices and browsers." xor:"which" required:""`
}

func (c deviceRevokeCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if err := pp.accounts.Devices.RevokeDeviceOf(ctx, c.Email, c.Device); err != nil {
			return err
		}
		return p.printResult(c.JSON, struct{}{}, "done")
	})
}

type auditListCmd struct {
	jsonFlag
	Company string    `help:"Only entries about this company." placeholder:"ID"`
	Person  string    `help:"Only entries by or about this person." placeholder:"UID"`
	Act     string    `help:"Only this act, such as token.created, or all acts with a prefix, such as token." placeholder:"ACT"`
	Start   time.Time `help:"Only entries at or after this time." placeholder:"TIME"`
	End     time.Time `help:"Only entries before this time." placeholder:"TIME"`
	Before  int64     `help:"Only entries before this sequence number." placeholder:"SEQ"`
	Limit   int       `help:"Maximum number of entries." default:"100" placeholder:"N"`
}

func (c auditListCmd) Run(p *program) error {
	f := audit.Filter{
		CompanyID: c.Company,
		PersonID:  c.Person,
		Acts:      audit.Named(c.Act),
		From:      c.Start,
		Until:     c.End,
		Before:    c.Before,
		Limit:     c.Limit,
	}
	if c.Act != "" && len(f.Acts) == 0 {
		return usageError{fmt.Errorf("--act: %q is neither an audit act nor the prefix of an audit act", c.Act)}
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		if f.HasIndexOrder() {
			ctx = sqldb.WithIndexOrder(ctx)
		}
		var all []audit.Record
		err := db.Read(ctx, func(tx *sqldb.Tx) (err error) {
			all, err = audit.List(ctx, tx, f)
			return err
		})
		if err != nil {
			return err
		}
		type entry struct {
			Seq       int64             `json:"seq"`
			At        string            `json:"at"`
			Act       string            `json:"act" placeholder:"ACT"`
			ActorID   string            `json:"actor_id"`
			PersonID  string            `json:"person_id"`
			CompanyID string            `json:"company_id"`
			Address   string            `json:"address"`
			Details   map[string]string `json:"details"`
			Hash      string            `json:"hash"`
		}
		list := []entry{}
		rows := [][]string{{"SEQ", "AT", "ACT", "ACTOR", "PERSON", "COMPANY", "ADDRESS", "DETAILS"}}
		for _, r := range all {
			list = append(list, entry{r.Seq, formatTime(r.At), string(r.Act), r.ActorID, r.PersonID, r.CompanyID, r.Address, r.Details, r.Hash})
			rows = append(rows, []string{strconv.FormatInt(r.Seq, 10), formatTime(r.At), string(r.Act), r.ActorID, r.PersonID, r.CompanyID, r.Address, formatDetails(r.Details)})
		}
		if c.JSON {
			return p.printResult(true, map[string]any{"entries": list}, "")
		}
		return p.printTable(rows)
	})
}

// formatDetails formats the details of an audit log entry on one line, sorted
// by key.
func formatDetails(m map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, k+"="+m[k])
	}
	return strings.Join(all, " ")
}

type auditVerifyCmd struct {
	jsonFlag
	Head string `help:"A head printed earlier and kept elsewhere; no entry up to it may be missing." placeholder:"SEQ:HASH"`
}

var errTampered = errors.New("the audit log was tampered with")

func (c auditVerifyCmd) Run(p *program) error {
	var kept *audit.Head
	if c.Head != "" {
		seq, hash, _ := strings.Cut(c.Head, ":")
		n, err := strconv.ParseInt(seq, 10, 64)
		if err != nil || hash == "" {
			return usageError{errors.New("--head: must have the form SEQ:HASH, as printed by this command")}
		}
		kept = &audit.Head{Seq: n, Hash: hash}
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		if _, err := p.openSealKey(ctx, db); err != nil {
			return err
		}
		head, problems, err := audit.Verify(ctx, db, kept)
		if err != nil {
			return err
		}
		if problems == nil {
			problems = []string{}
		}
		text := fmt.Sprintf("%s, none was changed\nhead %d:%s", countNoun(int(head.Seq), "entry", "entries"), head.Seq, head.Hash)
		if len(problems) > 0 {
			text = strings.Join(problems, "\n")
		}
		err = p.printResult(c.JSON, map[string]any{"entries": head.Seq, "head": fmt.Sprintf("%d:%s", head.Seq, head.Hash), "problems": problems}, text)
		if err == nil && len(problems) > 0 {
			err = errTampered
		}
		return err
	})
}

type keysCmd struct {
	Rotate keysRotateCmd `cmd:"" help:"Sign new ID tokens with a new key; existing ones stay valid until they expire."`
}

type keysRotateCmd struct{ jsonFlag }

func (c keysRotateCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		kid, err := pp.accounts.Devices.RotateKeys(ctx)
		if err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"kid": kid}, "key "+kid+" now signs new ID tokens")
	})
}
