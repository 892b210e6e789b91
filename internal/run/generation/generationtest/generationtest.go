// Package generationtest prepares a test database for tests of runs: people,
// teams, tools, files, and the service that creates runs.
package generationtest

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/keyring"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/queue"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/media"
	"atelier/internal/file/quota"
	"atelier/internal/file/resumable"
	"atelier/internal/money/budget"
	"atelier/internal/money/ledger"
	"atelier/internal/money/report"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/policy"
	"atelier/internal/run/run"
)

// Engine is the name of the engine of all tools in this package.
const Engine = "script"

// tools are the manifests of the tools of an Installation, by slug.
var tools = map[string]string{
	"free":  "price: {type: FREE}\n" + picture + "fields: [{key: prompt, type: PROMPT, label: P}, {key: seed, type: SEED, label: S}, {key: strength, type: NUM, label: N, min: 0, max: 10, default: 1.5}]\n",
	"cost":  "price: {type: COST, tokens: 3}\n" + picture + "fields: [{key: prompt, type: PROMPT, label: P}]\n",
	"needs": "price: {type: COST, tokens: 3}\n" + picture + "fields: [{key: prompt, type: PROMPT, label: P, required: true}]\n",
	"many":  "price: {type: COST, tokens: 2}\nnum_results: {min: 1, max: 8, default: 2}\n" + picture,
	"media": "price: {type: FREE}\n" + picture + "fields:\n" +
		"- {key: picture, type: IMG, label: P, accept: [image/png]}\n- {key: pictures, type: IMGS, label: P}\n- {key: sound, type: AUDIO, label: A}\n",
	"quick": "price: {type: COST, tokens: 3}\ntimeout: 1s\n" + picture,
	"brief": "price: {type: COST, tokens: 3}\ntimeout: 4s\n" + picture,
	"words": "price: {type: FREE}\noutput: {type: TEXT, mime_types: [text/plain]}\nengine: {name: script}\n",
}

const picture = "output: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n"

// Checks are the invariants of all tables that runs change.
var Checks = slices.Concat(run.Checks, run.FlowChecks, ledger.Checks, webhook.Checks, asset.Checks, library.Checks, resumable.Checks, quota.Checks, catalog.Checks, ratelimit.Checks, report.Checks, budget.Checks)

// Installation is a test installation without workers. Its clock advances only when
// the test advances it.
type Installation struct {
	dbtest.Fixture
	Blobs   blob.Store
	Intake  *ingest.Pipeline
	Library *library.Library
	Catalog *catalog.Catalog
	Hub     *pubsub.Hub
	Budgets *budget.Service
	MailBox keyring.Box // encrypts mail in the queue
	Runs    *generation.Service

	// Queued and Ended are the callbacks of the service. A test may replace
	// them before it creates a run.
	Queued func(engine string)
	Ended  func()
}

// EachInstallation calls fn with a new Installation on each kind of database, in parallel with
// other tests, and verifies Checks after fn. change, which may be nil, changes
// the operator's settings.
func EachInstallation(t *testing.T, change func(*generation.Settings), fn func(h *Installation)) {
	t.Helper()
	dbtest.EachFixture(t, Checks, func(w dbtest.Fixture) { fn(New(w, change)) })
}

