package personaldata_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/accounttest"
	"atelier/internal/account/devicelogin"
	"atelier/internal/account/personaldata"
	"atelier/internal/account/signin"
	"atelier/internal/account/signup"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/board"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/resumable"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/savedflow"
)

// checks are the checks of all packages that store data about people.
var checks = slices.Concat(generationtest.Checks, personaldata.Checks, person.Checks, session.Checks, company.Checks, credential.Checks, device.Checks,
	idtoken.Checks, audit.Checks, board.Checks)

// fixture is an installation in which a person can have every kind of data.
type fixture struct {
	*generationtest.Installation
	site   *accounttest.Site
	boards *board.Boards
	flows  *savedflow.Service
	data   *personaldata.Service
}

// eachDatabase runs fn with a fixture on each kind of database.
func eachDatabase(t *testing.T, fn func(h *fixture)) {
	t.Helper()
	dbtest.EachFixture(t, checks, func(w dbtest.Fixture) {
		h := &fixture{Installation: generationtest.New(w, generationtest.Unlimited)}
		h.site = accounttest.New(w, w.DB, accounttest.Options{Now: w.Now})
		h.boards = &board.Boards{DB: w.DB, Hub: h.Hub}
		h.flows = &savedflow.Service{DB: w.DB, Catalog: h.Catalog}
		h.data = &personaldata.Service{DB: w.DB, Blobs: h.Blobs, Queue: h.site.Queue}
		fn(h)
		if _, problems, err := audit.Verify(w.Context(), w.DB, nil); err != nil || len(problems) > 0 {
			w.Errorf("audit log: %v, %v", problems, err)
		}
	})
}

// Words that occur only in the person's data.
const (
	email    = "quetzalcoatl@example.com"
	name     = "quetzalcoatl"
	prompt   = "axolotl at dawn"
	metadata = `{"note":"mezcal"}`
	filename = "tezcatlipoca.png"
	agent    = "Ocelot/7"
	hook     = "https://127.0.0.1:8443/huitzilopochtli"
	plugin   = "xochipilli"
	note     = "chalchiuhtlicue"
	key      = "popocatepetl"
)

// canaries are the words that must not remain after the deletion of a person.
var canaries = []string{name, "axolotl", "mezcal", "tezcatlipoca", "Ocelot", "huitzilopochtli", plugin, note, key}

// life is all the data of a person.
type life struct {
	id       string
	company  string
	team     string
	session  signin.Session
	cookie   string
	device   devicelogin.Login
	codes    device.Codes // approved, not fetched
	token    string       // personal
	company2 string       // token of the company
	own      run.Run
	work     run.Run // created for the team
	upload   string
	teamFile string
	item     library.ExportedResult
	picture  []byte
	input    []byte // uploaded with a run
}

