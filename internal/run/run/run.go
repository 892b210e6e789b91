// Package run stores the runs of tools. Each row is a state machine, and every
// move of it is one conditional update.
//
//	          claim                 end
//	queued ──────────▶ running ──────────▶ succeeded, failed, cancelled
//	  │  ▲                │
//	  │  └── lost, returned
//	  └──cancel, given up──▶ cancelled, failed
//
// One worker at a time claims a run, for as long as it renews its lease. Every
// claim takes the next attempt number, and every write of a worker carries the
// number of its own claim: a worker that returns late, after another worker has
// taken over the run, changes nothing.
//
// Scheduling is fair among people: of the people with queued runs for an engine,
// the one served longest ago comes next. The table run_turn holds, for each
// engine and person, when the person was last served and how many runs wait.
//
// Locks. Every transaction locks rows in this order, so that no two transactions
// wait for each other. A claim locks the run_turn row before the run, but skips
// locked rows: it never waits while it holds a row. A dot is the lock of a
// foreign key.
//
//	               person  run  run_poll  rate key  run_turn  report, budget  account  system account
//	create           x     new               x         x                        x
//	poll             ·      ·      x         x
//	cancel           x      x      x                   x            x           x         x
//	give up          x      x      x                   x            x           x         x
//	end                     x      x                                x           x         x
//	return                  x                          x
//	requeue lost          many                     many, sorted
//	renew                 many
//	claim                  2nd                        1st
//
// The storage row of the account is locked right before the account, and the
// storage row of the installation last of all.
package run

import (
	"time"

	"atelier/internal/base/fault"
)

// State is the state of a run. Callers see it as a status and, while the status
// is pending, a stage.
type State string

// The states of runs.
const (
	Queued    State = "queued"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// next lists the only moves that a run can make.
var next = map[State][]State{
	Queued:  {Running, Cancelled, Failed},
	Running: {Succeeded, Failed, Cancelled, Queued}, // Queued again when its worker died or stopped
}

// Pending is the status of runs that have not ended.
const Pending = "pending"

// IsEnded reports whether the state is final.
func (s State) IsEnded() bool { return len(next[s]) == 0 }

// PublicStatus returns the state as callers see it.
func (s State) PublicStatus() string {
	if s.IsEnded() {
		return string(s)
	}
	return Pending
}

// Run is one request for results of a tool.
type Run struct {
	ID        string // a UUID, public as request_id
	LibraryID string // the first part of the public ids of the run's results

	PersonID     string // the person who started the run
	AccountID    string // the account that pays: the person's or the team's id
	TeamID       string // empty: the personal account
	CompanyID    string // the company of the team; empty: no team
	Credential   string // the kind of the credential that created the run
	CredentialID string // the id of an access token or of a device
	Plugin       string // the plugin that the create named; empty: none

	ToolID     string
	ToolHash   string        // the version of the tool that the run was checked against
	Engine     string        // the name that the tool's manifest has for its engine
	Inputs     string        // JSON object of the values and of references to files
	Prompt     string        // the value of the tool's prompt field; empty: none
	Seed       int64         // given by the caller, or random
	NumResults int64         // how many results were requested
	Metadata   string        // JSON object of the caller; empty: none
	WebhookURL string        // receives an event when the run ends; empty: none
	Estimated  time.Duration // estimated duration in whole seconds; 0: the tool has no history yet
	PollAfter  time.Duration // how long a client should wait between two polls, in whole seconds

	UnitTokens     int64  // price of one result
	TokensHeld     int64  // tokens held in the ledger until the run ends
	AllowanceHeld  int64  // free allowance held until the run ends
	AllowanceMonth string // the month of that allowance, as in 2026-11; empty: none is held
	TokensCharged  int64  // tokens charged; 0 until the run has ended
	AllowanceUsed  int64  // allowance used; 0 until the run has ended

	State       State
	Attempt     int64  // number of the newest claim; 0: never claimed
	Cancel      bool   // cancellation was requested
	Progress    *int64 // thousandths; nil: unknown
	Preview     string // blob key of the newest preview picture; empty: none
	Revision    int64  // grows with every visible change
	ErrorCode   string // of a failed run
	ErrorText   string // of a failed run, for people
	EngineState string // checkpoint of the engine, with which the next attempt can resume work on a model server

	Created  time.Time
	Started  time.Time // when it was first claimed; zero: never
	Finished time.Time // zero: it has not ended
}

// ProgressFraction returns the progress from 0 to 1, nil if it is unknown.
func (r Run) ProgressFraction() *float64 {
	if r.Progress == nil {
		return nil
	}
	fraction := float64(*r.Progress) / 1000
	return &fraction
}

// Input is a file that a run works on.
type Input struct {
	Field   string // the key of the tool's field
	Index   int    // in the list of the field; 0 for a single file
	AssetID string
}

// Result is one result that a run made. Its asset holds the rest.
type Result struct {
	ID         string // a UUID
	AssetID    string
	Type       string // the medium, such as IMG
	Shape      string // such as landscape, for filters of the library
	Resolution string // a class of sizes, for filters of the library
	Note       string // a remark of the tool for people; empty: none
}

// Output is a result as its run shows it.
type Output struct {
	ID       string
	Type     string // the medium, such as IMG
	MimeType string
	Width    int64 // 0: the medium has none
	Height   int64 // 0: the medium has none
	Duration time.Duration
	Size     int64 // bytes
	SHA256   string
	Blurhash string
	ToolSlug string // "result" if the tool is no longer known
	Blob     string // blob key of the file
	Thumb    string // blob key of the thumbnail; empty: none
	Preview  string // blob key of a video's first frame; empty: none
	Expired  bool   // the file was removed, or the result deleted
	Note     string // a remark of the tool for people; empty: none
}

// Outcome is how a run ends.
type Outcome struct {
	State         State
	TokensCharged int64
	AllowanceUsed int64
	ErrorCode     string // of failed runs
	ErrorText     string // of failed runs, for people
	Results       []Result
}

// Lease is a worker's claim on one attempt of a run.
type Lease struct {
	ID      string // of the run
	Attempt int64
	Cancel  bool // the end of the run was requested
}

// ErrNotFound is the answer both for runs of other accounts and for runs that do
// not exist.
var ErrNotFound = fault.New(fault.NotFound, "There is no such run.")

// Filter narrows a list of runs. Empty fields match all.
type Filter struct {
	Status string
	ToolID string
}

// Cursor is the position of a run in lists that are ordered by creation.
type Cursor struct {
	Created time.Time
	ID      string
}
