package personaldata

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/board"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/library"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
	"atelier/internal/run/run"
)

func (e *export) readme(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, `What Atelier keeps about you, as of `+e.made.UTC().Format("2006-01-02 15:04 UTC")+`.

person.json         your account, and who you are at a sign-in provider
devices.json        where you are or were signed in with a device
sessions.json       browsers that are signed in
access-tokens.json  tokens that speak for you, without their values
companies.json      companies and teams that you are in, your roles, and open invitations
balance.json        your personal account, and every movement of tokens
notices.json        what you were told about your account
audit.jsonl         what was recorded that you did, or that was done to you
runs.jsonl          every run that you started, for yourself or for a team
uploads.jsonl       files that you brought to your personal account
library.jsonl       results of your personal account
favorites.jsonl     results that you marked
boards.jsonl        boards of your personal account, deleted ones too while they can be restored
files/              the files that uploads.jsonl and library.jsonl name; NAME.missing.txt stands for one that is gone

Files that end in .jsonl have a JSON object on each line. Passwords, secrets and the values of tokens
are not here. What you made for a team belongs to the team; it is listed, and its files are not here.
`)
	return err
}

func (e *export) person(ctx context.Context, w io.Writer) error {
	return whole(ctx, e, w, func(tx *sqldb.Tx) (object, error) {
		p, err := person.ByID(ctx, tx, e.personID)
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
			identities = append(identities, object{"provider": i.Provider, "issuer": i.Issuer, "subject": i.Subject, "last_confirmed": when(i.Checked)})
		}
		return object{
			"id": p.ID, "email": p.Email, "email_verified": p.EmailVerified, "suspended": p.Suspended, "created": when(p.Created),
			"sign_in_provider": p.Provider, "identities": identities,
		}, nil
	})
}

func (e *export) devices(ctx context.Context, w io.Writer) error {
	return whole(ctx, e, w, func(tx *sqldb.Tx) ([]object, error) {
		list := []object{}
		all, err := device.All(ctx, tx, e.personID)
		for _, d := range all {
			o := object{"id": d.ID, "plugin_kind": d.PluginKind, "user_agent": d.Agent, "address": d.Address, "sign_in_provider": d.Provider,
				"created": when(d.Created), "last_used": when(d.LastUsed), "signed_out": nil}
			if d.Revoked != nil {
				o["signed_out"] = when(*d.Revoked)
			}
			list = append(list, o)
		}
		return list, err
	})
}

func (e *export) sessions(ctx context.Context, w io.Writer) error {
	return whole(ctx, e, w, func(tx *sqldb.Tx) ([]object, error) {
		list := []object{}
		all, err := session.List(ctx, tx, e.personID)
		for _, s := range all {
			list = append(list, object{"id": s.ID, "user_agent": s.Agent, "address": s.Address, "sign_in_provider": s.Provider,
				"created": when(s.Created), "last_used": when(s.LastUsed)})
		}
		return list, err
	})
}

func (e *export) tokens(ctx context.Context, w io.Writer) error {
	return whole(ctx, e, w, func(tx *sqldb.Tx) ([]object, error) {
		list := []object{}
		all, err := credential.List(ctx, tx, credential.Holder{PersonID: e.personID}, nil, math.MaxInt32)
		for _, t := range all {
			list = append(list, object{"id": t.ID, "name": t.Name, "company_id": t.CompanyID, "minted_by": t.MintedBy,
				"created": when(t.Created), "last_used": when(t.LastUsed)})
		}
		return list, err
	})
}

func (e *export) companies(ctx context.Context, w io.Writer) error {
	return whole(ctx, e, w, func(tx *sqldb.Tx) (object, error) {
		companies := []object{}
		teams := []object{}
		invitations := []object{}
		in, err := company.OfPerson(ctx, tx, e.personID)
		if err != nil {
			return nil, err
		}
		for _, m := range in {
			companies = append(companies, object{"id": m.Company.ID, "name": m.Company.Name, "role": m.Role.Name, "permissions": m.Role.Permissions, "joined": when(m.Joined)})
		}
		accounts, err := company.Accounts(ctx, tx, e.personID)
		if err != nil {
			return nil, err
		}
		for _, a := range accounts {
			teams = append(teams, object{"id": a.Team.ID, "company_id": a.Team.CompanyID, "name": a.Team.Name, "role": a.Role.Name,
				"permissions": a.Role.Permissions, "how": a.How, "joined": when(a.Joined)})
		}
		p, err := person.ByID(ctx, tx, e.personID)
		if err != nil || !p.EmailVerified { // the address may be somebody else's
			return object{"companies": companies, "teams": teams, "invitations": invitations}, err
		}
		open, err := company.InvitationsFor(ctx, tx, p.Email)
		for _, i := range open {
			invitations = append(invitations, object{"id": i.ID, "company_id": i.CompanyID, "company_role": i.CompanyRole, "team_id": i.TeamID, "team_role": i.TeamRole,
				"email": i.Email, "created": when(i.Created), "expires": when(i.Expires)})
		}
		return object{"companies": companies, "teams": teams, "invitations": invitations}, err
	})
}