// live creates a person with every kind of data that a person can have.
func (h *fixture) live() (l life) {
	h.Helper()
	ctx := h.Context()
	v := session.Client{UserAgent: agent, Address: "192.0.2.7"}
	up, err := h.site.Accounts.SignUp.SignUp(ctx, signup.Application{Email: email, Password: accounttest.Password, Client: v})
	h.OK(err)
	l.id = up.Person.ID
	h.Do(func(tx *sqldb.Tx) error { _, err := person.SetVerified(ctx, tx, l.id, email); return err })
	h.Give(l.id, 100)
	h.site.Person("boss@example.com")
	l.company = h.site.Company("Studio", company.TeamPlan)
	h.site.Admit(l.company, "boss@example.com", company.CompanyPermissions...)
	h.site.Admit(l.company, email)
	l.team = h.site.Team(l.company, "Design", "maker", email)
	h.Give(l.team, 100)

	in, err := h.site.Accounts.SignIn.SignIn(ctx, email, accounttest.Password, v)
	h.OK(err)
	_, err = h.site.Accounts.SignIn.SignIn(ctx, strings.ToUpper(email), "a wrong one", v)
	if !fault.Is(err, fault.Unauthenticated) {
		h.Fatalf("wrong password: %v", err)
	}
	l.cookie = in.Cookie
	l.session, err = h.site.Accounts.SignIn.FindSession(ctx, in.Cookie, v.Address)
	h.OK(err)
	fetch := func(claim bool) (device.Codes, devicelogin.Login) {
		codes, err := h.site.Accounts.Devices.Start(ctx, "figma", v)
		h.OK(err)
		h.OK(h.site.Decide(l.session, codes, true))
		if !claim {
			return codes, devicelogin.Login{}
		}
		signed, err := h.site.Accounts.Devices.Poll(ctx, codes.DeviceCode, v)
		h.OK(err)
		return codes, signed
	}
	_, l.device = fetch(true)
	l.codes, _ = fetch(false)
	_, l.token = h.site.Token(email, "")
	_, l.company2 = h.site.Token(email, l.company)
	h.OK(h.site.Accounts.SignIn.RequestPasswordReset(ctx, email, v))
	h.Exec(`INSERT INTO person_identity (issuer, subject, person_id, provider, refresh, checked, created) VALUES ('https://id.example', $1, $2, 'corp', '', 1, 1)`, name, l.id)
	h.Exec(`INSERT INTO scim_user (company_id, person_id, external_id, active, role, attributes, created, updated) VALUES ($1, $2, $3, TRUE, '', '{}', 1, 1)`, l.company, l.id, name)
	other := h.site.Company("Other", company.TeamPlan)
	_, _, err = h.site.Companies.Invitations.CreateInvitation(ctx, principal.Operator(), company.Draft{CompanyID: other, Email: email})
	h.OK(err)

	// Contents of the person's own account and of the team.
	secrets := webhook.NewSecrets(h.site.Keys.BoxFor("webhook"), time.Hour)
	h.Do(func(tx *sqldb.Tx) error { _, err := secrets.GetSecret(ctx, tx, l.id); return err })
	l.picture = generationtest.PNG(777)
	u, err := h.Library.AddUpload(ctx, principal.Principal{PersonID: l.id, AccountID: l.id}, l.id, filename, h.Take(l.picture))
	h.OK(err)
	l.upload = u.ID
	gone, err := h.Library.AddUpload(ctx, principal.Principal{PersonID: l.id, AccountID: l.id}, l.id, "old "+filename, h.Take(generationtest.PNG(778)))
	h.OK(err)
	h.OK(h.Library.DeleteUpload(ctx, principal.Principal{PersonID: l.id, AccountID: l.id}, l.id, gone.ID))
	t, err := h.Library.AddUpload(ctx, principal.Principal{PersonID: l.id, AccountID: l.team, TeamID: l.team}, l.team, "team.png", h.Take(generationtest.PNG(779)))
	h.OK(err)
	l.teamFile = t.ID
	unfinished := resumable.Service{DB: h.DB, Library: h.Library, Intake: h.Intake, Settings: resumable.Settings{Lifetime: 24 * time.Hour, MaxUnfinished: 9, MaxBytes: 1 << 20}}
	for _, account := range []string{l.id, l.team} {
		p := principal.Principal{PersonID: l.id, AccountID: account}
		part, _, err := unfinished.Create(ctx, p, resumable.Draft{Name: "half " + filename, Length: 100, Key: key + account})
		h.OK(err)
		_, err = unfinished.Append(ctx, p, part.ID, resumable.Chunk{Length: 4, Body: strings.NewReader("RIFF")})
		h.OK(err)
	}
	l.own = h.make(generationtest.Own(l.id), func(d *generation.Draft) {
		d.Inputs, d.Metadata, d.WebhookURL, d.Plugin, d.Key, d.Fingerprint = map[string]any{"prompt": prompt}, metadata, hook, plugin, key, "f"
	})
	l.work = h.make(generationtest.In(l.id, l.team), func(d *generation.Draft) { d.Inputs = map[string]any{"prompt": "a chair"} })
	l.input = generationtest.PNG(780)
	withFile := h.Draft(generationtest.Own(l.id), "media")
	withFile.Files, withFile.Inputs = []ingest.StoredFile{h.Take(l.input)}, map[string]any{"picture": map[string]any{"kind": "MULTIPART", "file_index": int64(0)}}
	h.Create(withFile)
	h.OK(h.Runs.EndRun(ctx, h.Claim("w"), generation.Outcome{State: run.Failed, ErrorCode: "INTERNAL_SERVER_ERROR", ErrorText: "It broke."}))
	kept := dbtest.Get(h.Fixture, func(tx *sqldb.Tx) ([]library.ExportedResult, error) {
		return library.ExportResults(ctx, tx, l.id, library.ExportCursor{}, 10)
	})
	l.item = kept[0]
	h.OK(h.Library.SetFavorite(ctx, principal.Principal{PersonID: l.id, AccountID: l.id}, l.item.ID, true))
	mine := principal.Principal{PersonID: l.id, AccountID: l.id}
	b, err := h.boards.CreateBoard(ctx, mine, note)
	h.OK(err)
	_, err = h.boards.AddNode(ctx, mine, b.ID, board.Match{}, board.Draft{Kind: board.Text, Text: note, Box: board.Box{Width: 10, Height: 10}})
	h.OK(err)
	_, err = h.boards.CreateBoard(ctx, principal.Principal{PersonID: l.id, AccountID: l.team, TeamID: l.team}, "Moods")
	h.OK(err)
	_, err = h.flows.Create(ctx, mine, savedflow.Draft{
		Name:  note,
		Steps: []any{map[string]any{"id": "draw", "tool": "cost", "inputs": map[string]any{"prompt": note}}},
	})
	h.OK(err)
	return l
}

