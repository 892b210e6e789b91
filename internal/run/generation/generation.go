// Package generation is the service of runs: it prices, creates, shows, cancels and settles them.
// Package runner passes runs to engines.
//
//	draft ──check──▶ checked ──one transaction──▶ queued … ended ──one transaction──▶ settled
//	                            key, rate, cap,              status, results, money,
//	                            hold, run, queue             event, history
//
// A create locks the row of its person: limits per person are counted one request
// at a time, on all nodes. A refused request has changed nothing.
package generation

import (
	"context"
	"math"
	"time"

	"atelier/internal/base/pubsub"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/throttle"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/quota"
	"atelier/internal/money/budget"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/principal"
	"atelier/internal/run/policy"
	"atelier/internal/run/run"
)

// Settings are the settings of an operator about runs.
type Settings struct {
	InputFiles       int
	MetadataBytes    int
	PluginLength     int
	ActiveRuns       int
	CreatePerMinute  int
	CreatePerHour    int
	NumResults       int
	KeyLifetime      time.Duration
	KeyWait          time.Duration
	PollMin, PollMax time.Duration
	MonthlyAllowance int64
	TopUp            int64 // tokens that people can claim themselves; 0: none
	Storage          quota.Limits
}

// Parts are the dependencies of a Service.
type Parts struct {
	DB       *sqldb.DB
	Catalog  *catalog.Catalog
	Policy   *policy.Checker
	Guard    *webhook.Guard
	Hub      *pubsub.Hub
	Budgets  *budget.Service
	Links    library.URLSigner // addresses of results in webhook events
	Settings Settings
	// Queued is called for every run that waits for an engine, after its
	// commit.
	Queued func(engine string)
	// Ended is called for every webhook event that waits to be sent, after its
	// commit.
	Ended func()
}

// Service creates and ends runs. It is safe for concurrent use.
type Service struct {
	Parts
	windows []ratelimit.Window

	validator   validator
	pacing      pacing
	moderations moderations
	arriving    *throttle.Slots // creates of this node, by person
}

// New returns a service.
func New(p Parts) *Service {
	return &Service{
		Parts:     p,
		validator: validator{db: p.DB, catalog: p.Catalog, guard: p.Guard, settings: p.Settings},
		pacing:    pacing{min: p.Settings.PollMin, max: p.Settings.PollMax},
		windows: []ratelimit.Window{
			{Max: p.Settings.CreatePerMinute, Span: time.Minute},
			{Max: p.Settings.CreatePerHour, Span: time.Hour},
		},
		arriving: throttle.NewSlots(math.MaxInt),
	}
}

// ExpectCreate records that a create of a person is arriving, perhaps with files that take a while,
// until done is called. Early polls of the person leave room in the rate limit for it. Only this
// node has the record: the transaction of the create decides.
func (s *Service) ExpectCreate(personID string) (done func()) {
	done, _ = s.arriving.Take(personID)
	return done
}

// lookEvery is the interval at which WatchAvailability reads which engines are unavailable.
const lookEvery = time.Second

// WatchAvailability keeps a copy of the engines whose servers are unavailable, as workers report
// them, until ctx ends. The copy only lengthens the wait between polls, so after a failed read the
// last copy stays.
func (s *Service) WatchAvailability(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		_ = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
			engines, err := run.UnavailableEngines(ctx, tx)
			if err == nil {
				s.pacing.unavailable.Store(&engines)
			}
			return err
		})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// AudienceOf returns the part of a principal that decides about the visibility
// of tools.
func AudienceOf(p principal.Principal) catalog.Audience {
	return catalog.Audience{
		CompanyID: p.CompanyID,
		TeamID:    p.TeamID,
		Role:      p.Role.Name,
		Allowed:   catalog.NewIDSet(p.Role.ToolsAllowed),
		Blocked:   catalog.NewIDSet(p.Role.ToolsBlocked),
	}
}

// Draft is a run that a caller requests.
type Draft struct {
	Principal  principal.Principal
	ToolID     string
	ToolHash   string
	Inputs     map[string]any // as catalog.Tool.ParseInputs takes them
	NumResults *int64
	WebhookURL string
	Metadata   string // a JSON object, compact; "" for none
	Plugin     string
	Files      []ingest.StoredFile // sent with the request, by index
	// Key is the idempotency key, empty: none. Fingerprint is a hash by which a
	// repeated request is recognised.
	Key, Fingerprint string
}

// rateKey is the key under which the rate limit counts creates, and polls that
// come too early.
func rateKey(personID string) ratelimit.Key {
	return ratelimit.Key{Name: "create/person/" + personID, Subject: personID}
}
