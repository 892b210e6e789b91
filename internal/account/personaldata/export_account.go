package personaldata

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

func (aw *archiveWriter) writeReadme(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, `The data that Atelier stores about you, as of `+aw.created.UTC().Format("2006-01-02 15:04 UTC")+`.

person.json         your account, and your identities at sign-in providers
devices.json        devices on which you are or were signed in
sessions.json       browsers in which you are signed in
access-tokens.json  your access tokens, without their values
companies.json      your companies and teams, your roles there, and open invitations
balance.json        the balance of your personal account, and every movement of tokens
notices.json        notices about your account
audit.jsonl         audit records of your actions, and of actions on your account
runs.jsonl          every run that you started, for yourself or for a team
uploads.jsonl       files that you uploaded to your personal account
unfinished.jsonl    files that you began to upload to your personal account, without the bytes that have arrived
library.jsonl       results of your personal account
favorites.jsonl     results that you marked as favorites
boards.jsonl        boards of your personal account, including deleted ones that can be restored
flows.jsonl         flows that you saved for your personal account
files/              the files named in uploads.jsonl and library.jsonl; NAME.missing.txt replaces a file that is lost

Files that end in .jsonl have a JSON object on each line. Passwords, secrets and the values of access
tokens are not included. Results that you made for a team belong to the team: they are listed, but their
files are not included.
`)
	return err
}

func (aw *archiveWriter) writePerson(ctx context.Context, w io.Writer) error {
	return writeDocument(ctx, aw, w, func(tx *sqldb.Tx) (object, error) {
		p, err := person.ByID(ctx, tx, aw.personID)
		if err != nil {
			return nil, err
		}
		if p.Deleted {
			return nil, person.ErrDeleted
		}
		at, err := person.Identities(ctx, tx, p.ID)
		if err != nil {
			return nil, err
		}
		identities := []object{}
		for _, i := range at {
			identities = append(identities, object{"provider": i.Provider, "issuer": i.Issuer, "subject": i.Subject, "last_confirmed": formatTime(i.Checked)})
		}
		return object{
			"id":               p.ID,
			"email":            p.Email,
			"email_verified":   p.EmailVerified,
			"suspended":        p.Suspended,
			"created":          formatTime(p.Created),
			"sign_in_provider": p.Provider,
			"identities":       identities,
		}, nil
	})
}

func (aw *archiveWriter) writeDevices(ctx context.Context, w io.Writer) error {
	return writeDocument(ctx, aw, w, func(tx *sqldb.Tx) ([]object, error) {
		list := []object{}
		all, err := device.ListAll(ctx, tx, aw.personID)
		for _, d := range all {
			o := object{
				"id":               d.ID,
				"plugin_kind":      d.PluginKind,
				"user_agent":       d.Agent,
				"address":          d.Address,
				"sign_in_provider": d.Provider,
				"created":          formatTime(d.Created),
				"last_used":        formatTime(d.LastUsed),
				"signed_out":       nil,
			}
			if d.Revoked != nil {
				o["signed_out"] = formatTime(*d.Revoked)
			}
			list = append(list, o)
		}
		return list, err
	})
}

func (aw *archiveWriter) writeSessions(ctx context.Context, w io.Writer) error {
	return writeDocument(ctx, aw, w, func(tx *sqldb.Tx) ([]object, error) {
		list := []object{}
		all, err := session.List(ctx, tx, aw.personID)
		for _, s := range all {
			list = append(list, object{
				"id":               s.ID,
				"user_agent":       s.Agent,
				"address":          s.Address,
				"sign_in_provider": s.Provider,
				"created":          formatTime(s.Created),
				"last_used":        formatTime(s.LastUsed),
			})
		}
		return list, err
	})
}

func (aw *archiveWriter) writeAccessTokens(ctx context.Context, w io.Writer) error {
	return writeDocument(ctx, aw, w, func(tx *sqldb.Tx) ([]object, error) {
		list := []object{}
		all, err := credential.List(ctx, tx, credential.Holder{PersonID: aw.personID}, nil, math.MaxInt32)
		for _, t := range all {
			list = append(list, object{
				"id":         t.ID,
				"name":       t.Name,
				"company_id": t.CompanyID,
				"minted_by":  t.MintedBy,
				"created":    formatTime(t.Created),
				"last_used":  formatTime(t.LastUsed),
			})
		}
		return list, err
	})
}

