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
library.jsonl       results of your personal account
favorites.jsonl     results that you marked as favorites
boards.jsonl        boards of your personal account, including deleted ones that can be restored
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
		all, err := device.All(ctx, tx, aw.personID)
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
		in, err := company.OfPerson(ctx, tx, aw.personID)
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
		accounts, err := company.Accounts(ctx, tx, aw.personID)
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
		if err != nil || !p.EmailVerified { // the address may belong to another person
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

// writeBalance writes the list of movements row by row, since it may be long.
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

// writeAuditRecords leaves out the addresses of other people.
func (aw *archiveWriter) writeAuditRecords(ctx context.Context, w io.Writer) error {
	before := int64(0)
	return writeLines(ctx, aw, w, func(tx *sqldb.Tx) ([]audit.Record, error) {
		if before == 1 { // no record is older, and 0 would select the newest
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

func (aw *archiveWriter) writeRuns(ctx context.Context, w io.Writer) error {
	var after *run.Place
	return writeLines(ctx, aw, w, func(tx *sqldb.Tx) ([]run.Run, error) { return run.OfPerson(ctx, tx, aw.personID, after, pageSize) }, func(r run.Run) any {
		after = &run.Place{Created: r.Created, ID: r.ID}
		return object{
			"request_id":     r.ID,
			"library_run_id": r.LibraryID,
			"account_id":     r.AccountID,
			"team_id":        r.TeamID,
			"credential":     r.Credential,
			"credential_id":  r.CredentialID,
			"plugin":         r.Plugin,
			"tool_id":        r.ToolID,
			"tool_hash":      r.ToolHash,
			"prompt":         r.Prompt,
			"inputs":         rawJSON(r.Inputs),
			"metadata":       rawJSON(r.Metadata),
			"seed":           r.Seed,
			"num_results":    r.NumResults,
			"webhook_url":    r.WebhookURL,
			"status":         r.State.Status(),
			"tokens_charged": r.TokensCharged,
			"allowance_used": r.AllowanceUsed,
			"error_code":     r.ErrorCode,
			"error_message":  r.ErrorText,
			"created":        formatTime(r.Created),
			"started":        formatTime(r.Started),
			"finished":       formatTime(r.Finished),
		}
	})
}

// eachUpload passes the uploads of the personal account to write.
func (aw *archiveWriter) eachUpload(ctx context.Context, write func(asset.Upload) error) error {
	var after *asset.Place
	return eachRow(ctx, aw, func(tx *sqldb.Tx) ([]asset.Upload, error) {
		return asset.Uploads(ctx, tx, aw.personID, after, pageSize)
	}, func(u asset.Upload) error {
		place := u.Place()
		after = &place
		return write(u)
	})
}

// eachResult passes the results of the personal account to write.
func (aw *archiveWriter) eachResult(ctx context.Context, write func(library.Kept) error) error {
	var after library.KeptPlace
	return eachRow(ctx, aw, func(tx *sqldb.Tx) ([]library.Kept, error) {
		return library.AllKept(ctx, tx, aw.personID, after, pageSize)
	}, func(k library.Kept) error {
		after = k.Place
		return write(k)
	})
}

// Paths in an archive are made of ids. The names that people gave their files are
// in the lists only, since they may not be valid paths.
func uploadPath(u asset.Upload) string { return "files/uploads/" + u.ID + path.Ext(u.Asset.Blob) }
func resultPath(k library.Kept) string { return "files/results/" + k.ResultID + path.Ext(k.Asset.Blob) }

// addFileFields adds the fields that describe a stored file.
func addFileFields(a asset.Asset, o object) object {
	o["type"] = a.Type
	o["mime_type"] = a.MimeType
	o["size_bytes"] = a.Size
	o["sha256"] = a.SHA256
	if a.Width > 0 {
		o["width"] = a.Width
		o["height"] = a.Height
	}
	if a.Duration > 0 {
		// Duration.Seconds has rounding errors such as 1.1179999999999999.
		o["duration_seconds"] = float64(a.Duration.Milliseconds()) / 1000
	}
	return o
}

func (aw *archiveWriter) writeUploads(ctx context.Context, w io.Writer) error {
	encoder := newLineEncoder(w)
	return aw.eachUpload(ctx, func(u asset.Upload) error {
		return encoder.Encode(addFileFields(u.Asset, object{"id": u.ID, "name": u.Name, "created": formatTime(u.Created), "file": uploadPath(u)}))
	})
}

func (aw *archiveWriter) writeResults(ctx context.Context, w io.Writer) error {
	encoder := newLineEncoder(w)
	return aw.eachResult(ctx, func(k library.Kept) error {
		o := object{
			"id":         k.ID,
			"request_id": k.RequestID,
			"tool_id":    k.ToolID,
			"favorited":  k.Favorited,
			"created":    formatTime(k.Created),
			"file":       resultPath(k),
		}
		if k.Note != "" {
			o["note"] = k.Note
		}
		return encoder.Encode(addFileFields(k.Asset, o))
	})
}

func (aw *archiveWriter) writeFavorites(ctx context.Context, w io.Writer) error {
	after := ""
	return writeLines(ctx, aw, w, func(tx *sqldb.Tx) ([]library.Favorite, error) {
		return library.Favorites(ctx, tx, aw.personID, after, pageSize)
	}, func(f library.Favorite) any {
		after = f.ResultID
		return object{"result_id": f.ResultID, "created": formatTime(f.Created)}
	})
}

func (aw *archiveWriter) writeBoards(ctx context.Context, w io.Writer) error {
	for _, trash := range []bool{false, true} {
		var after *board.Place
		err := eachRow(ctx, aw, func(tx *sqldb.Tx) ([]board.Board, error) {
			return board.Kept(ctx, tx, aw.personID, trash, after, pageSize)
		}, func(b board.Board) error {
			after = &board.Place{Created: b.Created, ID: b.ID}
			return aw.writeBoard(ctx, w, b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeBoard writes a board with its nodes on one line.
func (aw *archiveWriter) writeBoard(ctx context.Context, w io.Writer, b board.Board) error {
	about, err := json.Marshal(object{
		"id":       b.ID,
		"name":     b.Name,
		"revision": b.Revision,
		"created":  formatTime(b.Created),
		"updated":  formatTime(b.Updated),
		"deleted":  formatTime(b.Deleted),
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `%s,"nodes":[`, about[:len(about)-1]); err != nil {
		return err
	}
	var after *board.Place
	comma := ""
	err = eachRow(ctx, aw, func(tx *sqldb.Tx) ([]board.Node, error) { return board.NodesOf(ctx, tx, b, after, pageSize) }, func(n board.Node) error {
		after = &board.Place{Created: n.Created, ID: n.ID}
		text, err := json.Marshal(object{
			"id":      n.ID,
			"kind":    n.Kind,
			"ref":     n.Ref,
			"text":    n.Text,
			"x":       n.Box.X,
			"y":       n.Box.Y,
			"width":   n.Box.Width,
			"height":  n.Box.Height,
			"z":       n.Z,
			"created": formatTime(n.Created),
		})
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

func (aw *archiveWriter) writeFiles(ctx context.Context) error {
	err := aw.eachUpload(ctx, func(u asset.Upload) error { return aw.writeFile(ctx, uploadPath(u), u.Asset, u.Created) })
	if err != nil {
		return err
	}
	return aw.eachResult(ctx, func(k library.Kept) error { return aw.writeFile(ctx, resultPath(k), k.Asset, k.Created) })
}

// writeFile writes a stored file uncompressed, since most formats are compressed
// already. A damaged file ends the archive.
func (aw *archiveWriter) writeFile(ctx context.Context, name string, a asset.Asset, at time.Time) error {
	if err := aw.reauthorize(ctx); err != nil {
		return err
	}
	body, err := blob.OpenVerified(ctx, aw.service.Blobs, blob.File{Key: a.Blob, Size: a.Size, SHA256: a.SHA256})
	if errors.Is(err, blob.ErrNotFound) {
		f, err := aw.createEntry(name+".missing.txt", zip.Store, at)
		if err == nil {
			_, err = io.WriteString(f, "The contents of this file are lost.\n")
		}
		return err
	}
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := aw.createEntry(name, zip.Store, at)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	return err
}
