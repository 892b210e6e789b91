// Package run keeps the runs of tools: each row is a state machine, and what
// decides is always a conditional update of it.
//
//	          claim                 end
//	queued ──────────▶ running ──────────▶ succeeded, failed, cancelled
//	  │  ▲                │
//	  │  └── lost, returned
//	  └──cancel, given up──▶ cancelled, failed
//
// A run is claimed by one worker at a time, for as long as the worker renews
// its lease. Every claim has the next attempt number, and everything a worker
// says about a run carries its own: a worker that comes back late, whose run
// somebody else has taken over, changes nothing.
//
// Among people with queued runs for an engine, the one who was served longest
// ago comes next.
//
// Locks. Every transaction takes the rows that it needs in this order, so that no
// two wait for each other. A claim comes to the turn first and then to the run,
// but passes over what is locked: it waits for nobody while it holds a row. A dot
// is the lock of a foreign key.
//
//	           person  run  run_poll  rate key  run_turn  report, budget  account  system account
//	create       x     new               x         x                        x
//	poll         ·      ·      x         x
//	cancel       x      x      x                   x            x           x         x
//	give up      x      x      x                   x            x           x         x
//	end                 x      x                                x           x         x
//	hand back           x                          x
//	take back         many                     many, sorted
//	renew             many
//	claim              2nd                        1st
//
// The storage of the account comes right before the account, and what the
// installation stores comes last of all.
package run

import (
	"time"

	"atelier/internal/base/fault"
)

// State is where a run is. Callers see it as a status and, while that is
// pending, a stage.
type State string

// The states of runs.
const (
	Queued    State = "queued"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// next lists the only moves a run can make.
var next = map[State][]State{
	Queued:  {Running, Cancelled, Failed},
	Running: {Succeeded, Failed, Cancelled, Queued}, // Queued again when its worker died or stopped
}

// Pending is the status of runs that have not ended.
const Pending = "pending"

// Ended tells whether the state is final.
func (s State) Ended() bool { return len(next[s]) == 0 }

// Status is the state as callers see it.
func (s State) Status() string {
	if s.Ended() {
		return string(s)
	}
	return Pending
}

// Run is one request for results.
type Run struct {
	ID        string // a UUID
	LibraryID string

	PersonID     string
	AccountID    string // who pays
	TeamID       string // "" for the personal account
	CompanyID    string // of the team
	Credential   string // its kind
	CredentialID string
	Plugin       string

	ToolID, ToolHash, Engine string
	Inputs                   string // JSON
	Prompt                   string
	Seed                     int64
	NumResults               int64
	Metadata                 string // JSON, "" for none
	WebhookURL               string
	Estimated                time.Duration // 0 for a tool without history
	PollAfter                time.Duration

	UnitTokens     int64
	TokensHeld     int64
	AllowanceHeld  int64
	AllowanceMonth string
	TokensCharged  int64 // once it has ended
	AllowanceUsed  int64

	State     State
	Attempt   int64
	Cancel    bool   // somebody asked for its end
	Progress  *int64 // thousandths
	Preview   string // key of the newest picture of what it becomes
	Revision  int64
	ErrorCode string
	ErrorText string
	Note      string // what its engine left for the next worker

	Created, Started, Finished time.Time
}

// Input is a file that a run works on.
type Input struct {
	Field   string
	Place   int
	AssetID string
}

// Result is one thing that a run made. Its asset holds the rest.
type Result struct {
	ID                      string // a UUID
	AssetID                 string
	Type, Shape, Resolution string
	Note                    string // for whoever sees it, empty: none
}

// Output is a result as its run shows it.
type Output struct {
	ID            string
	Type          string
	MimeType      string
	Width, Height int64 // 0: has none
	Duration      time.Duration
	Size          int64
	SHA256        string
	Blurhash      string
	ToolSlug      string // "result" where nobody knows the tool any more
	Blob          string // the key of its bytes
	Thumb         string // of a small picture of it, empty: none
	Preview       string // of a first frame of it, empty: none
	Expired       bool   // the bytes are gone, or it was deleted
	Note          string // for whoever sees it, empty: none
}

// Outcome is how a run ends.
type Outcome struct {
	State         State
	TokensCharged int64
	AllowanceUsed int64
	ErrorCode     string // of failed runs
	ErrorText     string
	Results       []Result // of succeeded runs
}

// Held is a run in the hands of a worker.
type Held struct {
	ID      string
	Attempt int64
	Cancel  bool
}

// Poller is who asks about a run, and with which credential.
type Poller struct {
	PersonID     string
	Credential   string // its kind
	CredentialID string
}

// ErrNotFound is one answer for runs of others and for those that never were.
var ErrNotFound = fault.New(fault.NotFound, "There is no such run.")

// Filter narrows a list of runs. Empty parts match all.
type Filter struct {
	Status string
	ToolID string
}

// Place is where a run stands in lists: newest first.
type Place struct {
	Created time.Time
	ID      string
}
