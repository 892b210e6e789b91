// Package generation is the life of a run as its people see it: it is priced,
// created, watched, cancelled and settled here. What runs it is elsewhere.
//
//	draft ──check──▶ accepted ──one transaction──▶ queued … ended ──one transaction──▶ settled
//	                            key, rate, cap,              status, results, money,
//	                            hold, run, queue             event, history
//
// Creating locks the person: everything that is counted per person is counted
// one request at a time, on all nodes. A request that is refused has changed
// nothing.
package generation

import (
	"context"
	"math"
	"sync/atomic"
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

// Settings are what an operator decides about runs.
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

// Parts are what runs are made of.
type Parts struct {
	DB       *sqldb.DB
	Catalog  *catalog.Catalog
	Policy   *policy.Checker
	Guard    *webhook.Guard
	Hub      *pubsub.Hub
	Budgets  *budget.Keeper
	Links    library.Links // addresses of results in webhook events
	Settings Settings
	// Queued hears of every run that waits for an engine, after its commit.
	Queued func(engine string)
	// Ended hears of every event that waits to be sent, after its commit.
	Ended func()
}

// Service creates and ends runs. It is safe for concurrent use.
type Service struct {
	Parts
	windows     []ratelimit.Window
	unavailable atomic.Pointer[map[string]time.Time] // engines whose server is, since when

	moderations moderations
	arriving    *throttle.Places // creates of this node, by person
}

// New makes a service.
func New(p Parts) *Service {
	return &Service{
		Parts: p,
		windows: []ratelimit.Window{
			{Most: p.Settings.CreatePerMinute, Span: time.Minute},
			{Most: p.Settings.CreatePerHour, Span: time.Hour},
		},
		arriving: throttle.NewPlaces(math.MaxInt),
	}
}

// Expect notes that a create of a person arrives, perhaps with files that take a
// while, until done is called. Early polls of what the person created meanwhile
// leave room for it. It is known to this node alone: the transaction of a create
// decides.
func (s *Service) Expect(personID string) (done func()) {
	done, _ = s.arriving.Take(personID)
	return done
}

// lookEvery is how often it is looked whether engines' servers are away.
const lookEvery = time.Second

// Watch keeps in mind which engines' servers are away, as the workers find
// them, until ctx ends. It is a courtesy to those who poll: what cannot be
// looked up stays as it was.
func (s *Service) Watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		_ = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
			away, err := run.UnavailableEngines(ctx, tx)
			if err == nil {
				s.unavailable.Store(&away)
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

// isUnavailable tells whether an engine's server is.
func (s *Service) isUnavailable(engine string) bool {
	away := s.unavailable.Load()
	if away == nil {
		return false
	}
	_, is := (*away)[engine]
	return is
}

// AudienceOf returns the part of a principal that decides about the visibility
// of tools.
func AudienceOf(p principal.Principal) catalog.Audience {
	return catalog.Audience{
		CompanyID: p.CompanyID,
		TeamID:    p.TeamID,
		Role:      p.Role.Name,
		Allowed:   catalog.IDs(p.Role.ToolsAllowed),
		Blocked:   catalog.IDs(p.Role.ToolsBlocked),
	}
}

// Draft is a run that somebody asks for.
type Draft struct {
	Principal  principal.Principal
	ToolID     string
	ToolHash   string
	Inputs     map[string]any // as catalog.Tool.Fill takes them
	NumResults *int64
	WebhookURL string
	Metadata   string // a JSON object, compact; "" for none
	Plugin     string
	Files      []ingest.Taken // that came with the request, by index
	// Key is the idempotency key, "" for none, and Fingerprint what the request
	// is recognised by.
	Key, Fingerprint string
}

// rateKey is what creates, and polls that come too early, are counted under.
func rateKey(personID string) ratelimit.Key {
	return ratelimit.Key{Name: "create/person/" + personID, Subject: personID}
}