// make creates a run that succeeds.
func (h *fixture) make(who principal.Principal, change func(*generation.Draft)) run.Run {
	h.Helper()
	d := h.Draft(who, "cost")
	change(&d)
	h.Create(d)
	r := h.Claim("w")
	made := h.Results(1)
	made[0].Note = "No idea what this is: " + r.Prompt
	h.OK(h.Runs.EndRun(h.Context(), r, generation.Outcome{State: run.Succeeded, Results: made, Took: time.Second}))
	return r
}

// leave deletes a person at their own request.
func (h *fixture) leave(id string) error {
	return h.data.DeletePerson(h.Context(), principal.Principal{PersonID: id, Address: "192.0.2.7"}, id, strings.ToUpper(email))
}

// finish runs the job of a deletion as a worker would.
func (h *fixture) finish() {
	h.Helper()
	done := make(chan error, 1)
	handler := personaldata.NewEraseHandler(h.DB)
	do := handler.Do
	handler.Do = func(ctx context.Context, w queue.Work) error { err := do(ctx, w); done <- err; return err }
	q, err := queue.Open(h.DB, queue.Options{Now: time.Now})
	h.OK(err)
	ctx, stop := context.WithCancel(h.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx, []queue.Handler{handler}) }()
	select {
	case err := <-done:
		h.OK(err)
	case <-time.After(time.Minute):
		h.Error("no job came")
	}
	stop()
	h.OK(<-ended)
}

// hits returns the tables and rows that contain a text.
func (h *fixture) hits(text string) (found []string) {
	h.Helper()
	ctx := h.Context()
	tables := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`
	if h.DB.Dialect.Name == "postgres" {
		tables = `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`
	}
	one := func(row sqldb.Scanner) (s string, err error) { err = row.Scan(&s); return s, err }
	h.OK(h.DB.Read(ctx, func(tx *sqldb.Tx) error {
		names, err := sqldb.All(ctx, tx, tables, nil, one)
		if err != nil {
			return err
		}
		if len(names) < 40 {
			return errors.New("too few tables")
		}
		for _, table := range names {
			whole := `CAST(t AS TEXT)`
			if h.DB.Dialect.Name != "postgres" {
				columns, err := sqldb.All(ctx, tx, `SELECT 'coalesce(CAST("' || name || '" AS TEXT), '''')' FROM pragma_table_info('`+table+`')`, nil, one)
				if err != nil {
					return err
				}
				whole = strings.Join(columns, ` || '|' || `)
			}
			rows, err := sqldb.All(ctx, tx, `SELECT `+whole+` FROM "`+table+`" t`, nil, one)
			if err != nil {
				return err
			}
			for _, row := range rows {
				if strings.Contains(strings.ToLower(row), strings.ToLower(text)) {
					found = append(found, table+": "+row)
				}
			}
		}
		return nil
	}))
	return found
}

// stored reports whether the blob store contains the bytes.
func (h *fixture) stored(data []byte) bool {
	h.Helper()
	for _, key := range h.Files() {
		body, _, err := h.Blobs.Open(h.Context(), key, 0, -1)
		h.OK(err)
		got, err := io.ReadAll(body)
		body.Close()
		h.OK(err)
		if bytes.Contains(got, data) {
			return true
		}
	}
	return false
}

// refused requires an error with a code and a reason.
func (h *fixture) refused(err error, code fault.Code, reason string) {
	h.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code || reason != "" && f.Details["reason"] != reason {
		h.Errorf("got %v, want %s %s", err, code, reason)
	}
}

// export returns the files of a person's archive.
func (h *fixture) export(id string) map[string]string {
	h.Helper()
	archive, err := h.data.ExportPerson(h.Context(), principal.Principal{PersonID: id}, id)
	h.OK(err)
	var b bytes.Buffer
	h.OK(archive.Write(h.Context(), &b, nil))
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	h.OK(err)
	files := map[string]string{}
	for _, f := range r.File {
		body, err := f.Open()
		h.OK(err)
		text, err := io.ReadAll(body)
		h.OK(err)
		files[f.Name] = string(text)
	}
	return files
}

// sweep runs the periodic clean-up of a node.
func (h *fixture) sweep() error {
	return account.DeleteExpired(h.Context(), h.DB, h.site.Devices, h.site.Tokens)
}
