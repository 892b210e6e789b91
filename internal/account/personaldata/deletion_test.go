package personaldata_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/signup"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/library"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/savedflow"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/access"
)

// TestDeletionErasesEverything searches all tables for the words of a deleted
// person.
func TestDeletionErasesEverything(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		l := h.live()
		for _, word := range canaries {
			if len(h.hits(word)) == 0 {
				h.Errorf("%s was nowhere to begin with", word)
			}
		}
		h.OK(h.leave(l.id))
		h.finish()
		h.OK(h.data.ErasePerson(h.Context(), l.id)) // again does no harm
		h.Pass(2 * time.Hour)
		h.OK(h.Library.SweepFiles(h.Context()))
		for _, word := range canaries {
			for _, row := range h.hits(word) {
				h.Errorf("%s is still in %s", word, row)
			}
		}
		for what, data := range map[string][]byte{"the upload": l.picture, "the input": l.input} {
			if h.stored(data) {
				h.Errorf("the bytes of %s are still there", what)
			}
		}
		for _, row := range h.hits(l.id) {
			table, _, _ := strings.Cut(row, ":")
			switch table {
			case "person", "run", "result", "asset", "upload", "audit", "ledger_account", "ledger_day", "ledger_entry", "board", "saved_flow", "report_sum", "report_flow", "job", "river_job":
			default:
				h.Errorf("%s", row)
			}
		}

		// What is the team's is there, and so is the money.
		team := principal.Principal{PersonID: l.id, AccountID: l.team, TeamID: l.team}
		if u, err := h.Library.GetUpload(h.Context(), team, l.team, l.teamFile); err != nil || u.Name != "team.png" {
			h.Errorf("the team's file: %+v, %v", u, err)
		}
		if r := h.Run(l.work.ID); r.Prompt != "a chair" || r.PersonID != l.id {
			h.Errorf("the team's run: %+v", r)
		}
		if r := h.Run(l.own.ID); r.Prompt != "" || r.Inputs != "{}" || r.TokensCharged != 3 || r.State != run.Succeeded {
			h.Errorf("the own run: %+v", r)
		}
		if b := h.Balance(l.id); b.Tokens != 0 {
			h.Errorf("nobody has %d tokens", b.Tokens)
		}
		if n := h.Count(`SELECT count(*) FROM board WHERE account_id = $1`, l.team); n != 1 {
			h.Errorf("the team has %d boards", n)
		}
		acts := map[audit.Act]int{}
		h.Do(func(tx *sqldb.Tx) error {
			clear(acts)
			all, err := audit.List(h.Context(), tx, audit.Filter{PersonID: l.id, Limit: 100})
			for _, r := range all {
				acts[r.Act]++
			}
			return err
		})
		if acts[audit.PersonDeleted] != 1 || acts[audit.CompanyMemberRemoved] != 1 || acts[audit.TokenDeleted] != 2 {
			h.Errorf("audit: %v", acts)
		}
	})
}