// balance writes a list that may be long, so its frame is written by hand.
func (e *export) balance(ctx context.Context, w io.Writer) error {
	var b ledger.Balance
	err := e.d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err := ledger.Balances(ctx, tx, []string{e.personID}, 0)
		b = all[e.personID]
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
	err = pages(ctx, e, func(tx *sqldb.Tx) ([]ledger.Entry, error) { return ledger.Entries(ctx, tx, e.personID, after, page) }, func(m ledger.Entry) error {
		after = m.ID
		text, err := json.Marshal(object{"id": m.ID, "kind": m.Kind, "note": m.Note, "request_id": m.RunID, "tokens": m.Tokens, "created": when(m.Created)})
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

func (e *export) notices(ctx context.Context, w io.Writer) error {
	return whole(ctx, e, w, func(tx *sqldb.Tx) ([]object, error) {
		list := []object{}
		all, err := person.Notices(ctx, tx, e.personID, math.MaxInt32)
		for _, n := range all {
			list = append(list, object{"id": n.ID, "kind": n.Kind, "text": n.Text, "created": when(n.Created)})
		}
		return list, err
	})
}

// audit leaves out from where somebody else did what they did.
func (e *export) audit(ctx context.Context, w io.Writer) error {
	before := int64(0)
	return lines(ctx, e, w, func(tx *sqldb.Tx) ([]audit.Record, error) {
		if before == 1 { // nothing is older, and 0 would be the newest
			return nil, nil
		}
		return audit.List(ctx, tx, audit.Filter{PersonID: e.personID, Before: before, Limit: page})
	}, func(r audit.Record) any {
		before = r.Seq
		o := object{"seq": r.Seq, "at": when(r.At), "act": r.Act, "actor_id": r.ActorID, "person_id": r.PersonID, "company_id": r.CompanyID, "details": r.Details}
		if r.ActorID == e.personID || r.ActorID == "" {
			o["address"] = r.Address
		}
		return o
	})
}

func (e *export) runs(ctx context.Context, w io.Writer) error {
	var after *run.Place
	return lines(ctx, e, w, func(tx *sqldb.Tx) ([]run.Run, error) { return run.OfPerson(ctx, tx, e.personID, after, page) }, func(r run.Run) any {
		after = &run.Place{Created: r.Created, ID: r.ID}
		return object{
			"request_id": r.ID, "library_run_id": r.LibraryID, "account_id": r.AccountID, "team_id": r.TeamID, "credential": r.Credential, "credential_id": r.CredentialID,
			"plugin": r.Plugin, "tool_id": r.ToolID, "tool_hash": r.ToolHash, "prompt": r.Prompt, "inputs": raw(r.Inputs), "metadata": raw(r.Metadata), "seed": r.Seed,
			"num_results": r.NumResults, "webhook_url": r.WebhookURL, "status": r.State.Status(), "tokens_charged": r.TokensCharged, "allowance_used": r.AllowanceUsed,
			"error_code": r.ErrorCode, "error_message": r.ErrorText, "created": when(r.Created), "started": when(r.Started), "finished": when(r.Finished),
		}
	})
}

// eachUpload reads the uploads of the personal account.
func (e *export) eachUpload(ctx context.Context, write func(asset.Upload) error) error {
	var after *asset.Place
	return pages(ctx, e, func(tx *sqldb.Tx) ([]asset.Upload, error) { return asset.Uploads(ctx, tx, e.personID, after, page) }, func(u asset.Upload) error {
		place := u.Place()
		after = &place
		return write(u)
	})
}

// eachKept reads the results of the personal account.
func (e *export) eachKept(ctx context.Context, write func(library.Kept) error) error {
	var after library.KeptPlace
	return pages(ctx, e, func(tx *sqldb.Tx) ([]library.Kept, error) { return library.AllKept(ctx, tx, e.personID, after, page) }, func(k library.Kept) error {
		after = k.Place
		return write(k)
	})
}

// Names in an archive are made of ids: what people call their files is in the
// lists, and no path.
func uploadFile(u asset.Upload) string { return "files/uploads/" + u.ID + path.Ext(u.Asset.Blob) }
func resultFile(k library.Kept) string { return "files/results/" + k.ResultID + path.Ext(k.Asset.Blob) }

func aboutFile(a asset.Asset, o object) object {
	o["type"] = a.Type
	o["mime_type"] = a.MimeType
	o["size_bytes"] = a.Size
	o["sha256"] = a.SHA256
	if a.Width > 0 {
		o["width"] = a.Width
		o["height"] = a.Height
	}
	if a.Duration > 0 {
		// Seconds would add up two numbers, which shows as 1.1179999999999999.
		o["duration_seconds"] = float64(a.Duration.Milliseconds()) / 1000
	}
	return o
}

func (e *export) uploads(ctx context.Context, w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return e.eachUpload(ctx, func(u asset.Upload) error {
		return encoder.Encode(aboutFile(u.Asset, object{"id": u.ID, "name": u.Name, "created": when(u.Created), "file": uploadFile(u)}))
	})
}

func (e *export) library(ctx context.Context, w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return e.eachKept(ctx, func(k library.Kept) error {
		o := object{"id": k.ID, "request_id": k.RequestID, "tool_id": k.ToolID, "favorited": k.Favorited, "created": when(k.Created), "file": resultFile(k)}
		if k.Note != "" {
			o["note"] = k.Note
		}
		return encoder.Encode(aboutFile(k.Asset, o))
	})
}

func (e *export) favorites(ctx context.Context, w io.Writer) error {
	after := ""
	return lines(ctx, e, w, func(tx *sqldb.Tx) ([]library.Favorite, error) {
		return library.Favorites(ctx, tx, e.personID, after, page)
	}, func(f library.Favorite) any {
		after = f.ResultID
		return object{"result_id": f.ResultID, "created": when(f.Created)}
	})
}

func (e *export) boards(ctx context.Context, w io.Writer) error {
	for _, trash := range []bool{false, true} {
		var after *board.Place
		err := pages(ctx, e, func(tx *sqldb.Tx) ([]board.Board, error) { return board.Kept(ctx, tx, e.personID, trash, after, page) }, func(b board.Board) error {
			after = &board.Place{Created: b.Created, ID: b.ID}
			return e.board(ctx, w, b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// board writes a board with its nodes on one line.
func (e *export) board(ctx context.Context, w io.Writer, b board.Board) error {
	about, err := json.Marshal(object{"id": b.ID, "name": b.Name, "revision": b.Revision, "created": when(b.Created), "updated": when(b.Updated), "deleted": when(b.Deleted)})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `%s,"nodes":[`, about[:len(about)-1]); err != nil {
		return err
	}
	var after *board.Place
	comma := ""
	err = pages(ctx, e, func(tx *sqldb.Tx) ([]board.Node, error) { return board.NodesOf(ctx, tx, b, after, page) }, func(n board.Node) error {
		after = &board.Place{Created: n.Created, ID: n.ID}
		text, err := json.Marshal(object{"id": n.ID, "kind": n.Kind, "ref": n.Ref, "text": n.Text,
			"x": n.Box.X, "y": n.Box.Y, "width": n.Box.Width, "height": n.Box.Height, "z": n.Z, "created": when(n.Created)})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s%s", comma, text)
		comma = ","
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}

func (e *export) files(ctx context.Context) error {
	err := e.eachUpload(ctx, func(u asset.Upload) error { return e.file(ctx, uploadFile(u), u.Asset, u.Created) })
	if err != nil {
		return err
	}
	return e.eachKept(ctx, func(k library.Kept) error { return e.file(ctx, resultFile(k), k.Asset, k.Created) })
}

// file writes stored bytes as they are: most are compressed already. An archive
// with a damaged file in it is cut short.
func (e *export) file(ctx context.Context, name string, a asset.Asset, at time.Time) error {
	if err := e.still(ctx); err != nil {
		return err
	}
	body, err := blob.OpenVerified(ctx, e.d.Blobs, blob.File{Key: a.Blob, Size: a.Size, SHA256: a.SHA256})
	if errors.Is(err, blob.ErrNotFound) {
		f, err := e.create(name+".missing.txt", zip.Store, at)
		if err == nil {
			_, err = io.WriteString(f, "The bytes of this file are gone.\n")
		}
		return err
	}
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := e.create(name, zip.Store, at)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	return err
}