func (aw *archiveWriter) writeCompanies(ctx context.Context, w io.Writer) error {
	return writeDocument(ctx, aw, w, func(tx *sqldb.Tx) (object, error) {
		companies := []object{}
		teams := []object{}
		invitations := []object{}
		in, err := company.CompanyMemberships(ctx, tx, aw.personID)
		if err != nil {
			return nil, err
		}
		for _, m := range in {
			companies = append(companies, object{
				"id":          m.Company.ID,
				"name":        m.Company.Name,
				"role":        m.Role.Name,
				"permissions": m.Role.Permissions,
				"joined":      formatTime(m.Joined),
			})
		}
		accounts, err := company.TeamMemberships(ctx, tx, aw.personID)
		if err != nil {
			return nil, err
		}
		for _, a := range accounts {
			teams = append(teams, object{
				"id":          a.Team.ID,
				"company_id":  a.Team.CompanyID,
				"name":        a.Team.Name,
				"role":        a.Role.Name,
				"permissions": a.Role.Permissions,
				"how":         a.How,
				"joined":      formatTime(a.Joined),
			})
		}
		p, err := person.ByID(ctx, tx, aw.personID)
		if err != nil || !p.EmailVerified { // an unverified e-mail address may belong to another person
			return object{"companies": companies, "teams": teams, "invitations": invitations}, err
		}
		open, err := company.InvitationsFor(ctx, tx, p.Email)
		for _, i := range open {
			invitations = append(invitations, object{
				"id":           i.ID,
				"company_id":   i.CompanyID,
				"company_role": i.CompanyRole,
				"team_id":      i.TeamID,
				"team_role":    i.TeamRole,
				"email":        i.Email,
				"created":      formatTime(i.Created),
				"expires":      formatTime(i.Expires),
			})
		}
		return object{"companies": companies, "teams": teams, "invitations": invitations}, err
	})
}

// writeBalance writes the account's balance and its ledger entries. It
// streams the entries instead of loading all of them into memory.
func (aw *archiveWriter) writeBalance(ctx context.Context, w io.Writer) error {
	var b ledger.Balance
	err := aw.service.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err := ledger.Balances(ctx, tx, []string{aw.personID}, 0)
		b = all[aw.personID]
		return err
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "{\"tokens\": %d, \"held\": %d, \"movements\": [", b.Tokens, b.Held); err != nil {
		return err
	}
	after := ""
	comma := "\n"
	err = eachRow(ctx, aw, func(tx *sqldb.Tx) ([]ledger.Entry, error) {
		return ledger.Entries(ctx, tx, aw.personID, after, pageSize)
	}, func(m ledger.Entry) error {
		after = m.ID
		text, err := json.Marshal(object{
			"id":         m.ID,
			"kind":       m.Kind,
			"note":       m.Note,
			"request_id": m.RunID,
			"tokens":     m.Tokens,
			"created":    formatTime(m.Created),
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s%s", comma, text)
		comma = ",\n"
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}

func (aw *archiveWriter) writeNotices(ctx context.Context, w io.Writer) error {
	return writeDocument(ctx, aw, w, func(tx *sqldb.Tx) ([]object, error) {
		list := []object{}
		all, err := person.Notices(ctx, tx, aw.personID, math.MaxInt32)
		for _, n := range all {
			list = append(list, object{"id": n.ID, "kind": n.Kind, "text": n.Text, "created": formatTime(n.Created)})
		}
		return list, err
	})
}

// writeAuditRecords writes the audit log records about the person, without the
// IP addresses of other people.
func (aw *archiveWriter) writeAuditRecords(ctx context.Context, w io.Writer) error {
	before := int64(0)
	return writeLines(ctx, aw, w, func(tx *sqldb.Tx) ([]audit.Record, error) {
		if before == 1 { // the oldest record has been written; Before: 0 would select the newest records again
			return nil, nil
		}
		return audit.List(ctx, tx, audit.Filter{PersonID: aw.personID, Before: before, Limit: pageSize})
	}, func(r audit.Record) any {
		before = r.Seq
		o := object{
			"seq":        r.Seq,
			"at":         formatTime(r.At),
			"act":        r.Act,
			"actor_id":   r.ActorID,
			"person_id":  r.PersonID,
			"company_id": r.CompanyID,
			"details":    r.Details,
		}
		if r.ActorID == aw.personID || r.ActorID == "" {
			o["address"] = r.Address
		}
		return o
	})
}