// TestNoCredentialWorksAfterDeletion tries every credential of a deleted
// person.
func TestNoCredentialWorksAfterDeletion(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		l, ctx, v := h.live(), h.Context(), h.site.Client()
		h.OK(h.leave(l.id))
		admit := func(token string, p access.Presented) error {
			p.Authorization = []string{"Bearer " + token}
			_, err := h.site.Gate.Admit(ctx, access.Identity, p)
			return err
		}
		_, err := h.site.Accounts.SignIn.FindSession(ctx, l.cookie, "")
		h.refused(err, fault.Unauthenticated, "")
		h.refused(admit(l.device.Tokens.ID, access.Presented{DeviceID: []string{l.device.DeviceID}}), fault.Unauthenticated, "")
		h.refused(admit(l.token, access.Presented{}), fault.Unauthenticated, "")
		h.refused(admit(l.company2, access.Presented{}), fault.Unauthenticated, "")
		_, err = h.site.Accounts.Devices.RefreshTokens(ctx, l.device.Tokens.Refresh, v)
		h.refused(err, fault.TokenInvalid, "")
		if _, err = h.site.Accounts.Devices.Poll(ctx, l.codes.DeviceCode, v); err == nil {
			h.Error("a device fetched its tokens")
		}
		_, err = h.site.Accounts.SignIn.SignIn(ctx, email, accounttest.Password, v)
		h.refused(err, fault.Unauthenticated, "")
		h.OK(h.site.Accounts.SignIn.RequestPasswordReset(ctx, email, v))
		h.Do(func(tx *sqldb.Tx) error {
			_, err := person.ByIdentity(ctx, tx, "https://id.example", name)
			h.refused(err, fault.NotFound, "")
			_, err = person.ByEmail(ctx, tx, "deleted:"+l.id)
			h.refused(err, fault.NotFound, "")
			h.refused(person.Lock(ctx, tx, l.id), fault.Unauthenticated, "")
			return nil
		})
		// What was asked for before it ended begins nothing after.
		_, err = h.Runs.CreateRun(ctx, h.Draft(generationtest.Own(l.id), "free"))
		h.refused(err, fault.Unauthenticated, "")
		mine := principal.Principal{PersonID: l.id, AccountID: l.id}
		_, err = h.Library.AddUpload(ctx, mine, l.id, "x", h.Take(generationtest.PNG(1)))
		h.refused(err, fault.Unauthenticated, "")
		h.refused(h.Library.SetFavorite(ctx, mine, l.item.ID, true), fault.Unauthenticated, "")
		_, _, err = h.site.Accounts.AccessTokens.CreateAccessToken(ctx, principal.Principal{PersonID: l.id}, l.id, "x")
		h.refused(err, fault.Unauthenticated, "")
		_, err = h.site.Companies.TeamMembers.SetTeamMember(ctx, principal.Operator(), l.team, l.id, "maker")
		h.refused(err, fault.NotFound, "")
		if _, err := h.boards.CreateBoard(ctx, principal.Principal{PersonID: l.id, AccountID: l.id}, "x"); err == nil {
			h.Error("a board was made")
		}
		_, err = h.flows.Create(ctx, mine, savedflow.Draft{Name: "x", Steps: []any{map[string]any{"id": "draw", "tool": "cost"}}})
		h.refused(err, fault.Unauthenticated, "")
		h.refused(h.leave(l.id), fault.Unauthenticated, "")
		_, err = h.data.ExportPerson(ctx, principal.Principal{PersonID: l.id}, l.id)
		h.refused(err, fault.Unauthenticated, "")
		if _, was, err := h.Runs.CancelRun(ctx, principal.Principal{PersonID: ids.New(), AccountID: l.team, TeamID: l.team, Role: company.TeamRole{Permissions: []company.Permission{company.ManageTeam}}}, l.work.ID); err != nil || !was {
			h.Errorf("cancel by a manager: %v, %v", was, err)
		}
		// The address of a file that is not erased yet is dead.
		_, err = h.Library.FindFile(ctx, library.SignedURL{Kind: library.KindUpload, ID: l.upload, Variant: library.VariantFile, ViewerID: l.id})
		if err == nil {
			h.Error("the file is served")
		}

		// Somebody new has the address, and nothing of what was.
		in, err := h.site.Accounts.SignUp.SignUp(ctx, signup.Application{Email: email, Password: accounttest.Password, Client: v})
		h.OK(err)
		if in.Person.ID == l.id {
			h.Error("they are the same person")
		}
		record, err := h.site.Accounts.Profiles.GetProfile(ctx, principal.ForSession(in.Person.ID, "", "", ""))
		if err != nil || len(record.Accounts) != 1 || record.Accounts[0].Balance.Tokens != 0 {
			h.Errorf("the new person: %+v, %v", record, err)
		}
		files := h.export(in.Person.ID)
		for _, list := range []string{"runs.jsonl", "uploads.jsonl", "library.jsonl", "boards.jsonl", "favorites.jsonl"} {
			if files[list] != "" {
				h.Errorf("%s of the new person: %s", list, files[list])
			}
		}
		h.finish()
	})
}