// New returns an Installation on the database of a fixture. change, which may be nil,
// changes the operator's settings.
func New(w dbtest.Fixture, change func(*generation.Settings)) *Installation {
	w.Helper()
	h := &Installation{Fixture: w, Hub: pubsub.New(), Queued: func(string) {}, Ended: func() {}}
	var err error
	h.Blobs, err = blob.Open(w.Context(), "file://"+w.TempDir(), blob.Options{Now: time.Now})
	w.OK(err)
	w.Cleanup(func() { h.Blobs.Close() })
	h.Intake = &ingest.Pipeline{Blobs: h.Blobs, Analyzer: media.NewAnalyzer(media.Limits{Pixels: 1_000_000, Frames: 100, Duration: time.Hour})}
	h.Library = &library.Library{DB: w.DB, Blobs: h.Blobs}
	h.Catalog = catalog.New(w.DB, nil)
	h.Apply(tools)
	ring, err := keyring.New(strings.Repeat("A", 43) + "=")
	w.OK(err)
	jobs, err := queue.Open(w.DB, queue.Options{Now: w.Now})
	w.OK(err)
	h.MailBox = ring.BoxFor("mail")
	h.Budgets = &budget.Service{
		Post:   mailqueue.Outbox{Queue: jobs, Box: h.MailBox},
		Guard:  guard(),
		Wake:   func() { h.Ended() },
		AppURL: "https://atelier.example",
	}
	h.Runs = h.Service(change)
	return h
}

// Service returns another service on the same database, as another node would
// have. change, which may be nil, changes the operator's settings.
func (h *Installation) Service(change func(*generation.Settings)) *generation.Service {
	s := generation.Settings{
		InputFiles:      12,
		MetadataBytes:   8192,
		PluginLength:    64,
		ActiveRuns:      10,
		CreatePerMinute: 10,
		CreatePerHour:   100,
		NumResults:      64,
		KeyLifetime:     24 * time.Hour,
		KeyWait:         time.Minute,
		PollMin:         time.Second,
		PollMax:         10 * time.Second,
	}
	if change != nil {
		change(&s)
	}
	return generation.New(generation.Parts{
		DB:       h.DB,
		Catalog:  h.Catalog,
		Policy:   &policy.Checker{Rules: policy.Default()},
		Hub:      h.Hub,
		Settings: s,
		Budgets:  h.Budgets,
		Guard:    guard(),
		Queued:   func(engine string) { h.Queued(engine) },
		Ended:    func() { h.Ended() },
	})
}

// guard returns a webhook guard that allows receivers on the local host.
func guard() *webhook.Guard {
	return webhook.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
}

// Unlimited raises the limits per person to values that no test reaches.
func Unlimited(s *generation.Settings) {
	s.ActiveRuns = 10_000
	s.CreatePerMinute = 10_000
	s.CreatePerHour = 10_000
}

// Apply replaces the catalog with the given manifests, by slug. A name is added
// to each manifest.
func (h *Installation) Apply(manifests map[string]string) {
	h.Helper()
	h.ApplyElsewhere(manifests)
	_, err := h.Catalog.RefreshSnapshot(h.Context())
	h.OK(err)
}

// ApplyElsewhere replaces the catalog as if another node had done so. The
// catalog of this node is not refreshed.
func (h *Installation) ApplyElsewhere(manifests map[string]string) {
	h.Helper()
	files := fstest.MapFS{}
	for slug, text := range manifests {
		files[slug+".yaml"] = &fstest.MapFile{Data: []byte("name: " + slug + "\n" + text)}
	}
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: files})
	h.OK(err)
	if len(set.Problems) > 0 {
		h.Fatalf("manifests: %v", set.Problems)
	}
	_, err = catalog.Apply(h.Context(), h.DB, set)
	h.OK(err)
}

// Manifest returns the manifest of the tool with the given slug.
func Manifest(slug string) string { return tools[slug] }

// Tool returns the tool with the given slug. It fails the test if there is
// none.
func (h *Installation) Tool(slug string) *catalog.Tool {
	h.Helper()
	for _, t := range h.Catalog.CurrentSnapshot().AllTools() {
		if t.Slug == slug {
			return t
		}
	}
	h.Fatalf("there is no tool %s", slug)
	return nil
}

