// Package generation prices, creates, shows, cancels and settles runs. Package
// runner executes them with engines.
//
//	draft ──check──▶ checked ──one transaction──▶ queued … ended ──one transaction──▶ settled
//	                            key, rate, cap,              status, results, money,
//	                            hold, run, queue             event, history
//
// A create request locks the row of its person, so that limits per person are
// checked for one request at a time, across all nodes. A rejected request
// changes nothing.
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

// Settings are the operator's settings for runs.
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
	TopUp            int64 // tokens of the free top-up; 0 if there is none
	Storage          quota.Limits
	Priorities       Priorities
}

// Parts are the dependencies of a Service.
type Parts struct {
	DB       *sqldb.DB
	Catalog  *catalog.Catalog
	Policy   *policy.Checker
	Guard    *webhook.Guard
	Hub      *pubsub.Hub // notified of every change of a run, by the ids of the run and of its account
	Budgets  *budget.Service
	Links    library.URLSigner // signs the URLs of results in webhook events
	Settings Settings
	// Queued is called after a run was queued for an engine and the transaction
	// was committed.
	Queued func(engine string)
	// FlowDue is called after the next steps of a flow became due and the
	// transaction was committed. It is nil if nobody waits for it.
	FlowDue func()
	// Ended is called after a webhook event was queued and the transaction was
	// committed.
	Ended func()
}

// Service creates and ends runs. It is safe for concurrent use.
type Service struct {
	Parts
	windows []ratelimit.Window

	validator   validator
	pacing      pacing
	moderations moderations
	arriving    *throttle.Slots // create requests being received by this node, by person
}

// New returns a service with the given dependencies.
func New(p Parts) *Service {
	if p.FlowDue == nil {
		p.FlowDue = func() {}
	}
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

// ExpectCreate records that a create request of a person is being received. The
// record lasts until done is called, which can take a while if the request has
// files. Meanwhile, early polls do not use up the rate limit that this request
// needs. The record exists only in the memory of this node; whether the run is
// accepted is decided in the transaction of the request.
func (s *Service) ExpectCreate(personID string) (done func()) {
	done, _ = s.arriving.Take(personID)
	return done
}

// lookEvery is the interval at which WatchAvailability reads which engines are
// unavailable.
const lookEvery = time.Second

// WatchAvailability regularly reads which engines are unavailable, according to
// their workers, until ctx ends. If reading fails, the last known state stays
// in use, because this state only decides how long clients wait between polls.
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

// AudienceOf returns the properties of a principal that decide which tools are
// visible to it.
func AudienceOf(p principal.Principal) catalog.Audience {
	return catalog.Audience{
		CompanyID: p.CompanyID,
		TeamID:    p.TeamID,
		Role:      p.Role.Name,
		Allowed:   catalog.NewIDSet(p.Role.ToolsAllowed),
		Blocked:   catalog.NewIDSet(p.Role.ToolsBlocked),
	}
}

// Draft is a request of a client to create a run, or to return its price.
type Draft struct {
	Principal  principal.Principal
	ToolID     string
	ToolHash   string
	Inputs     map[string]any // input values in the form that catalog.Tool.ParseInputs accepts
	NumResults *int64
	WebhookURL string
	Metadata   string // compact JSON object, or ""
	Plugin     string
	Files      []ingest.StoredFile // files sent with the request, by index
	// Key is the idempotency key, or "" if there is none. Fingerprint is a hash
	// of the request, by which a repeated request is recognized.
	Key, Fingerprint string
	// RetryOf is an earlier run of the same flow, or "". Its finished steps with
	// the same inputs are taken over.
	RetryOf string
	// MayRepeat says that the client sends no idempotency key, but says when it
	// sends a request again (IsRepeat). The run is then found by the
	// fingerprint.
	MayRepeat, IsRepeat bool
}

// rateKey returns the key under which the rate limit counts the create requests
// of a person, and the person's early polls.
func rateKey(personID string) ratelimit.Key {
	return ratelimit.Key{Name: "create/person/" + personID, Subject: personID}
}