func TestRefusedDeletions(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		ctx := h.Context()
		id := h.site.Person(email)
		h.site.Person("bert@example.com")
		as := principal.Principal{PersonID: id}
		h.refused(h.data.DeletePerson(ctx, as, id, "bert@example.com"), fault.Invalid, "")
		h.refused(h.data.DeletePerson(ctx, as, id, ""), fault.Invalid, "")
		h.refused(h.data.DeletePerson(ctx, principal.Principal{PersonID: ids.New()}, id, email), fault.Forbidden, "permission")
		h.refused(h.data.DeletePerson(ctx, principal.Principal{}, "", ""), fault.Forbidden, "permission")

		h.Give(id, 10)
		h.Create(h.Draft(generationtest.Own(id), "cost"))
		h.refused(h.leave(id), fault.Forbidden, "runs_active")
		h.refused(h.data.DeletePerson(ctx, principal.Operator(), id, email), fault.Forbidden, "runs_active")
		h.OK(h.Runs.EndRun(ctx, h.Claim("w"), generation.Outcome{State: run.Succeeded, Results: h.Results(1), Took: time.Second}))

		c := h.site.Company("Studio", company.TeamPlan)
		h.site.Admit(c, email, company.CompanyPermissions...)
		h.site.Admit(c, "bert@example.com")
		alone := h.site.Company("Alone", company.TeamPlan)
		h.site.Admit(alone, email, company.CompanyPermissions...)
		h.refused(h.leave(id), fault.Forbidden, "last_admin")
		if n := h.Count(`SELECT count(*) FROM company_member WHERE person_id = $1`, id); n != 2 {
			h.Errorf("a refused deletion left %d memberships", n)
		}
		h.site.Admit(c, "bert@example.com", company.CompanyPermissions...)
		h.OK(h.leave(id))
		if n := h.Count(`SELECT count(*) FROM company_member WHERE company_id = $1`, alone); n != 0 {
			h.Errorf("%d people are left", n)
		}
		h.finish()
	})
}

func TestTheOperatorMayRemoveTheLastAdmin(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		id := h.site.Person(email)
		h.site.Person("bert@example.com")
		c := h.site.Company("Studio", company.TeamPlan)
		h.site.Admit(c, email, company.CompanyPermissions...)
		h.site.Admit(c, "bert@example.com")
		h.OK(h.data.DeletePerson(h.Context(), principal.Operator(), id, email))
		h.OK(h.data.ErasePerson(h.Context(), id))
	})
}

// TestOnlyDeletedPeopleAreErased runs the job for a person who was not deleted.
func TestOnlyDeletedPeopleAreErased(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		l := h.live()
		if err := h.data.ErasePerson(h.Context(), l.id); err == nil {
			h.Error("somebody alive was erased")
		}
		if r := h.Run(l.own.ID); r.Prompt != prompt {
			h.Errorf("prompt = %q", r.Prompt)
		}
	})
}