// Person creates a person whose personal account has the given number of
// tokens, and returns their id.
func (h *Installation) Person(tokens int64) string {
	h.Helper()
	id := ids.New()
	h.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $2, lower($2), TRUE, '', 1)`, id, id+"@example.com")
	h.Give(id, tokens)
	return id
}

// Company creates a company without teams and returns its id.
func (h *Installation) Company() string {
	h.Helper()
	id := ids.New()
	h.Exec(`INSERT INTO company (id, name, plan, created) VALUES ($1, 'Company', 'ENTERPRISE', 1)`, id)
	return id
}

// TeamOf creates a team in a company, gives the team the tokens, and returns
// its id. The team has no members, because package generation does not check
// membership.
func (h *Installation) TeamOf(companyID string, tokens int64) string {
	h.Helper()
	id := ids.New()
	h.Exec(`INSERT INTO team (id, company_id, name, removed, created) VALUES ($1, $2, 'Team', FALSE, 1)`, id, companyID)
	h.Give(id, tokens)
	return id
}

// Team creates a company with one team that has the given number of tokens, and
// returns the id of the team.
func (h *Installation) Team(tokens int64) string {
	h.Helper()
	return h.TeamOf(h.Company(), tokens)
}

// Give grants tokens to an account.
func (h *Installation) Give(accountID string, tokens int64) {
	h.Helper()
	if tokens == 0 {
		return
	}
	h.Do(func(tx *sqldb.Tx) error {
		_, err := ledger.Grant(h.Context(), tx, accountID, tokens, ledger.Granted, "")
		return err
	})
}

// Balance returns the balance of an account, assuming that there is no monthly
// allowance.
func (h *Installation) Balance(accountID string) ledger.Balance {
	h.Helper()
	return dbtest.Get(h.Fixture, func(tx *sqldb.Tx) (ledger.Balance, error) {
		all, err := ledger.Balances(h.Context(), tx, []string{accountID}, 0)
		return all[accountID], err
	})
}

// Own returns the principal of a person who acts for their personal account,
// with the credential of a device.
func Own(personID string) principal.Principal {
	return principal.Principal{
		PersonID:   personID,
		AccountID:  personID,
		Credential: principal.Credential{Kind: principal.IDToken, ID: "device of " + personID},
	}
}

// In returns the principal of a person who acts for a team, with a role that
// may run tools.
func In(personID, teamID string) principal.Principal {
	p := Own(personID)
	p.AccountID = teamID
	p.TeamID = teamID
	p.Role.Permissions = []company.Permission{company.Generate}
	return p
}

// Draft returns a draft for the tool with the given slug, without inputs and
// with the default number of results.
func (h *Installation) Draft(who principal.Principal, slug string) generation.Draft {
	h.Helper()
	t := h.Tool(slug)
	d := generation.Draft{Principal: who, ToolID: t.ID, ToolHash: t.Hash, Inputs: map[string]any{}}
	if t.NumResults != nil {
		n := t.NumResults.Default
		d.NumResults = &n
	}
	return d
}

// Create creates a run. It fails the test if the run is rejected.
func (h *Installation) Create(d generation.Draft) run.Run {
	h.Helper()
	c, err := h.Runs.CreateRun(h.Context(), d)
	h.OK(err)
	return h.Run(c.Run.ID)
}

// Run reads a run from the database.
func (h *Installation) Run(id string) (r run.Run) {
	h.Helper()
	h.OK(h.DB.Read(h.Context(), func(tx *sqldb.Tx) (err error) { r, err = run.GetUnscoped(h.Context(), tx, id); return err }))
	return r
}

// Claim claims the next queued run for the named worker. It fails the test if
// there is none.
func (h *Installation) Claim(worker string) (r run.Run) {
	h.Helper()
	h.Do(func(tx *sqldb.Tx) error {
		one, _, ok, err := run.Claim(h.Context(), tx, run.ClaimOptions{Engine: Engine, Worker: worker, Lease: 30 * time.Second})
		if err == nil && !ok {
			h.Fatal("nothing to claim")
		}
		r = one
		return err
	})
	return r
}

// Count executes a query that returns a single number.
func (h *Installation) Count(query string, args ...any) (n int64) {
	h.Helper()
	h.OK(h.DB.QueryRow(h.Context(), query, args...).Scan(&n))
	return n
}