// TestDeletionDuringOtherRequests: a person makes all kinds of requests while
// they are deleted. The checks find a run, session, token, favorite or
// membership that was created after the deletion.
func TestDeletionDuringOtherRequests(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		ctx := h.Context()
		for round := range 3 {
			id := h.site.Person(email)
			c := h.site.Company(fmt.Sprint("Studio ", round), company.TeamPlan)
			h.site.Person(fmt.Sprintf("boss%d@example.com", round))
			h.site.Admit(c, fmt.Sprintf("boss%d@example.com", round), company.CompanyPermissions...)
			team := h.site.Team(c, "Design", "maker")
			in := h.site.Session(email)
			approved := h.site.Start("figma")
			h.OK(h.site.Decide(in, approved, true))
			waiting := h.site.Start("figma")
			draft := h.Draft(generationtest.Own(id), "free")
			taken := h.Results(3)
			u := principal.Principal{PersonID: id, AccountID: id}
			var deleted atomic.Int64
			acts := []func() error{
				func() error { _, err := h.Runs.CreateRun(ctx, draft); return err },
				func() error {
					_, err := h.site.Accounts.SignIn.SignIn(ctx, email, accounttest.Password, h.site.Client())
					return err
				},
				func() error { return h.site.Decide(in, waiting, true) },
				func() error {
					_, err := h.site.Accounts.Devices.Poll(ctx, approved.DeviceCode, h.site.Client())
					return err
				},
				func() error {
					_, _, err := h.site.Accounts.AccessTokens.CreateAccessToken(ctx, principal.Principal{PersonID: id}, id, "x")
					return err
				},
				func() error { _, err := h.Library.AddUpload(ctx, u, id, "x", taken[0].StoredFile); return err },
				func() error {
					_, err := h.site.Companies.TeamMembers.SetTeamMember(ctx, principal.Operator(), team, id, "maker")
					return err
				},
				func() error { return h.site.Accounts.SignIn.RequestPasswordReset(ctx, email, h.site.Client()) },
				func() error {
					_, err := h.boards.CreateBoard(ctx, principal.Principal{PersonID: id, AccountID: id}, "x")
					return err
				},
				func() error {
					_, err := h.flows.Create(ctx, generationtest.Own(id), savedflow.Draft{Name: "x", Steps: []any{map[string]any{"id": "draw", "tool": "cost"}}})
					return err
				},
				func() error { return h.site.Accounts.SignIn.SetSuspended(ctx, email, false) },
				func() error { _, err := h.site.Accounts.Grants.GrantByOperator(ctx, email, "", 5, ""); return err },
			}
			dbtest.Together(len(acts)+2, func(i int) {
				if i < len(acts) {
					if err := acts[i](); err != nil {
						if _, decided := err.(*fault.Error); !decided { //nolint:errorlint // what is wrapped was not decided
							h.Errorf("act %d: %v", i, err)
						}
					}
					return
				}
				if err := h.leave(id); err == nil {
					deleted.Add(1)
				}
			})
			if n := deleted.Load(); n > 1 {
				h.Errorf("deleted %d times", n)
			}
			if deleted.Load() == 0 { // a run came first
				h.OK(h.Runs.EndRun(ctx, h.Claim("w"), generation.Outcome{State: run.Failed, ErrorCode: "INTERNAL_SERVER_ERROR", ErrorText: "x"}))
				h.OK(h.leave(id))
			}
			if n := h.Count(`SELECT count(*) FROM run WHERE person_id = $1 AND status = 'pending'`, id); n != 0 {
				h.Errorf("%d runs are pending", n)
			}
			if v, err := h.DB.VerifyChecks(ctx, checks); err != nil || len(v) > 0 {
				h.Errorf("round %d: %v, %v", round, v, err)
			}
			h.OK(h.data.ErasePerson(ctx, id))
		}
	})
}

func TestChecksFind(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		l := h.live()
		h.Create(h.Draft(generationtest.Own(l.id), "free"))
		dead := h.site.Person("dead@example.com")
		h.OK(h.data.DeletePerson(h.Context(), principal.Operator(), dead, "dead@example.com"))
		for want, damage := range map[string]string{
			"a deleted person has no pending run":                     `UPDATE run SET person_id = $1 WHERE status = 'pending'`,
			"a deleted person has no SCIM user":                       `UPDATE scim_user SET person_id = $1`,
			"a deleted person has no favorite and no idempotency key": `UPDATE favorite SET person_id = $1`,
			"the row of a deleted person has no personal data":        `UPDATE person SET email = 'x@example.com' WHERE id = $1`,
			"only deleted people have no e-mail address":              `UPDATE person SET deleted = NULL WHERE id = $1`,
			"a deleted person has no identity, link or notice":        `UPDATE person_identity SET person_id = $1`,
			"a deleted person has no session":                         `UPDATE web_session SET person_id = $1`,
			"no access token belongs to a deleted person":             `UPDATE access_token SET person_id = $1`,
			"a deleted person has no device and has approved none":    `UPDATE device SET person_id = $1`,
			"a deleted person is not a member of a company":           `UPDATE company_member SET person_id = $1 WHERE role <> 'admin' AND person_id = '` + l.id + `'`,
			"a deleted person has no tokens":                          `INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ($1, 5, 0, '', 0)`,
		} {
			if found := h.Damage(checks, damage, dead); !found[want] {
				h.Errorf("%s: found %v", want, found)
			}
		}
		h.OK(h.data.ErasePerson(h.Context(), dead))
	})
}

// waits waits until a transaction waits for another. SQLite has it wait before it
// begins.
func (h *fixture) waits() {
	h.Helper()
	if h.DB.Dialect.Name == "postgres" {
		watch.Until(h.T, "somebody to wait", func() bool {
			return h.Count(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) == 1
		})
	}
}

// TestTheLastAdminIsCheckedUnderTheLock: the other admins leave, and a role
// gets more permissions, while the deletion waits for the company.
func TestTheLastAdminIsCheckedUnderTheLock(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		ctx, id := h.Context(), h.site.Person(email)
		boss, plain := h.site.Person("boss@example.com"), h.site.Person("plain@example.com")
		c := h.site.Company("Studio", company.TeamPlan)
		h.site.Admit(c, "boss@example.com", company.CompanyPermissions...)
		h.site.Admit(c, "plain@example.com")
		h.site.Admit(c, email, company.ManageTeams)
		left := make(chan error, 1)
		h.Do(func(tx *sqldb.Tx) error {
			if err := company.Lock(ctx, tx, c); err != nil {
				return err
			}
			go func() { left <- h.leave(id) }()
			h.waits()
			if _, err := tx.Exec(ctx, `UPDATE company_role SET permissions = '["MANAGE_MEMBERS"]' WHERE company_id = $1
				AND name = (SELECT role FROM company_member WHERE company_id = $1 AND person_id = $2)`, c, id); err != nil {
				return err
			}
			_, err := company.RemoveMember(ctx, tx, c, boss)
			return err
		})
		h.refused(<-left, fault.Forbidden, "last_admin")
		if n := h.Count(`SELECT count(*) FROM company_member WHERE company_id = $1`, c); n != 2 {
			h.Errorf("%d members are left, want two with %s", n, plain)
		}
	})
}

// TestPeopleAreLockedBeforeCompanies, so that deletions and changes of
// memberships cannot deadlock.
func TestPeopleAreLockedBeforeCompanies(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		if h.DB.Dialect.Name != "postgres" {
			return // which has one writer
		}
		ctx, id := h.Context(), h.site.Person(email)
		c := h.site.Company("Studio", company.TeamPlan)
		boss := h.site.Person("boss@example.com")
		h.site.Admit(c, "boss@example.com", company.CompanyPermissions...)
		h.site.Admit(c, email)
		team := h.site.Team(c, "Design", "maker", email)
		for name, act := range map[string]func() error{
			"company": func() error {
				_, err := h.site.Companies.Members.SetMember(ctx, principal.Operator(), c, id, company.RoleMember)
				return err
			},
			"permissions": func() error {
				_, err := h.site.Companies.Members.SetMemberPermissions(ctx, principal.Operator(), c, email, nil)
				return err
			},
			"token": func() error {
				_, _, err := h.site.Accounts.AccessTokens.CreateCompanyToken(ctx, principal.Principal{PersonID: boss}, c, id, "x")
				return err
			},
			"team": func() error {
				_, err := h.site.Companies.TeamMembers.SetTeamMember(ctx, principal.Operator(), team, id, "maker")
				return err
			},
		} {
			done := make(chan error, 1)
			h.Do(func(tx *sqldb.Tx) error {
				if err := person.Lock(ctx, tx, id); err != nil {
					return err
				}
				go func() { done <- act() }()
				h.waits()
				for _, query := range []string{
					`SELECT id FROM company WHERE id = $1 FOR UPDATE NOWAIT`,
					`SELECT person_id FROM company_member WHERE company_id = $1 FOR UPDATE NOWAIT`,
				} {
					if _, err := tx.Exec(ctx, query, c); err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
				}
				return nil
			})
			h.OK(<-done)
		}
	})
}

func TestADeletedPersonGetsNoWebhookSecret(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		ctx, id := h.Context(), h.site.Person(email)
		h.OK(h.leave(id))
		secrets := webhook.NewSecrets(h.site.Keys.BoxFor("webhook"), time.Hour)
		by := principal.Principal{PersonID: id, AccountID: id}
		_, err := secrets.GetFor(ctx, h.site.DB, by)
		h.refused(err, fault.Unauthenticated, "")
		_, err = secrets.RotateFor(ctx, h.site.DB, by)
		h.refused(err, fault.Unauthenticated, "")
		h.refused(h.DB.Write(ctx, func(tx *sqldb.Tx) error { return webhook.RecordFirstSecret(ctx, tx, id) }), fault.Unauthenticated, "")
		if n := h.Count(`SELECT count(*) FROM webhook_secret`); n != 0 {
			h.Errorf("%d secrets", n)
		}
		h.OK(h.data.ErasePerson(ctx, id))
	})
}
